package relay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

// FIELD-REPORTS group B: stalls, pings, heartbeats.

// B1: one timer cannot tell thinking from wedged. Pings kept a dead generation
// alive for ever; ignoring them killed a healthy two-minute think.
func TestB1PingsAreBytesAndNotProgress(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		p := w.play(t,
			pinging(100*time.Millisecond, w.ping, w.begin("one")+w.text("one", "A")),
			fin(w.begin("two")+w.text("two", "B")+w.end("two"))).
			hits(2).because(interrupt.IdleStall).message("AB", w.stop)
		if p.Took < 180*time.Second || p.Took > 181*time.Second {
			t.Errorf("a dead generation that pings was noticed after %v, the progress clock is 180 s", p.Took)
		}
	})
	thinking := map[string][]string{
		"chat":     {role("one") + rc("one", "hm"), rc("one", " yes") + oc("one", "A") + chatWire.end("one")},
		"messages": {ms("one") + bThink(0) + kx(0, "hm"), kx(0, " yes") + sgn(0, "c2ln") + stop(0) + bText(1) + tx(1, "A") + stop(1) + md("end_turn", 9) + me},
	}
	each(t, func(t *testing.T, w wire) {
		t.Run("thinking behind pings", func(t *testing.T) {
			s := run(t, w, relay.Config{})
			s.open(200)
			s.feed(thinking[w.name][0])
			for range 59 {
				s.wait(10 * time.Second)
				s.feed(w.ping)
			}
			s.feed(thinking[w.name][1])
			if s.n != 1 || s.end != relay.Clean {
				t.Errorf("a healthy think was interrupted: attempt %d, ended %v", s.n, s.end)
			}
		})
		t.Run("thinking in silence", func(t *testing.T) {
			s := run(t, w, relay.Config{})
			s.open(200)
			s.feed(thinking[w.name][0])
			s.wait(599 * time.Second)
			if s.n != 1 {
				t.Fatalf("interrupted within the quiet limit")
			}
			s.wait(2 * time.Second)
			if s.n != 2 {
				t.Errorf("not interrupted behind the quiet limit: attempt %d", s.n)
			}
		})
	})
}

// B1 again: both clocks can be moved, and switched off.
func TestB1BothClocksAreConfigurable(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		limits := interrupt.Config{Idle: 5 * time.Second, Progress: 9 * time.Second}
		second := fin(w.begin("two") + w.text("two", "B") + w.end("two"))
		cut := w.begin("one") + w.text("one", "A")
		if p := w.playWith(t, relay.Config{Watch: limits}, hang(cut), second).hits(2); p.Took > 6*time.Second {
			t.Errorf("byte silence noticed after %v", p.Took)
		}
		if p := w.playWith(t, relay.Config{Watch: limits}, pinging(time.Second, w.ping, cut), second).hits(2); p.Took < 9*time.Second || p.Took > 10*time.Second {
			t.Errorf("progress silence noticed after %v", p.Took)
		}
		s := run(t, w, relay.Config{Watch: interrupt.Config{Idle: -1, Progress: -1}})
		s.open(200)
		s.feed(cut)
		s.wait(12 * time.Hour)
		if s.n != 1 {
			t.Errorf("a clock that is off fired")
		}
	})
}

// B2: accepted, then nothing; or a stall behind the head. Nothing semantic was
// said: a plain retry, under the identity the client already has, if any.
func TestB2NoFirstByte(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		good := w.begin("two") + w.text("two", "hi") + w.end("two")
		t.Run("no head", func(t *testing.T) {
			s := run(t, w, relay.Config{})
			s.wait(61 * time.Second)
			if s.n != 2 || s.head != nil {
				t.Errorf("attempt %d, head %+v", s.n, s.head)
			}
		})
		t.Run("head, then nothing", func(t *testing.T) {
			p := w.play(t, hang(), fin(good)).hits(2).because(interrupt.FirstTokenTimeout).exactly(strings.Repeat(w.beat, beats(t, w)), good)
			if p.Took < 600*time.Second || p.Took > 602*time.Second {
				t.Errorf("took %v", p.Took)
			}
		})
		t.Run("message start, then nothing", func(t *testing.T) {
			head := role("one")
			if w.name == "messages" {
				head = ms("one")
			}
			p := w.play(t, hang(head), fin(good)).hits(2).because(interrupt.FirstTokenTimeout).message("hi", w.stop)
			p.lacks("two").has(1, `"role":"assistant"`)
			if p.Requests[1].Derived || string(p.Requests[1].Body) != w.request {
				t.Errorf("the retry is not the identical request: %s", p.Requests[1].Body)
			}
		})
	})
}

// beats is how many heartbeats the client gets while it waits for a first token
// from the hold's end to the limit.
func beats(t *testing.T, w wire) int {
	t.Helper()
	p := w.play(t, hang(), fin(w.begin("two")+w.text("two", "hi")+w.end("two")))
	n := strings.Count(string(p.Body), w.beat)
	if n < 58 || n > 60 {
		t.Errorf("%d heartbeats in 590 s of silence", n)
	}
	return n
}

// B4: a proxy that swallows pings lets load balancers and clients time out. The
// provider's pass; while we recover we make our own.
func TestB4KeepalivesPassAndAreMade(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		all := w.begin("one") + w.ping + w.text("one", "A") + w.ping + w.end("one")
		w.play(t, fin(all)).exactly(all)

		s := run(t, w, relay.Config{Heartbeat: time.Second})
		s.open(200)
		s.feed(w.begin("one") + w.text("one", "AB"))
		s.break_(interrupt.Reset)
		var longest, last time.Duration
		for at := time.Duration(0); at < 3*time.Second; at += 100 * time.Millisecond {
			if s.wait(100*time.Millisecond) != "" {
				longest, last = max(longest, at-last), at
			}
		}
		if longest > time.Second || last < 2*time.Second {
			t.Errorf("the client heard nothing for %v of a recovery (last at %v)", longest, last)
		}
		s.open(200)
		s.feed(w.begin("two") + w.text("two", "CD") + w.end("two"))
		if m, err := w.read([]byte(s.got)); err != nil || m.text != "ABCD" {
			t.Errorf("%v, %v", m, err)
		}
	})
}

// B5: a comment and a blank line behind an event with an id made one decoder
// dispatch an empty event. B6: a ping with empty data is a JSON error in another.
func TestB5B6HeartbeatsHaveTheOneShapeEverySDKTakes(t *testing.T) {
	want := map[string]string{"chat": ": keep-alive\n", "messages": "event: ping\ndata: {\"type\":\"ping\"}\n\n"}
	each(t, func(t *testing.T, w wire) {
		s := run(t, w, relay.Config{})
		s.open(200)
		s.feed(w.begin("one") + w.text("one", "AB"))
		if got := s.wait(10 * time.Second); got != want[w.name] {
			t.Errorf("heartbeat %q, want %q", got, want[w.name])
		}
	})
}

// B6 upstream: pings without data, or with empty data, that a gateway made.
func TestB6PingsOfOddShapes(t *testing.T) {
	odd := "event: ping\n\n" + "event: ping\ndata: \n\n"
	all := ms("one") + bText(0) + odd + tx(0, "A") + stop(0) + md("end_turn", 1) + me
	messagesWire.play(t, fin(all)).hits(1).planned().message("A", "end_turn").lacks("data: \n")
}

// B7: comments that a gateway made into data. One SDK throws on them; they are
// filtered, and comments stay comments.
func TestB7CommentsMadeIntoData(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		noise := ": X\n" + "data: : keepalive\n\n" + "data:\n\n" + ":\n"
		p := w.play(t, fin(w.begin("one")+w.text("one", "A")+noise+w.text("one", "B")+noise+w.end("one"))).hits(1).planned()
		p.exactly(w.begin("one"), w.text("one", "A"), ": X\n", ":\n", w.text("one", "B"), ": X\n", ":\n", w.end("one"))
		p.message("AB", w.stop)

		// They are no content: a stream of nothing else is retried.
		good := w.begin("two") + w.text("two", "hi") + w.end("two")
		w.play(t, fin(noise), fin(good)).hits(2).exactly(good)
	})
}

// A heartbeat is legal only between whole events, by the one writer, however
// slowly an event arrives (FIELD-REPORTS C9).
func TestHeartbeatsNeverFallInsideAnEvent(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		all := w.begin("one") + w.text("one", "AB") + w.end("one")
		s := run(t, w, relay.Config{Heartbeat: time.Millisecond, Hold: time.Millisecond})
		s.open(200)
		for i := range len(all) {
			s.feed(all[i : i+1])
			s.wait(time.Millisecond)
		}
		if got := strings.ReplaceAll(s.got, w.beat, ""); got != all {
			t.Errorf("client got %q", s.got)
		}
		if n := len(relaytest.Units([]byte(s.got))); n < 10 {
			t.Errorf("only %d units: no heartbeats to speak of", n)
		}
	})
}

// DESIGN §5: the head waits for content or the hold.
func TestTheHeadWaitsForContentOrTheHold(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		t.Run("content", func(t *testing.T) {
			s := run(t, w, relay.Config{})
			s.open(200)
			s.feed(w.begin("one"))
			s.wait(9 * time.Second)
			if s.head != nil || s.got != "" {
				t.Fatalf("the head left before content: %q", s.got)
			}
			s.feed(w.text("one", "A"))
			if s.head == nil || s.got != w.begin("one")+w.text("one", "A") {
				t.Errorf("content did not let the head out: %q", s.got)
			}
		})
		t.Run("hold", func(t *testing.T) {
			s := run(t, w, relay.Config{})
			s.open(200)
			s.feed(w.begin("one"))
			s.wait(10 * time.Second)
			if s.head == nil || !strings.HasPrefix(s.got, w.begin("one")) {
				t.Fatalf("the hold did not let the head out: %q", s.got)
			}
			before := s.got
			s.wait(10 * time.Second)
			if s.got != before+w.beat {
				t.Errorf("no heartbeat behind the hold: %q", s.got[len(before):])
			}
		})
		t.Run("error before content is a status", func(t *testing.T) {
			s := run(t, w, relay.Config{Recoveries: -1})
			s.open(200)
			s.feed(w.begin("one"))
			s.break_(interrupt.Reset)
			if s.head == nil || s.head.Stream || s.head.Status != 502 || s.end != relay.Clean {
				t.Errorf("head %+v, ended %v", s.head, s.end)
			}
		})
	})
}
