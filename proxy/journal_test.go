package proxy

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/checkpoint/storetest"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

// stored is a store a test can look into and put to sleep.
func stored() (*storetest.Sleepy, func(*Config)) {
	st := storetest.NewSleepy(checkpoint.NewMemory(checkpoint.MemoryConfig{Clock: time.Now}))
	return st, func(c *Config) { c.Store, c.ScopeKey = st, []byte("test") }
}

// keyOf is the turn key of a request of run r without a credential.
func keyOf(path, ask, run string) checkpoint.TurnKey {
	r := &request{method: "POST", target: path, body: []byte(ask)}
	return checkpoint.Turn(checkpoint.Scope{}, checkpoint.RunID(run), r.fingerprint())
}

func TestCheckpointFollowsTheStream(t *testing.T) {
	flushed := make(chan struct{})
	cases := []struct {
		name   string
		script func(*asked)
		change func(*relay.Config)
		phase  checkpoint.Phase
		text   string
		gone   bool
	}{
		{"finished", func(a *asked) { a.stream(); a.chunks(oc("one two"), fr("stop"), done); a.end() }, nil, checkpoint.Finished, "one two", false},
		{"given up", func(a *asked) { a.stream(); a.chunks(oc("one two")); <-flushed; a.rst() }, func(c *relay.Config) { c.Recoveries = -1 }, checkpoint.Broken, "one two", false},
		{"refused before it said anything", func(a *asked) { a.answer(400, `{"error":{"message":"no"}}`) }, nil, 0, "", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			st, with := stored()
			s := start(t, newProvider(t, c.script), with, func(cfg *Config) {
				cfg.Relay.Flush = time.Millisecond
				if c.change != nil {
					c.change(&cfg.Relay)
				}
			})
			c1 := dial(t, s.addr).post("/v1/chat/completions", chatAsk, "X-Run-Id: r1", "Connection: close")
			var rec *checkpoint.Record
			if c.phase == checkpoint.Broken {
				eventually(t, "a flush", func() bool {
					rec, err := st.Get(context.Background(), keyOf("/v1/chat/completions", chatAsk, "r1"))
					return err == nil && len(rec.Log) > 0
				})
				close(flushed)
			}
			io.Copy(io.Discard, c1.br)
			eventually(t, "the record is settled", func() bool {
				var err error
				rec, err = st.Get(context.Background(), keyOf("/v1/chat/completions", chatAsk, "r1"))
				return c.gone && err != nil || err == nil && rec.State.Phase == c.phase && rec.Owner == ""
			})
			if c.gone {
				return
			}
			snap, err := turn.Replay(rec.Log)
			if err != nil || len(snap.Blocks) != 1 || string(snap.Blocks[0].Text) != c.text {
				t.Errorf("the log says %+v, %v", snap, err)
			}
			if rec.Run != "r1" || rec.Dialect != "chat" || rec.Route != "openai" || rec.Model != "gpt-x" || rec.State.Attempt != 1 {
				t.Errorf("record %+v", rec)
			}
		})
	}
}

// FIELD-REPORTS H1: a store that says nothing, from the start or from the middle,
// costs a stream nothing but its checkpoint.
func TestSleepingStoreDoesNotHoldAStreamUp(t *testing.T) {
	for _, when := range []string{"from the start", "from the middle"} {
		t.Run(when, func(t *testing.T) {
			st, with := stored()
			next := make(chan struct{})
			p := newProvider(t, func(a *asked) {
				a.stream()
				a.chunk(oc("one two three "))
				<-next
				a.chunks(oc("four"), fr("stop"), done)
				a.end()
			})
			s := start(t, p, with)
			defer st.Wake()
			if when == "from the start" {
				st.Sleep()
			}
			res := dial(t, s.addr).post("/v1/chat/completions", chatAsk).response()
			head := until(t, res.Body, "three ")
			st.Sleep()
			close(next)
			rest, err := allOf(res)
			if err != nil || text(t, head+rest) != "one two three four" {
				t.Fatalf("%q, %v", head+rest, err)
			}
			if got := s.Stats(); when == "from the start" && got.Unclaimed != 1 || when == "from the middle" && got.Unacked != 1 {
				t.Errorf("stats %+v", got)
			}
		})
	}
}

func TestFailingStoreIsAskedAgain(t *testing.T) {
	st, with := stored()
	s := start(t, newProvider(t, func(a *asked) { a.stream(); a.chunks(oc("one two"), fr("stop"), done); a.end() }), with)
	st.Fail(0, storetest.After, storetest.Before)
	io.Copy(io.Discard, dial(t, s.addr).post("/v1/chat/completions", chatAsk, "X-Run-Id: r1", "Connection: close").br)
	eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
	if s.notes.outcome(t) != "completed" {
		t.Error("a failing store failed a stream")
	}
}

// Runs of different callers are different turns, whatever they are called.
func TestCallersDoNotFenceEachOther(t *testing.T) {
	finish := make(chan struct{})
	p := newProvider(t,
		func(a *asked) { a.stream(); a.chunks(ms(), mt("one")); <-finish; a.chunks(mt(" two"), me()); a.end() },
		func(a *asked) { a.stream(); a.chunks(ms(), mt("other"), me()); a.end() },
	)
	s := start(t, p)
	older := dial(t, s.addr).post("/v1/messages", messagesAsk, "X-Run-Id: r1", "x-api-key: a").response()
	head := until(t, older.Body, "one")
	allOf(dial(t, s.addr).post("/v1/messages", messagesAsk, "X-Run-Id: r1", "x-api-key: b").response())
	close(finish)
	if rest, err := allOf(older); err != nil || text(t, head+rest) != "one two" {
		t.Errorf("%q, %v", head+rest, err)
	}
}
