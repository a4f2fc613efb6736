package relay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// moment is a state that a stream can be left, or stopped, in.
type moment struct {
	name string
	// whether the client has content, and the turn's end, by then
	content, ended bool
	reach          func(h *hand)
}

var moments = []moment{
	{"before the head", false, false, func(*hand) {}},
	{"behind the head", false, false, func(h *hand) { h.open(200) }},
	{"before content", false, false, func(h *hand) { h.open(200); h.feed(h.w.begin("one")) }},
	{"in the text", true, false, func(h *hand) { h.open(200); h.feed(h.w.begin("one") + h.w.text("one", "AB. ")) }},
	{"half an event in hand", true, false, func(h *hand) { h.open(200); h.feed(h.w.begin("one") + h.w.text("one", "AB. ") + h.w.half) }},
	{"a call is held", true, false, func(h *hand) {
		h.open(200)
		h.feed(h.w.begin("one") + h.w.text("one", "AB. ") + h.w.tool("one", "c1", "f") + h.w.args("one", `{"a":`))
	}},
	{"reading an error", false, false, func(h *hand) { h.open(500); h.feed(`{"err`) }},
	{"in the back-off", false, false, func(h *hand) { h.open(503); h.feed(`{}`); h.break_(interrupt.EOF) }},
	{"in the back-off behind content", true, false, func(h *hand) {
		h.open(200)
		h.feed(h.w.begin("one") + h.w.text("one", "AB. "))
		h.break_(interrupt.Reset)
		h.open(503, "Retry-After", "5")
		h.break_(interrupt.EOF)
	}},
	{"before the second head", true, false, func(h *hand) {
		h.open(200)
		h.feed(h.w.begin("one") + h.w.text("one", "AB. "))
		h.break_(interrupt.Reset)
	}},
	{"at the seam", true, false, func(h *hand) {
		h.open(200)
		h.feed(h.w.begin("one") + h.w.text("one", "AB. "))
		h.break_(interrupt.Reset)
		h.open(200)
		h.feed(h.w.begin("two") + h.w.text("two", "AB"))
	}},
	{"behind the finish", true, true, func(h *hand) {
		h.open(200)
		all := h.w.begin("one") + h.w.text("one", "AB. ") + h.w.end("one")
		h.feed(strings.TrimSuffix(strings.TrimSuffix(all, done), me))
	}},
}

// FIELD-REPORTS G1, G2: for a client that left nobody is asked, nothing is sent and
// no provider is blamed, in whatever phase it left.
func TestTheClientLeavesInEveryPhase(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		for _, m := range moments {
			t.Run(m.name, func(t *testing.T) {
				h := run(t, w, relay.Config{})
				m.reach(h)
				n, got := h.n, h.got
				fx := h.step(relay.Gone{})
				if !fx.Cancel || fx.Open != nil || len(fx.Client) > 0 || fx.Head != nil || fx.End != relay.Abort || !h.s.Done() {
					t.Errorf("effects %+v", fx)
				}
				if h.outcome() != "client_gone" {
					t.Errorf("outcome %s", h.outcome())
				}
				h.quiet(n, got)
				if _, err := turn.Replay(h.log); err != nil {
					t.Errorf("checkpoint: %v", err)
				}
			})
		}
	})
}

// quiet checks that nothing that comes late has an effect any more.
func (h *hand) quiet(n int, got string) {
	h.t.Helper()
	h.n = n
	h.open(200)
	h.feed(h.w.begin("late") + h.w.text("late", "LATE") + h.w.end("late"))
	h.break_(interrupt.Reset)
	h.step(relay.Gone{})
	h.step(relay.Stop{Reason: "drain"})
	h.now = h.now.Add(24 * time.Hour)
	h.step(relay.Tick{})
	if h.n != n || h.got != got || !h.s.Deadline().IsZero() {
		h.t.Errorf("something happened behind the end: attempt %d, %q", h.n, strings.TrimPrefix(h.got, got))
	}
}

// A stop of our own (the drain's deadline, a lost fence): the dialect's error and an
// abort; before the head a 503; behind the finish the turn is over, and the end
// marker may be rendered by anybody.
func TestStopInEveryPhase(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		for _, m := range moments {
			t.Run(m.name, func(t *testing.T) {
				h := run(t, w, relay.Config{})
				m.reach(h)
				n := h.n
				fx := h.step(relay.Stop{Reason: "drain"})
				if !fx.Cancel || fx.Open != nil || !h.s.Done() {
					t.Errorf("effects %+v", fx)
				}
				res := relaytest.Result{Head: h.head, Body: []byte(h.got), Log: h.log}
				_, faults, err := relaytest.Fold(w.d, mustParse(w.d, []byte(w.request)), []byte(h.got))
				switch {
				case m.ended:
					if _, err := w.read([]byte(h.got)); err != nil || h.end != relay.Clean || len(faults) > 0 {
						t.Errorf("ended %v with %d errors, %v: %s", h.end, len(faults), err, h.got)
					}
				case m.content:
					if h.end != relay.Abort || len(faults) != 1 || err != nil || h.outcome() != "failed:drain" {
						t.Errorf("ended %v as %s with %d errors, %v: %s", h.end, h.outcome(), len(faults), err, h.got)
					}
				default:
					if h.head == nil || h.head.Status != 503 || h.head.Stream || h.end != relay.Clean {
						t.Errorf("head %+v, ended %v", h.head, h.end)
					}
				}
				if err := logHolds(w.d, []byte(w.request), res); err != nil {
					t.Errorf("checkpoint: %v", err)
				}
				h.quiet(n, h.got)
			})
		}
	})
}

// A body that is relayed as it comes gets nothing of ours in it.
func TestStopInARawBodyBreaksItOff(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		h := run(t, w.without(t, "stream"), relay.Config{MaxWhole: 10})
		h.open(200)
		h.feed(`{"id":"one","content":"hi`)
		h.step(relay.Stop{Reason: "drain"})
		if h.got != `{"id":"one","content":"hi` || h.end != relay.Abort {
			t.Errorf("ended %v with %q", h.end, h.got)
		}
	})
}

// What makes a client act leaves behind its checkpoint: the close of a call, the
// finish. Text runs ahead of it by one flush at most (DESIGN §8).
func TestDurableIsWhatMakesAClientAct(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		h := run(t, w, relay.Config{})
		h.open(200)
		h.feed(w.begin("one"))
		for _, word := range []string{"some ", "words ", "before "} {
			if fx := h.feed(w.text("one", word)); fx.Persist.Durable {
				t.Errorf("text waits for its checkpoint")
			}
		}
		h.wait(50 * time.Millisecond)
		h.holds("a flush later")
		h.feed(w.tool("one", "c1", "f"))
		h.feed(w.args("one", `{"a":`))
		if fx := h.feed(w.args("one", `1}`)); !fx.Persist.Durable || len(fx.Client) == 0 {
			t.Errorf("a whole call: durable=%v, %d bytes", fx.Persist.Durable, len(fx.Client))
		}
		h.holds("with the call")
		for _, u := range relaytest.Units([]byte(w.called("one"))) {
			fx := h.feed(string(u))
			acts := strings.Contains(string(u), "message_delta") || strings.Contains(string(u), "finish_reason")
			if acts && !fx.Persist.Durable {
				t.Errorf("the finish left without its checkpoint: %s", u)
			}
		}
		h.holds("at the end")
	})
	t.Run("a synthesized end", func(t *testing.T) {
		each(t, func(t *testing.T, w wire) {
			h := run(t, w, relay.Config{})
			h.open(200)
			h.feed(w.begin("one") + w.text("one", "AB") + w.tool("one", "c1", "f") + w.args("one", `{"a":1}`) + w.text("one", ""))
			if fx := h.break_(interrupt.Reset); !fx.Persist.Durable {
				t.Error("a finish of our own left without its checkpoint")
			}
			h.holds("at the end")
		})
	})
}

func (h *hand) holds(when string) {
	h.t.Helper()
	if err := logHolds(h.w.d, []byte(h.w.request), relaytest.Result{Head: h.head, Body: []byte(h.got), Log: h.log}); err != nil {
		h.t.Errorf("%s: %v", when, err)
	}
}
