package relay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// Routes: several targets for one turn (DESIGN §7).

func barred(after time.Duration) relaytest.Reply {
	return relaytest.Reply{Fail: &interrupt.Ended{How: interrupt.Barred, NotSent: true, After: after, Detail: "not asked"}}
}

var asking = dialect.Ability{Manners: []turn.Manner{turn.Asked}}

func routed(more ...relay.Target) relay.Config {
	return relay.Config{Targets: append([]relay.Target{{Name: "first", Ability: prefilling}}, more...)}
}

// went asserts which targets were asked, in order.
func (p played) went(want ...int) played {
	p.t.Helper()
	var got []int
	for _, q := range p.Requests {
		got = append(got, q.Target)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.t.Errorf("targets asked %v, want %v; plans %v", got, want, p.Plans())
	}
	return p
}

// Before anything is visible the client gets the fallback's own message, whole, and
// a failed attempt is none of it.
func TestFallbackBeforeTheStreamIsItsOwnMessage(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		good := w.begin("two") + w.text("two", "hello") + w.end("two")
		c := routed(relay.Target{Name: "second", Model: "other-model", Ability: asking})
		p := w.playWith(t, c, refusal(503, busy), refusal(503, busy), fin(good)).went(0, 0, 1).exactly(good)
		if q := p.Requests[2]; !strings.Contains(string(q.Body), `"model":"other-model"`) || !q.Derived {
			t.Errorf("the fallback was asked with %s", q.Body)
		}
		if gap := p.Requests[2].At.Sub(p.Requests[1].At); gap > 10*time.Millisecond {
			t.Errorf("a target without a fault was waited for: %v", gap)
		}
		if got := strings.Replace(string(p.Requests[2].Body), "other-model", modelOf(w), 1); got != w.request {
			t.Errorf("more than the model changed: %s", got)
		}
	})
}

func modelOf(w wire) string { return mustParse(w.d, []byte(w.request)).Model }

// After it the first hop's identity stays, and the continuation is asked for in the
// manner that the fallback takes.
func TestFallbackInTheMiddleContinuesUnderTheFirstIdentity(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		said := "the quick brown fox jumps over the lazy dog and "
		c := routed(relay.Target{Name: "second", Model: "other-model", Ability: asking})
		p := w.playWith(t, c,
			rst(w.begin("one")+w.text("one", said)), refusal(503, busy), refusal(503, busy),
			fin(w.begin("two")+w.text("two", said[len(said)-40:]+"rests")+w.end("two")),
		).went(0, 0, 0, 1).message(said+"rests", w.stop)
		if _, asked, err := relaytest.Asked(p.Requests[3].Body); err != nil || !asked || !strings.Contains(string(p.Requests[3].Body), "other-model") {
			t.Errorf("asked %v, %v: %s", asked, err, p.Requests[3].Body)
		}
		p.has(0, `"two"`).has(0, "other-model")
	})
}

func TestSilentTargetIsAskedOnce(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		good := w.begin("two") + w.text("two", "hello") + w.end("two")
		c := routed(relay.Target{Name: "second", Ability: prefilling})
		c.Watch.FirstToken = 15 * time.Second
		p := w.playWith(t, c, hang(), fin(good)).went(0, 1)
		if p.Requests[1].At.Sub(p.Requests[0].At) < 15*time.Second {
			t.Error("too early")
		}
		p.message("hello", w.stop)
	})
}

// The breaker is an input: what it holds back costs nothing, and nobody was asked.
func TestOpenBreakerMovesOnAtNoPrice(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		good := w.begin("two") + w.text("two", "hello") + w.end("two")
		c := routed(relay.Target{Name: "second", Ability: prefilling})
		c.Recoveries = -1
		p := w.playWith(t, c, barred(time.Minute), fin(good)).went(0, 1).exactly(good)
		if sum := p.Notes[len(p.Notes)-1].Summary; sum.Attempts != 1 || sum.Recoveries != 0 || p.Outcome() != "completed" {
			t.Errorf("%+v, %s", sum, p.Outcome())
		}
		w.playWith(t, c, barred(time.Minute), barred(time.Minute)).went(0, 1).planned("r4_whole_restart(nothing_visible)", "refuse(breaker_open)").answered(503, "")
	})
}

// Who is turned away is told when to come back: when the first of those that are left
// alone may be asked.
func TestOpenBreakerTellsWhen(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		two := routed(relay.Target{Name: "second", Ability: prefilling})
		for _, c := range []struct {
			p     played
			after time.Duration
		}{
			{w.play(t, barred(7*time.Second)), 7 * time.Second},
			{w.playWith(t, two, barred(7*time.Second), barred(3*time.Second)), 3 * time.Second},
			{w.playWith(t, two, barred(7*time.Second), barred(9*time.Second)), 7 * time.Second},
			{w.play(t, refusal(503, busy), barred(5*time.Second)), 5 * time.Second},
			{w.play(t, refusal(503, busy), refusal(503, busy), refusal(503, busy), refusal(503, busy)), 0},
		} {
			if got := c.p.Head.RetryAfter; got > c.after || got < c.after-time.Second {
				t.Errorf("told to come back after %v, want %v", got, c.after)
			}
		}
	})
}

// A turn that broke cannot go elsewhere: it waits for the provider's next probe,
// with signs of life, as long as its waiting budget lasts. A new request is told.
func TestOpenBreakerBehindContentIsWaitedFor(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		cut := rst(w.begin("one") + w.text("one", "AB"))
		p := w.play(t, cut, barred(15*time.Second), barred(15*time.Second), fin(w.begin("two")+w.text("two", "CD")+w.end("two"))).message("ABCD", w.stop)
		if gap := p.Requests[3].At.Sub(p.Requests[1].At); gap < 30*time.Second {
			t.Errorf("asked again after %v", gap)
		}
		if p.has(3, w.beat); p.Notes[len(p.Notes)-1].Summary.Recoveries != 1 {
			t.Errorf("%d recoveries", p.Notes[len(p.Notes)-1].Summary.Recoveries)
		}
		w.play(t, cut, barred(100*time.Second), barred(100*time.Second)).broken("failed:breaker_open")
		w.play(t, barred(time.Second)).planned("refuse(breaker_open)").answered(503, "")
	})
}

// What a client is told is the failure of the target that it asked for.
func TestFallbackThatRefusesIsNotTheAnswer(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		c := routed(relay.Target{Name: "second", Ability: prefilling})
		for _, status := range []int{400, 401, 403, 404} {
			w.playWith(t, c, refusal(503, busy), refusal(503, busy), refusal(status, `{"error":{"message":"no such model"}}`)).went(0, 0, 1).answered(503, busy)
		}
		// The next fallback is tried: the refusal may be about that one's key.
		c.Targets = append(c.Targets, relay.Target{Name: "third", Ability: prefilling})
		good := w.begin("two") + w.text("two", "hello") + w.end("two")
		w.playWith(t, c, refusal(503, busy), refusal(503, busy), refusal(401, "{}"), fin(good)).went(0, 0, 1, 2).exactly(good)
		// When the first target was never asked, what is wrong with the request
		// is the answer, and what is wrong with our key is not.
		bad := `{"error":{"message":"temperature must be at most 2"}}`
		w.playWith(t, routed(relay.Target{Name: "second"}), barred(0), refusal(400, bad)).answered(400, bad)
		w.playWith(t, routed(relay.Target{Name: "second"}), barred(0), refusal(401, bad)).answered(503, "")
	})
}

func TestPermanentRefusalStaysWithItsTarget(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		c := routed(relay.Target{Name: "second", Ability: prefilling})
		for _, status := range []int{400, 401, 403, 404, 413, 422} {
			w.playWith(t, c, refusal(status, "{}")).went(0).answered(status, "{}")
		}
		filter := `{"error":{"message":"no","code":"content_filter"}}`
		w.playWith(t, c, refusal(400, filter)).went(0).answered(400, filter)
	})
}

// A prompt that is too long goes only where the route says it fits.
func TestContextOverflowNeedsALargerTarget(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		long := `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`
		good := w.begin("two") + w.text("two", "hello") + w.end("two")
		plain, large := relay.Target{Name: "second", Ability: prefilling}, relay.Target{Name: "large", Larger: true, Ability: prefilling}
		w.playWith(t, routed(plain), refusal(400, long)).went(0).answered(400, long)
		w.playWith(t, routed(plain, large), refusal(400, long), fin(good)).went(0, 2).exactly(good)
		// Any other failure passes it by.
		w.playWith(t, routed(large), refusal(503, busy), refusal(503, busy), refusal(503, busy), refusal(503, busy)).went(0, 0, 0, 0).answered(503, busy)
		// Nor does the larger one's failure lead back to those that are too small.
		w.playWith(t, routed(large, plain), refusal(400, long), refusal(503, busy), refusal(503, busy), refusal(503, busy)).went(0, 1, 1, 1).answered(400, long)
	})
}

// WIRE 2.1: the fallback's 400 about prefill is part of asking it.
func TestFallbackThatRejectsPrefillIsAskedOtherwise(t *testing.T) {
	w := messagesWire
	said := "the quick brown fox jumps over the lazy dog and "
	c := routed(relay.Target{Name: "second", Ability: prefilling})
	reject := refusal(400, `{"type":"error","error":{"type":"invalid_request_error","message":"This model does not support assistant message prefill. The conversation must end with a user message."}}`)
	p := w.playWith(t, c,
		rst(w.begin("one")+w.text("one", said)), refusal(529, busy), refusal(529, busy), reject,
		fin(w.begin("two")+w.text("two", said[len(said)-40:]+"rests")+w.end("two")),
	).went(0, 0, 0, 1, 1).message(said+"rests", w.stop)
	for _, n := range p.Notes {
		if n.Kind == relay.NoteDemoted && n.Target != 1 {
			t.Errorf("target %d was demoted", n.Target)
		}
	}
}

// The line of recoveries is the driver's; the machine keeps the client company, and
// knows when it has been too long.
func TestWaitingInLine(t *testing.T) {
	w := chatWire
	req := mustParse(w.d, []byte(w.request))
	now := time.Unix(1_800_000_000, 0)
	c := relay.Config{WaitBudget: 30 * time.Second, Targets: []relay.Target{{Ability: prefilling}}}
	begin := func() (*relay.Stream, func(in relay.Input) *relay.Effects) {
		s, _ := relay.New(c, w.d, req, []byte(w.request), now)
		step := func(in relay.Input) *relay.Effects { return s.Step(now, in) }
		step(relay.Opened{Attempt: 1, Status: 200, Header: relaytest.Reply{}})
		step(relay.Chunk{Attempt: 1, Bytes: []byte(w.begin("one") + w.text("one", "AB"))})
		if fx := step(relay.Ended{Attempt: 1, End: interrupt.Ended{How: interrupt.Reset}}); fx.Open == nil || fx.Open.N != 2 {
			t.Fatalf("%+v", fx)
		}
		step(relay.Queued{Attempt: 2})
		return s, step
	}
	t.Run("until the turn has come", func(t *testing.T) {
		s, step := begin()
		now = now.Add(10 * time.Second)
		if fx := step(relay.Tick{}); string(fx.Client) != w.beat || fx.Cancel {
			t.Errorf("%q, canceled %v", fx.Client, fx.Cancel)
		}
		step(relay.Began{Attempt: 2})
		if d := s.Deadline(); d.After(now.Add(10*time.Second)) || !d.After(now) {
			t.Errorf("deadline in %v", d.Sub(now))
		}
		step(relay.Opened{Attempt: 2, Status: 200, Header: relaytest.Reply{}})
		if fx := step(relay.Chunk{Attempt: 2, Bytes: []byte(w.begin("two") + w.text("two", "CD") + w.end("two"))}); fx.End != relay.Clean {
			t.Errorf("%+v", fx)
		}
	})
	t.Run("in vain, which has its price too", func(t *testing.T) {
		// A breaker may open while somebody stands in line: what the turn waited
		// there is not given back, or it could wait for ever.
		s, step := begin()
		now = now.Add(20 * time.Second)
		fx := step(relay.Ended{Attempt: 2, End: interrupt.Ended{How: interrupt.Barred, NotSent: true, After: 8 * time.Second}})
		if fx.End != relay.Open {
			t.Fatalf("%+v", fx)
		}
		now = now.Add(9 * time.Second)
		if fx = step(relay.Tick{}); fx.Open == nil {
			t.Fatalf("%+v", fx)
		}
		fx = step(relay.Ended{Attempt: s.Attempt(), End: interrupt.Ended{How: interrupt.Barred, NotSent: true, After: 8 * time.Second}})
		if fx.End != relay.Abort || fx.Notes[len(fx.Notes)-1].Reason != "failed:breaker_open" {
			t.Errorf("%+v", fx)
		}
	})
	t.Run("as long as there is time", func(t *testing.T) {
		s, step := begin()
		var fx *relay.Effects
		for range 10 {
			now = s.Deadline()
			if fx = step(relay.Tick{}); fx.End != relay.Open {
				break
			}
		}
		if fx.End != relay.Abort || !fx.Cancel || fx.Notes[len(fx.Notes)-1].Reason != "failed:storm_guard" {
			t.Errorf("%+v", fx)
		}
	})
}

// A slow drip is an interruption where a floor is set.
func TestSlowDripIsHealed(t *testing.T) {
	w := chatWire
	c := relay.Config{Targets: []relay.Target{{Ability: prefilling}}}
	c.Watch.Floor, c.Watch.FloorSpan = 20, 10*time.Second
	drip := pinging(5*time.Second, w.text("one", "x"), w.begin("one")+w.text("one", "AB"))
	p := w.playWith(t, c, drip, fin(w.begin("two")+w.text("two", "CD")+w.end("two"))).hits(2)
	p.because(interrupt.IdleStall)
	if text := string(p.Body); !strings.Contains(text, "CD") || strings.Count(text, `"x"`) == 0 {
		t.Errorf("%s", text)
	}
}

// A continuation that stalls while its join is still undecided is noticed by the
// byte clock, not by that of the first token ten minutes later.
func TestStallInFrontOfTheSeamIsNoticed(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		c := relay.Config{Targets: []relay.Target{{Ability: asking}}}
		p := w.playWith(t, c,
			rst(w.begin("one")+w.text("one", "the quick brown fox jumps over the lazy dog and ")),
			hang(w.begin("two")+w.text("two", "fox jumps ")),
			fin(w.begin("three")+w.text("three", "fox jumps over the lazy dog and rests")+w.end("three")),
		).hits(3).because(interrupt.ConnectionReset, interrupt.IdleStall)
		if gap := p.Requests[2].At.Sub(p.Requests[1].At); gap > 70*time.Second {
			t.Errorf("noticed after %v", gap)
		}
	})
}
