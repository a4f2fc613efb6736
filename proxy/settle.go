package proxy

import (
	"time"

	"github.com/unbroken-llm/unbroken/upstream"
)

const (
	// settleTime is how long a provider has to end a body whose turn is over.
	settleTime = 100 * time.Millisecond
	// settleMost bounds how many of them are waited for at a time.
	settleMost = 256
)

// settle reads a body to its end if that is at hand, so that the connection can
// be kept for the next request. It does not delay the client, which has its end
// already, and it never waits for a provider that holds the connection open
// (FIELD-REPORTS A3).
func (s *Server) settle(res *upstream.Response) {
	select {
	case s.settling <- struct{}{}:
	default:
		_ = res.Close()
		return
	}
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		defer func() { <-s.settling }()
		drain(res)
	}()
}

func drain(res *upstream.Response) {
	defer res.Close()
	t := time.AfterFunc(settleTime, res.Wake)
	defer t.Stop()
	for {
		if _, err := res.Next(); err != nil {
			return
		}
	}
}
