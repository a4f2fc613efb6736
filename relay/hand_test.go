package relay_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

// hand drives a stream step by step, for stories about when something happens.
type hand struct {
	t    *testing.T
	w    wire
	s    *relay.Stream
	now  time.Time
	n    int // current attempt
	last relay.Attempt
	head *relay.Head
	got  string
	log  []byte
	end  relay.End
	note []relay.Note
	fx   []relay.Effects // all, owned
}

func run(t *testing.T, w wire, c relay.Config) *hand {
	t.Helper()
	if len(c.Targets) == 0 {
		c.Targets = []relay.Target{{Name: "test", Ability: prefilling}}
	}
	h := &hand{t: t, w: w, now: time.Unix(1_800_000_000, 0)}
	s, fx := relay.New(c, w.d, mustParse(w.d, []byte(w.request)), []byte(w.request), h.now)
	h.s = s
	h.take(fx)
	return h
}

func (h *hand) take(step *relay.Effects) relay.Effects {
	h.t.Helper()
	fx := *step
	if h.end != relay.Open && (len(fx.Client) > 0 || fx.Head != nil || fx.Open != nil || fx.End != relay.Open) {
		h.t.Errorf("effects behind the end: %+v", fx)
	}
	fx.Client, fx.Persist.Log = bytes.Clone(fx.Client), bytes.Clone(fx.Persist.Log)
	fx.Notes = append([]relay.Note(nil), fx.Notes...)
	h.fx = append(h.fx, fx)
	if len(fx.Persist.Log) > 0 {
		if fx.Persist.Offset != int64(len(h.log)) {
			h.t.Errorf("checkpoint offset %d, want %d", fx.Persist.Offset, len(h.log))
		}
		h.log = append(h.log, fx.Persist.Log...)
	}
	if fx.Head != nil {
		if h.head != nil {
			h.t.Error("two heads")
		}
		h.head = fx.Head
	}
	h.got += string(fx.Client)
	if fx.Open != nil {
		h.n, h.last = fx.Open.N, *fx.Open
	}
	h.end = max(h.end, fx.End)
	h.note = append(h.note, fx.Notes...)
	return fx
}

func (h *hand) step(in relay.Input) relay.Effects {
	h.t.Helper()
	return h.take(h.s.Step(h.now, in))
}

func (h *hand) open(status int, header ...string) relay.Effects {
	h.t.Helper()
	return h.step(relay.Opened{Attempt: h.n, Status: status, Header: refusal(status, "", header...)})
}

func (h *hand) feed(s string) relay.Effects {
	h.t.Helper()
	return h.step(relay.Chunk{Attempt: h.n, Bytes: []byte(s)})
}

func (h *hand) break_(how interrupt.Ending) relay.Effects {
	h.t.Helper()
	return h.step(relay.Ended{Attempt: h.n, End: interrupt.Ended{How: how}})
}

// wait lets time pass, with a tick at every deadline on the way. It returns what
// the client got meanwhile.
func (h *hand) wait(d time.Duration) string {
	h.t.Helper()
	had := len(h.got)
	until := h.now.Add(d)
	for {
		at := h.s.Deadline()
		if at.IsZero() || at.After(until) {
			break
		}
		if at.After(h.now) {
			h.now = at
		}
		h.step(relay.Tick{})
		if next := h.s.Deadline(); !next.IsZero() && !next.After(h.now) && next.Equal(at) {
			h.t.Fatalf("the deadline %v stands still", at.Sub(h.now))
		}
	}
	h.now = until
	h.step(relay.Tick{})
	return h.got[had:]
}

// outcome is the reason of the end note.
func (h *hand) outcome() string { return relaytest.Result{Notes: h.note}.Outcome() }

func (h *hand) plans() []string { return relaytest.Result{Notes: h.note}.Plans() }
