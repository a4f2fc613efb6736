package proxy

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/checkpoint/storetest"
	"github.com/unbroken-llm/unbroken/turn"
)

// TestTurnsThatBeganWhileTheStoreWasAway are claimed when it is back, with all that
// was said until then: before, an outage of a second left a stream unprotected to
// its end.
func TestTurnsThatBeganWhileTheStoreWasAway(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault storetest.Moment
		old   bool // a record of an earlier turn of that key is there
	}{
		{"the claim never arrived", storetest.Before, false},
		{"the claim's answer was lost", storetest.After, false},
		{"somebody left a record before", storetest.Before, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st, with := stored()
			key := keyOf("/v1/chat/completions", chatAsk, "r1")
			if tt.old {
				f, _, err := st.Claim(t.Context(), key, "dead", checkpoint.Record{Run: "r1"})
				if err != nil {
					t.Fatal(err)
				}
				if err := st.Append(t.Context(), f, 0, []byte("something else")); err != nil {
					t.Fatal(err)
				}
				if err := st.Release(t.Context(), f); err != nil {
					t.Fatal(err)
				}
			}
			more := make(chan struct{})
			p := newProvider(t, func(a *asked) {
				a.stream()
				a.chunks(oc("one "))
				<-more
				a.chunks(oc("two"), fr("stop"), done)
				a.end()
			})
			s := start(t, p, with, func(c *Config) { c.Relay.Flush = time.Millisecond })
			st.Fail(tt.fault)
			c := dial(t, s.addr).post("/v1/chat/completions", chatAsk, "X-Run-Id: r1", "Connection: close")
			eventually(t, "the claim fails", func() bool { return s.Stats().Unclaimed == 1 })
			logged := func(text string) func() bool {
				return func() bool {
					rec, err := st.Get(context.Background(), key)
					if err != nil {
						return false
					}
					said, err := turn.Replay(rec.Log)
					return err == nil && len(said.Blocks) == 1 && string(said.Blocks[0].Text) == text
				}
			}
			eventually(t, "what was said before is written", logged("one "))
			if n := s.Stats(); n.Unclaimed != 1 || n.Reclaimed != 1 {
				t.Errorf("%d unclaimed, %d reclaimed", n.Unclaimed, n.Reclaimed)
			}
			close(more)
			_, _ = io.Copy(io.Discard, c.br)
			eventually(t, "the rest is written", logged("one two"))
			eventually(t, "the turn is settled", func() bool {
				rec, err := st.Get(context.Background(), key)
				return err == nil && rec.State.Phase == checkpoint.Finished && rec.Owner == ""
			})
		})
	}
}

// TestATurnThatEndsUnclaimed leaves nothing to be claimed.
func TestATurnThatEndsUnclaimed(t *testing.T) {
	st, with := stored()
	p := newProvider(t, func(a *asked) { a.stream(); a.chunks(oc("one"), fr("stop"), done); a.end() })
	s := start(t, p, with)
	st.Sleep()
	c := dial(t, s.addr).post("/v1/chat/completions", chatAsk, "X-Run-Id: r1", "Connection: close")
	_, _ = io.Copy(io.Discard, c.br)
	eventually(t, "the turn is over", func() bool { return s.Stats().Ended.Completed == 1 })
	st.Wake()
	eventually(t, "nobody is seen to any more", func() bool {
		s.latecomers.mu.Lock()
		defer s.latecomers.mu.Unlock()
		return !s.latecomers.on
	})
	if rec, err := st.Get(context.Background(), keyOf("/v1/chat/completions", chatAsk, "r1")); err == nil && rec.Owner != "" {
		t.Errorf("it was claimed: %+v", rec)
	}
}
