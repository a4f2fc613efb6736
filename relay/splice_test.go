package relay_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// FIELD-REPORTS group D: splicing and continuation.

// with is w with members added to its request.
func (w wire) with(members string) wire {
	w.request = strings.TrimSuffix(w.request, "}") + "," + members + "}"
	return w
}

// without is w without tools in its request.
func (w wire) without(t *testing.T, member string) wire {
	t.Helper()
	var q map[string]json.RawMessage
	if err := json.Unmarshal([]byte(w.request), &q); err != nil {
		t.Fatal(err)
	}
	delete(q, member)
	b, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	w.request = string(b)
	return w
}

// only is a config whose one target can do manners.
func only(manners ...turn.Manner) relay.Config {
	return relay.Config{Targets: []relay.Target{{Name: "test", Ability: dialect.Ability{Manners: manners}}}}
}

// member reads one member of a request body.
func member(t *testing.T, body []byte, name string) string {
	t.Helper()
	var q map[string]json.RawMessage
	if err := json.Unmarshal(body, &q); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return string(q[name])
}

// D1: the second message_start in one response made SDKs throw, and merged two
// generations' signed thinking into one turn.
func TestD1OneStartOneEndOneID(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		p := w.play(t, rst(w.begin("msg_1")+w.text("msg_1", "AB")), fin(w.begin("msg_2")+w.text("msg_2", "CD")+w.end("msg_2")))
		p.hits(2).exactly(w.begin("msg_1"), w.text("msg_1", "AB"), w.text("msg_1", "CD"),
			strings.ReplaceAll(w.end("msg_1"), `"output_tokens":7`, `"output_tokens":7`))
	})
}

// D2: the continuation starts again at index 0. Indices at the client are
// consecutive, each opened and closed once.
func TestD2BlockIndicesAcrossTheSeam(t *testing.T) {
	t.Run("messages", func(t *testing.T) {
		first := ms("one") + bThink(0) + kx(0, "hm") + sgn(0, "c2ln") + stop(0) + bText(1) + tx(1, "AB")
		second := ms("two") + bText(0) + tx(0, "CD") + stop(0) + bTool(1, "c2", "f") + jx(1, `{"a":1}`) + stop(1) + md("tool_use", 9) + me
		p := messagesWire.play(t, rst(first), fin(second)).hits(2)
		p.message("ABCD", "tool_use", `f{"a":1}`)
		for i := range 3 {
			p.has(1, fmt.Sprintf(`"content_block_start","index":%d,`, i)).has(1, fmt.Sprintf(`"content_block_stop","index":%d}`, i))
		}
		p.lacks(`"index":3`)
	})
	t.Run("chat", func(t *testing.T) {
		first := role("one") + oc("one", "AB")
		second := role("two") + oc("two", "CD") + tc("two", 0, "c2", "f", `{"a":1}`) + fr("two", "tool_calls") + done
		chatWire.play(t, rst(first), fin(second)).hits(2).message("ABCD", "tool_calls", `f{"a":1}`)
	})
	t.Run("messages/an open block is closed before the error", func(t *testing.T) {
		messagesWire.playWith(t, relay.Config{Recoveries: -1}, rst(ms("one")+bText(0)+tx(0, "AB"))).
			broken("failed:budget_spent").has(1, `"content_block_stop","index":0}`)
	})
}

// D3: arguments that end at {"path":"/a","content":"lin were closed by somebody and
// run with half their input.
func TestD3ACutCallIsNeverRunnable(t *testing.T) {
	const cut, whole, other = `{"path":"/a","content":"lin`, `{"path":"/a","content":"line"}`, `{"path":"/b"}`
	each(t, func(t *testing.T, w wire) {
		first := w.begin("one") + w.text("one", "Writing: ") + w.tool("one", "c1", "f") + w.args("one", cut)
		for name, args := range map[string]string{"continues": whole, "says otherwise": other} {
			t.Run(name, func(t *testing.T) {
				second := w.begin("two") + w.text("two", "now ") + w.tool("two", "c2", "f") + w.args("two", args) + w.called("two")
				p := w.play(t, fin(first), fin(second)).hits(2).planned("r3_truncate_before_tool(text_before_unfinished_call)")
				p.message("Writing: now ", w.asks, "f"+args).lacks("lin\"").lacks(`"c1"`)
			})
		}
		t.Run("fails", func(t *testing.T) {
			down := refusal(500, `{"error":{"message":"down"}}`)
			p := w.play(t, fin(first), down, down, down).hits(4).broken("failed:budget_spent")
			p.lacks("c1").lacks("/a").lacks(w.asks)
		})
		t.Run("alone, nothing is visible", func(t *testing.T) {
			first, again := tc("one", 0, "c1", "f", cut), role("two")+tc("two", 0, "c2", "f", whole)+fr("two", "tool_calls")+done
			first = role("one") + first
			if w.name == "messages" {
				first = ms("one") + bTool(0, "c1", "f") + jx(0, cut)
				again = ms("two") + bTool(0, "c2", "f") + jx(0, whole) + stop(0) + md("tool_use", 9) + me
			}
			w.play(t, fin(first), fin(again)).hits(2).planned("r4_whole_restart(nothing_visible)").exactly(again)
		})
	})
}

// D4: the model restarts, repeats the tail, glues words, opens a fence again.
func TestD4TheSeam(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		say := func(s string) relaytest.Reply { return fin(w.begin("two") + w.text("two", s) + w.end("two")) }
		first := rst(w.begin("one") + w.text("one", "The quick brown fox"))
		const want = "The quick brown fox jumps"
		for name, c := range map[string]struct {
			says string
			how  relay.Config
		}{
			"goes on":                {" jumps", only(turn.Prefill)},
			"goes on, asked":         {"The quick brown fox jumps", only(turn.Asked)},
			"repeats the tail":       {"brown fox jumps", only(turn.Asked)},
			"starts over":            {"The quick brown fox jumps", only(turn.Prefill)},
			"preamble, then repeats": {"Sure! Here is the continuation:\n\nThe quick brown fox jumps", only(turn.Asked)},
		} {
			t.Run(name, func(t *testing.T) { w.playWith(t, c.how, first, say(c.says)).hits(2).message(want, w.stop) })
		}
		for name, says := range map[string]string{
			"another thought": "Sure! Here is",
			"glued word":      "x jumps",
		} {
			t.Run(name, func(t *testing.T) {
				p := w.playWith(t, only(turn.Asked), first, say(says), say("The quick brown fox jumps")).hits(3)
				p.because(interrupt.ConnectionReset, interrupt.SeamFailed).message(want, w.stop)
			})
		}
		t.Run("a short accidental overlap is text", func(t *testing.T) {
			w.playWith(t, only(turn.Prefill), rst(w.begin("one")+w.text("one", "It is very ")), say("very good")).
				hits(2).message("It is very very good", w.stop)
		})
		t.Run("a fence that is opened again", func(t *testing.T) {
			code := "Here:\n```go\nfunc main() {\n\tprintln(\"a\")\n"
			w.playWith(t, only(turn.Asked), rst(w.begin("one")+w.text("one", code)), say("```go\nfunc main() {\n\tprintln(\"a\")\n}\n```\n")).
				hits(2).message(code+"}\n```\n", w.stop)
		})
		t.Run("every seam fails", func(t *testing.T) {
			p := w.playWith(t, only(turn.Asked), first, say("Sure! Here is"), say("Sure! Here is"), say("Sure! Here is")).hits(4)
			p.broken("failed:budget_spent").lacks("Sure")
		})
		t.Run("nothing is missing", func(t *testing.T) {
			w.playWith(t, only(turn.Asked), first, say("[[COMPLETE]]")).hits(2).message("The quick brown fox", w.stop).lacks("COMPLETE")
			w.playWith(t, only(turn.Prefill), first, fin(w.begin("two")+w.end("two"))).hits(2).message("The quick brown fox", w.stop)
		})
	})
}

// D5: newer models answer a trailing assistant turn with a 400, which hid the
// first error and made a recoverable cut a hard failure.
func TestD5PrefillRejectedIsAskedInTheNextManner(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		first := rst(w.begin("one") + w.text("one", "The quick brown fox"))
		no := refusal(400, `{"type":"error","error":{"type":"invalid_request_error","message":"This model does not support assistant message prefill. The conversation must end with a user message."}}`)
		good := fin(w.begin("two") + w.text("two", "The quick brown fox jumps") + w.end("two"))
		one := relay.Config{Recoveries: 1}
		p := w.playWith(t, one, first, no, good).hits(3).message("The quick brown fox jumps", w.stop)
		if p.Took > 0 && p.Requests[2].At.Sub(p.Requests[1].At) > 10_000_000 {
			t.Errorf("the next manner waited %v", p.Requests[2].At.Sub(p.Requests[1].At))
		}
		if _, asked, err := relaytest.Asked(p.Requests[1].Body); asked || err != nil {
			t.Errorf("the first continuation is no prefill (%v)", err)
		}
		if _, asked, err := relaytest.Asked(p.Requests[2].Body); !asked || err != nil {
			t.Errorf("the second continuation does not ask (%v)", err)
		}
		var demoted int
		for _, n := range p.Notes {
			if n.Kind == relay.NoteDemoted && n.Manner == turn.Prefill {
				demoted++
			}
		}
		if demoted != 1 {
			t.Errorf("%d notes of a demotion", demoted)
		}
		// If all fails the client is told the first fault, not that 400.
		p = w.playWith(t, relay.Config{Recoveries: 1, Targets: only(turn.Prefill).Targets}, first, no).hits(2).broken("failed:permanent")
		p.lacks("prefill").has(1, interrupt.ConnectionReset.String())
	})
}

// D6: strict providers refuse trailing whitespace and blank blocks. What is trimmed
// from the request copy is neither doubled nor lost at the seam.
func TestD6TrailingWhitespace(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		for _, next := range []string{"\n\n- a", "- a"} {
			t.Run(fmt.Sprintf("%q", next), func(t *testing.T) {
				p := w.play(t, rst(w.begin("one")+w.text("one", "list:\n\n")), fin(w.begin("two")+w.text("two", next)+w.end("two"))).hits(2)
				if said, _, err := relaytest.Asked(p.Requests[1].Body); err != nil || said != "list:" {
					t.Errorf("continues from %q, %v", said, err)
				}
				p.message("list:\n\n- a", w.stop)
			})
		}
		t.Run("nothing but whitespace", func(t *testing.T) {
			p := w.play(t, rst(w.begin("one")+w.text("one", "\n\n")), fin(w.begin("two")+w.text("two", "\n\nHello")+w.end("two"))).hits(2)
			p.planned("r4_whole_restart(blank_text_only)").message("\n\nHello", w.stop)
			if string(p.Requests[1].Body) != w.request {
				t.Errorf("not the identical request: %s", p.Requests[1].Body)
			}
		})
	})
}

// D7: signature bytes are private until their block closes.
func TestD7AnIncompleteSignatureIsKeptBack(t *testing.T) {
	w := messagesWire
	second := ms("two") + bThink(0) + kx(0, "again") + sgn(0, "d2hvbGU=") + stop(0) + bText(1) + tx(1, "CD") + stop(1) + md("end_turn", 9) + me
	p := w.play(t, rst(ms("one")+bThink(0)+kx(0, "hm")+sgn(0, "abc")), fin(second)).hits(2)
	p.message("CD", "end_turn").lacks("abc").has(1, turn.DropMark).has(1, "d2hvbGU=")
	for _, q := range p.Requests {
		if strings.Contains(string(q.Body), "abc") {
			t.Errorf("a request holds the partial signature: %s", q.Body)
		}
	}
}

// D8: completed signed thinking is kept, byte for byte, in the continuation.
func TestD8FinishedThinkingIsKept(t *testing.T) {
	w := messagesWire.with(`"thinking":{"type":"enabled","budget_tokens":1024}`)
	p := w.playWith(t, only(turn.Asked), rst(ms("one")+bThink(0)+kx(0, "h\u00e9 <m>")+sgn(0, "c2ln+/==")+stop(0)+bText(1)+tx(1, "A thought")),
		fin(w.begin("two")+tx(0, "A thought is here")+w.end("two"))).hits(2).message("A thought is here", "end_turn")
	if q := string(p.Requests[1].Body); !strings.Contains(q, `{"type":"thinking","thinking":"hé <m>","signature":"c2ln+/=="}`) {
		t.Errorf("the signed block was changed: %s", q)
	}
}

// D10: a whole retry behind partial output doubles it; a wired-in system prompt
// overrides the caller's.
func TestD10NoWholeRetryBehindOutput(t *testing.T) {
	w := messagesWire.with(`"system":"Be brief."`)
	p := w.play(t, fin(w.begin("one")+tx(0, "AB"), errEvent("overloaded_error")), fin(w.begin("two")+tx(0, "ABCD")+w.end("two"))).hits(2)
	p.because(interrupt.Provider5xxMidStream).message("ABCD", "end_turn")
	if got := member(t, p.Requests[1].Body, "system"); got != `"Be brief."` {
		t.Errorf("system is %s", got)
	}
	c := chatWire
	c.request = strings.Replace(c.request, `[{"role":"user"`, `[{"role":"system","content":"Be brief."},{"role":"user"`, 1)
	p = c.playWith(t, only(turn.Asked), rst(role("one")+oc("one", "AB. Then")), fin(role("two")+oc("two", "AB. Then CD")+c.end("two"))).hits(2).message("AB. Then CD", "stop")
	var q struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(p.Requests[1].Body, &q); err != nil || q.Messages[0].Content != "Be brief." || strings.Count(string(p.Requests[1].Body), `"system"`) != 1 {
		t.Errorf("system turn changed: %s", p.Requests[1].Body)
	}
}
