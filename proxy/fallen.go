package proxy

import (
	"errors"
	"slices"
	"sync"

	"github.com/unbroken-llm/unbroken/upstream"
)

// maxFallen is how many connections are remembered: those that died at about one time.
const maxFallen = 16

// fallen are an upstream's HTTP/2 connections that died. A hundred streams may have shared
// one, and break together: that is one failure of the upstream and not a hundred, which
// would have its breaker open for what a single reset did.
type fallen struct {
	mu   sync.Mutex
	last []any
}

// first reports whether nobody has told of a connection's death yet.
func (f *fallen) first(conn any) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.last, conn) {
		return false
	}
	if len(f.last) == maxFallen {
		f.last = slices.Delete(f.last, 0, 1)
	}
	f.last = append(f.last, conn)
	return true
}

// connOf is the connection that died under an attempt and others; nil: none did.
func connOf(err error) any {
	var e *upstream.Error
	if errors.As(err, &e) {
		return e.Conn
	}
	return nil
}
