package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

var errCut = errors.New("injected: the connection is cut")

// lossy cuts connections: before a request is sent, or after it took effect and
// before the answer is read.
type lossy struct {
	mu  sync.Mutex
	rng *rand.Rand
	one int // in how many calls fails; 0 none
	// cuts counts both kinds.
	before, after int
}

func (l *lossy) fails(count *int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.one == 0 || l.rng.IntN(l.one) != 0 {
		return false
	}
	*count++
	return true
}

func (l *lossy) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &lossyConn{Conn: c, l: l}, nil
}

type lossyConn struct {
	net.Conn
	l *lossy
}

func (c *lossyConn) Write(p []byte) (int, error) {
	if c.l.fails(&c.l.before) {
		_ = c.Close()
		return 0, errCut
	}
	return c.Conn.Write(p)
}

func (c *lossyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p) // the answer is there, so the effect is
	if err == nil && c.l.fails(&c.l.after) {
		_ = c.Close()
		return 0, errCut
	}
	return n, err
}

// Failures before and after the effect: everything is repeated, nothing is
// doubled.
func TestFailuresBeforeAndAfterTheEffect(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			m := miniredis.RunT(t)
			l := &lossy{rng: rand.New(rand.NewPCG(seed, 4))}
			s := open(t, "redis://"+m.Addr(), func(c *Config) { lasting(c); c.Server.Dialer = l.dial })
			const n = 20
			turns := make([]*held, n)
			for i := range turns {
				turns[i] = hold(t, s, fmt.Sprint(i), me)
			}
			l.mu.Lock()
			l.one = 6
			l.mu.Unlock()
			// Writes go on until enough of both happened.
			words := 0
			enough := func() bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.before >= 10 && l.after >= 10
			}
			until(t, "enough cuts", func() bool {
				for _, h := range turns {
					h.say(fmt.Sprint("word ", words, " "))
				}
				words++
				return enough()
			})
			for _, h := range turns {
				h.Settle(checkpoint.State{Phase: checkpoint.Broken, Attempt: 3})
			}
			until(t, "all settled", func() bool { return s.Stats().Turns == 0 })
			l.mu.Lock()
			l.one = 0
			l.mu.Unlock()
			var all strings.Builder
			for i := range words {
				fmt.Fprint(&all, "word ", i, " ")
			}
			for i := range turns {
				var r *checkpoint.Record
				until(t, "read", func() (ok bool) {
					var err error
					r, err = s.Get(t.Context(), key(fmt.Sprint(i)))
					return err == nil
				})
				if string(r.Log) != all.String() || r.Owner != "" || r.State.Attempt != 3 {
					t.Errorf("turn %d: %d bytes of %d, %+v", i, len(r.Log), all.Len(), r.State)
				}
			}
			if st := s.Stats(); st.Drops != 0 || st.Fenced != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}
