package relay_test

import (
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

// Mode events (DESIGN §5): arguments stream as they come, and what turns out to
// be void is retracted by name.

var announced = relay.Config{Events: true, Targets: []relay.Target{{Ability: prefilling}}}

func TestModeEventsStreamsArguments(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		s := run(t, w, announced)
		s.open(200)
		for _, part := range []string{w.begin("one") + w.text("one", "AB"), w.tool("one", "c1", "f"), w.args("one", `{"a"`), w.args("one", `:1}`), w.called("one")} {
			before := s.got
			s.feed(part)
			held := strings.TrimPrefix(part, stop(0)) // a text's end waits for what comes next
			if !strings.HasSuffix(s.got, held) || s.got == before {
				t.Errorf("held back: %q", part)
			}
		}
	})
}

func TestModeTransparentHoldsACallUntilItIsWhole(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		s := run(t, w, relay.Config{})
		s.open(200)
		s.feed(w.begin("one") + w.text("one", "AB"))
		shown := s.got
		s.feed(w.tool("one", "c1", "f") + w.args("one", `{"a"`))
		if s.got != shown {
			t.Errorf("part of a call left: %q", s.got[len(shown):])
		}
		fx := s.feed(w.args("one", `:1}`))
		if want := w.tool("one", "c1", "f") + w.args("one", `{"a"`) + w.args("one", `:1}`); s.got != shown+want {
			t.Errorf("released %q, want %q", s.got[len(shown):], want)
		}
		if !fx.Persist.Durable {
			t.Error("the call left without its checkpoint")
		}
		s.feed(w.called("one"))
	})
}

func TestModeEventsCancelsACutCallAndDoesNotReuseItsIndex(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		first := w.begin("one") + w.text("one", "AB") + w.tool("one", "c1", "f") + w.args("one", `{"a":`)
		second := w.begin("two") + w.text("two", " CD") + w.tool("two", "c2", "f") + w.args("two", `{"a":2}`) + w.called("two")
		p := w.playWith(t, announced, rst(first), fin(second)).hits(2).planned("r3_truncate_before_tool(text_before_unfinished_call)")
		p.clean().has(1, "event: tool_call_cancel").has(1, `"id":"c1"`+map[string]string{"chat": `,"name":"f","reason":"connection_reset"`, "messages": `,"name":"f","reason":"connection_reset"`}[w.name])
		if !strings.HasPrefix(string(p.Body), first) {
			t.Error("what was shown is not what was sent")
		}
		rest := string(p.Body)[strings.Index(string(p.Body), "tool_call_cancel"):]
		switch w.name {
		case "chat":
			if !strings.Contains(rest, `"tool_calls":[{"index":1,"id":"c2"`) || strings.Contains(rest, `"tool_calls":[{"index":0`) {
				t.Errorf("the new call is not at a new index: %s", rest)
			}
		case "messages":
			if !strings.Contains(rest, `"index":2,"content_block":{"type":"text"`) || !strings.Contains(rest, `"index":3,"content_block":{"type":"tool_use"`) ||
				strings.Contains(rest, `"content_block_stop","index":1}`) {
				t.Errorf("the cancelled block's index is used again, or it was closed: %s", rest)
			}
		}
	})
}

func TestModeEventsWithdrawsWhatCannotBeContinued(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		c := relay.Config{Events: true, Targets: []relay.Target{{Ability: dialect.Ability{}}}}
		good := w.begin("two") + w.text("two", "the whole answer") + w.end("two")
		p := w.playWith(t, c, rst(w.begin("one")+w.text("one", "half an ans")), fin(good)).hits(2).planned("r4_whole_restart(no_manner)")
		p.clean().has(1, "event: stream_reset").has(1, `"reason":"no_manner"`)
		if string(p.Requests[1].Body) != w.request {
			t.Error("not the identical request")
		}
		_, after, _ := strings.Cut(string(p.Body), "stream_reset")
		if !strings.Contains(after, "the whole answer") || strings.Contains(after, "half") {
			t.Errorf("behind the reset stands %s", after)
		}
		if n := strings.Count(string(p.Body), "message_start\"") + strings.Count(string(p.Body), `"role":"assistant"`); n > 2 {
			t.Errorf("a second start: %s", p.Body)
		}
	})
}

func TestModeTransparentNeverRetracts(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		first := w.begin("one") + w.text("one", "AB") + w.tool("one", "c1", "f") + w.args("one", `{"a":`)
		second := w.begin("two") + w.text("two", " CD") + w.end("two")
		w.play(t, rst(first), fin(second)).hits(2).message("AB CD", w.stop).lacks("cancel").lacks("reset")
	})
}

// R4 behind reasoning that the client saw: the old block is closed under the mark,
// the new one streams intact, and the next request has the marked one stripped.
func TestRestartBehindVisibleReasoning(t *testing.T) {
	t.Run("messages", func(t *testing.T) {
		w := messagesWire
		second := ms("two") + bThink(0) + kx(0, "new thought") + sgn(0, "c2ln") + stop(0) + bText(1) + tx(1, "A") + stop(1) + md("end_turn", 9) + me
		p := w.play(t, rst(ms("one")+bThink(0)+kx(0, "old thou")), fin(second)).hits(2).planned("r4_whole_restart(reasoning_only)").message("A", "end_turn")
		p.exactly(ms("one"), bThink(0), kx(0, "old thou"), sgn(0, turn.DropMark), stop(0),
			bThink(1), kx(1, "new thought"), sgn(1, "c2ln"), stop(1), bText(2), tx(2, "A"), stop(2), md("end_turn", 9), me)

		history := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[` +
			`{"type":"thinking","thinking":"old thou","signature":"` + turn.DropMark + `"},{"type":"thinking","thinking":"new thought","signature":"c2ln"},{"type":"text","text":"A"}]},{"role":"user","content":"more"}]}`
		want := strings.Replace(history, `{"type":"thinking","thinking":"old thou","signature":"`+turn.DropMark+`"},`, "", 1)
		if got := string(w.d.Repair([]byte(history))); got != want {
			t.Errorf("repaired %s\nwant %s", got, want)
		}
	})
	t.Run("chat", func(t *testing.T) {
		p := chatWire.play(t, rst(role("one")+rc("one", "old thou")), fin(role("two")+rc("two", "new thought")+oc("two", "A")+chatWire.end("two"))).hits(2)
		p.because(interrupt.ConnectionReset).exactly(role("one"), rc("one", "old thou"), rc("one", "new thought"), oc("one", "A"), chatWire.end("one"))
	})
}

// The caller's own trailing prefill is extended, not doubled.
func TestTheCallersOwnPrefillIsExtended(t *testing.T) {
	w := messagesWire
	w.request = strings.Replace(w.request, `{"role":"user","content":"go"}`, `{"role":"user","content":"go"},{"role":"assistant","content":"Dear"}`, 1)
	p := w.play(t, rst(w.begin("one")+tx(0, " Sir, I")), fin(w.begin("two")+tx(0, " write")+w.end("two"))).hits(2).message(" Sir, I write", "end_turn")
	if n := strings.Count(string(p.Requests[1].Body), `"role":"assistant"`); n != 1 {
		t.Errorf("%d assistant turns: %s", n, p.Requests[1].Body)
	}
	var said string
	for _, b := range []string{"Dear Sir, I", `"Dear"},{"type":"text","text":" Sir, I"`} {
		if strings.Contains(string(p.Requests[1].Body), b) {
			said = b
		}
	}
	if said == "" {
		t.Errorf("the prefill is not extended: %s", p.Requests[1].Body)
	}
	// A host that starts over repeats the caller's words, too.
	w.play(t, rst(w.begin("one")+tx(0, " Sir, I have the honour")), fin(w.begin("two")+tx(0, "Dear Sir, I have the honour to write")+w.end("two"))).
		hits(2).message(" Sir, I have the honour to write", "end_turn")
}
