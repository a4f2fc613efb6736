package relay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

// FIELD-REPORTS group A: how a stream ends.

// A1: gateways that decide by EOF or error take a cut that looks like a clean end
// (a middlebox, HTTP/1.0, Connection: close) for a success, and invent a stop.
func TestA1ACutThatLooksLikeACleanEndIsACut(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		cut := w.begin("one") + w.text("one", "AB")
		endings := map[string]interrupt.Ended{
			"last chunk":       {How: interrupt.EOF},
			"no last chunk":    {How: interrupt.Short},
			"reset":            {How: interrupt.Reset},
			"http 1.0":         {How: interrupt.EOF, Detail: "close-delimited"},
			"invalid framing":  {How: interrupt.Garbled},
			"goaway":           {How: interrupt.GoneAway},
			"reset, not begun": {How: interrupt.Reset, NotSent: true},
		}
		seen := map[string]string{}
		for name, end := range endings {
			first := body(cut)
			first.End = end
			p := w.play(t, first, fin(w.begin("two")+w.text("two", "CD")+w.end("two"))).hits(2).message("ABCD", w.stop)
			seen[string(p.Body)] = name
			p.planned("r1_continue_text(text)")

			spent := w.playWith(t, relay.Config{Recoveries: -1}, first).hits(1).broken("failed:budget_spent")
			if !strings.HasPrefix(string(spent.Body), cut) {
				t.Errorf("%s: what was said is lost: %s", name, spent.Body)
			}
			spent.lacks(`"` + w.stop + `"`).lacks("[DONE]").lacks("message_stop")
		}
		if len(seen) != 1 {
			t.Errorf("the client sees %d different responses: %v", len(seen), seen)
		}
	})
}

// A2: no [DONE], the finish merged into the last content chunk, usage as the very
// last frame: all of them complete.
func TestA2ACompleteStreamIsNotADrop(t *testing.T) {
	merged := role("one") + chunk("one", `"content":"hi"`, "stop")
	t.Run("chat/finish merged, no marker", func(t *testing.T) {
		chatWire.play(t, fin(merged)).hits(1).exactly(merged, done)
	})
	t.Run("chat/usage last, no marker", func(t *testing.T) {
		all := role("one") + oc("one", "hi") + fr("one", "stop") + use("one", 3, 4)
		chatWire.play(t, fin(all)).hits(1).exactly(all, done)
	})
	t.Run("chat/cut behind the finish", func(t *testing.T) {
		all := role("one") + oc("one", "hi") + fr("one", "stop")
		chatWire.play(t, rst(all)).hits(1).exactly(all, done)
	})
	t.Run("messages/no message_stop", func(t *testing.T) {
		all := ms("one") + bText(0) + tx(0, "hi") + stop(0) + md("end_turn", 2)
		messagesWire.play(t, fin(all)).hits(1).exactly(all, me)
	})
	t.Run("messages/reset behind message_delta", func(t *testing.T) {
		all := ms("one") + bText(0) + tx(0, "hi") + stop(0) + md("end_turn", 2)
		messagesWire.play(t, rst(all)).hits(1).exactly(all, me)
	})
}

// A3: finish seen, then neither terminator nor close, only comments that keep the
// byte clock alive. The client waited for ever.
func TestA3AWarmSocketBehindTheFinishDoesNotHang(t *testing.T) {
	stories := []struct {
		w      wire
		stream string
		pings  string
		end    string
	}{
		{chatWire, role("one") + tc("one", 0, "c1", "f", `{"a":1}`) + fr("one", "tool_calls"), ": hb\n\n", done},
		{messagesWire, ms("one") + bTool(0, "c1", "f") + jx(0, `{"a":1}`) + stop(0) + md("tool_use", 5), ping, me},
	}
	for _, s := range stories {
		t.Run(s.w.name, func(t *testing.T) {
			p := s.w.play(t, pinging(200*time.Millisecond, s.pings, s.stream)).hits(1).planned().clean()
			if p.Took > 3*time.Second {
				t.Errorf("took %v, the grace is 2 s", p.Took)
			}
			p.message("", s.w.asks, `f{"a":1}`)
			if got := strings.ReplaceAll(string(p.Body), s.pings, ""); got != s.stream+s.end {
				t.Errorf("client got %s", got)
			}
		})
	}
}

// A5: the last event lacks its blank line. It is delivered, well framed, if it is
// whole; half of it is a cut, and no byte of the half leaves.
func TestA5TheLastEventHasNoBlankLine(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		all := w.begin("one") + w.text("one", "AB") + w.end("one")
		for _, missing := range []int{1, 2} {
			w.play(t, fin(all[:len(all)-missing])).hits(1).exactly(all)
		}
		finish := len(w.begin("one") + w.text("one", "AB"))
		next := all[finish:]
		next = next[:strings.Index(next, "\n\n")+2]
		half := finish + len(next)/2
		w.play(t, fin(all[:half]), fin(w.begin("two")+w.text("two", "CD")+w.end("two"))).
			hits(2).message("ABCD", w.stop)
	})
	t.Run("messages/without data", func(t *testing.T) {
		all := ms("one") + bText(0) + tx(0, "AB") + stop(0) + md("end_turn", 2)
		messagesWire.play(t, fin(all+"event: message_stop\n")).hits(1).exactly(all, me)
	})
}

// A6: half an event left in the buffer was classed as an invalid response, which
// was not in anybody's retry list.
func TestA6HalfAnEventIsATruncation(t *testing.T) {
	second := messagesWire.begin("two") + tx(0, "CD") + messagesWire.end("two")
	first := ms("one") + bThink(0) + kx(0, "hm") + "event: content_bl"
	p := messagesWire.play(t, fin(first), fin(second)).hits(2).because(interrupt.TruncatedEOF).planned("r4_whole_restart(reasoning_only)")
	p.message("CD", "end_turn").lacks("content_bl\n")

	chatWire.play(t, fin(role("one")+oc("one", "AB")+`data: {"id":"one","cho`), fin(role("two")+oc("two", "CD")+chatWire.end("two"))).
		hits(2).because(interrupt.TruncatedEOF).message("ABCD", "stop")
}

// A7: a 200 that never says anything is retried before anything is committed.
func TestA7A200ThatNeverSaysAnything(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		good := w.begin("two") + w.text("two", "hi") + w.end("two")
		hollow := map[string]string{"no bytes": "", "comments": ": a\n\n: b\n\n", "blank lines": "\n\n\n\n", "only the marker": done}
		if w.name == "messages" {
			hollow["only the marker"] = me
		}
		for name, stream := range hollow {
			t.Run(name, func(t *testing.T) {
				w.play(t, fin(stream), fin(good)).hits(2).planned("r4_whole_restart(nothing_visible)").exactly(good)
				silent := fin(stream)
				p := w.play(t, silent, silent, silent, silent).hits(4)
				if p.Head == nil || p.Head.Stream || p.Head.Status != 502 || !p.Head.Final {
					t.Errorf("head %+v", p.Head)
				}
			})
		}
	})
}

// A8: nothing is forwarded behind the terminal, and nobody waits behind it.
func TestA8NothingIsReadBehindTheTerminal(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		all := w.begin("one") + w.text("one", "hi") + w.end("one")
		late := w.text("one", "ZZ") + w.end("one")
		for name, r := range map[string]relaytest.Reply{
			"one read":  hang(all + late),
			"two reads": hang(all, late),
			"silence":   hang(all),
		} {
			t.Run(name, func(t *testing.T) {
				if p := w.play(t, r).hits(1).exactly(all); p.Took > 100*time.Millisecond {
					t.Errorf("took %v", p.Took)
				}
			})
		}
		// Nor behind the terminal of a splice.
		p := w.play(t, rst(w.begin("one")+w.text("one", "AB")), hang(w.begin("two")+w.text("two", "CD")+w.end("two")+late))
		p.hits(2).message("ABCD", w.stop).lacks("ZZ")
	})
}

// A9: arguments cut by the token cap are the provider's answer. It is neither
// recovered nor rewritten.
func TestA9TruncatedByLengthIsANormalEnd(t *testing.T) {
	t.Run("chat", func(t *testing.T) {
		all := role("one") + tc("one", 0, "c1", "f", `{"a":"x`) + fr("one", "length") + done
		chatWire.play(t, fin(all)).hits(1).planned().exactly(all)
	})
	t.Run("messages", func(t *testing.T) {
		all := ms("one") + bTool(0, "c1", "f") + jx(0, `{"a":"x`) + stop(0) + md("max_tokens", 9) + me
		messagesWire.play(t, fin(all)).hits(1).planned().exactly(all)
	})
}

// A10: all text in the reasoning and a stop is a complete answer for a transparent
// proxy: recovery is triggered by facts of the protocol, not by judging content.
func TestA10ReasoningOnlyIsAnAnswer(t *testing.T) {
	t.Run("chat", func(t *testing.T) {
		all := role("one") + rc("one", "I think so") + fr("one", "stop") + done
		chatWire.play(t, fin(all)).hits(1).exactly(all)
	})
	t.Run("messages", func(t *testing.T) {
		all := ms("one") + bThink(0) + kx(0, "I think so") + sgn(0, "c2ln") + stop(0) + md("end_turn", 9) + me
		messagesWire.play(t, fin(all)).hits(1).exactly(all)
	})
}

// A11: the core job. A reset, or a flow that a NAT forgot: one continuous message.
func TestA11ResetOrHalfOpenConnectionGoesOn(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		second := fin(w.begin("two") + w.text("two", "CD") + w.end("two"))
		w.play(t, rst(w.begin("one")+w.text("one", "AB")), second).hits(2).because(interrupt.ConnectionReset).message("ABCD", w.stop)
		p := w.play(t, hang(w.begin("one")+w.text("one", "AB")), second).hits(2).because(interrupt.IdleStall).message("ABCD", w.stop)
		if p.Took < 60*time.Second || p.Took > 62*time.Second {
			t.Errorf("noticed after %v, the byte clock is 60 s", p.Took)
		}
		p.has(6, w.beat)
	})
}

// Every order of several interruptions extends one prefix.
func TestSecondAndThirdInterruptionExtendOnePrefix(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		p := w.play(t,
			rst(w.begin("one")+w.text("one", "The quick ")),
			fin(w.begin("two")+w.text("two", "brown ")),
			rst(w.begin("three")+w.text("three", "fox ")),
			fin(w.begin("four")+w.text("four", "jumps")+w.end("four")),
		).hits(4).message("The quick brown fox jumps", w.stop)
		for i, want := range []string{"The quick", "The quick brown", "The quick brown fox"} {
			said, asked, err := relaytest.Asked(p.Requests[i+1].Body)
			if err != nil || asked || said != want {
				t.Errorf("attempt %d continues from %q (asked %v, %v), want %q", i+2, said, asked, err, want)
			}
			if n := strings.Count(string(p.Requests[i+1].Body), `"assistant"`); n != 1 {
				t.Errorf("attempt %d has %d assistant turns", i+2, n)
			}
		}
		p.lacks("two").lacks("three").lacks("four")
	})
}

func ExampleStream() {
	w := relaytest.World{Dialect: chat.d, Config: relay.Config{Targets: []relay.Target{{Ability: prefilling}}}}
	res, err := w.Run([]byte(chatWire.request), func(q relaytest.Request) relaytest.Reply {
		if q.N == 1 {
			return rst(role("one") + oc("one", "The stream broke "))
		}
		return fin(role("two") + oc("two", "and went on.") + fr("two", "stop") + done)
	})
	if err != nil {
		panic(err)
	}
	m, err := chat.read(res.Body)
	fmt.Println(m.text, err, res.Plans())
	// Output: The stream broke and went on. <nil> [r1_continue_text(text)]
}
