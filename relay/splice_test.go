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

// D12: self-hosted servers open a new turn behind a trailing assistant message,
// unless the vendor's flag says not to; the flags go where they are known.
func TestD12ContinueThatOpensANewTurn(t *testing.T) {
	vllm, _ := dialect.EngineAbility("vllm")
	c := relay.Config{Targets: []relay.Target{{Ability: vllm}}}
	first := rst(role("one") + oc("one", "The quick brown fox"))
	p := chatWire.playWith(t, c, first, fin(role("two")+oc("two", " jumps")+chatWire.end("two"))).hits(2).message("The quick brown fox jumps", "stop")
	if member(t, p.Requests[1].Body, "continue_final_message") != "true" || member(t, p.Requests[1].Body, "add_generation_prompt") != "false" {
		t.Errorf("flags are missing: %s", p.Requests[1].Body)
	}
	if strings.Contains(string(p.Requests[0].Body), "continue_final_message") {
		t.Error("the first request carries them, too")
	}
	// A server that ignores the flag and starts a new answer is caught by its words.
	chatWire.playWith(t, c, first, fin(role("two")+oc("two", "The quick brown fox jumps over")+chatWire.end("two"))).hits(2).
		message("The quick brown fox jumps over", "stop")
	plain := chatWire.play(t, first, fin(role("two")+oc("two", " jumps")+chatWire.end("two")))
	if strings.Contains(string(plain.Requests[1].Body), "continue_final_message") {
		t.Errorf("a host of unknown abilities got vendor flags: %s", plain.Requests[1].Body)
	}
}

// D13: the continuation asks for what is left of the caller's limit, and a stop
// sequence may straddle the seam.
func TestD13OutputBudget(t *testing.T) {
	limits := map[string]string{"chat": "max_tokens", "messages": "max_tokens"}
	each(t, func(t *testing.T, w wire) {
		limited := w.without(t, "max_tokens").with(`"max_tokens":100`)
		said := strings.Repeat("abc ", 60) // 60 tokens by the estimate
		p := limited.play(t, rst(w.begin("one")+w.text("one", said)), fin(w.begin("two")+w.text("two", "end")+w.end("two"))).hits(2)
		if got := member(t, p.Requests[1].Body, limits[w.name]); got != "40" {
			t.Errorf("the continuation asks for %s tokens, want 40", got)
		}
		t.Run("nothing is left", func(t *testing.T) {
			reason := map[string]string{"chat": "length", "messages": "max_tokens"}[w.name]
			limited.play(t, rst(w.begin("one")+w.text("one", strings.Repeat("abc ", 100)))).hits(1).
				planned("finish(output_limit)").message(strings.Repeat("abc ", 100), reason)
		})
		t.Run("stop sequence over the seam", func(t *testing.T) {
			stops := map[string]string{"chat": `"stop":["END"]`, "messages": `"stop_sequences":["END"]`}[w.name]
			finish := map[string]string{"chat": "stop", "messages": "stop_sequence"}[w.name]
			p := w.with(stops).play(t, rst(w.begin("one")+w.text("one", "and so EN")), fin(w.begin("two")+w.text("two", "D more")+w.end("two"))).hits(2)
			p.message("and so EN", finish).lacks("more")
		})
	})
	t.Run("reasoning is no answer", func(t *testing.T) {
		p := chatWire.play(t, rst(role("one")+rc("one", "long thoughts")), fin(role("two")+rc("two", "short")+oc("two", "A")+chatWire.end("two"))).hits(2)
		p.planned("r4_whole_restart(reasoning_only)").message("A", "stop")
	})
}

// D14: nothing visible was said: the original request again, and no "continue
// where you left off" with nothing to continue.
func TestD14NothingToContinueIsAReplay(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		good := w.begin("two") + w.text("two", "hi") + w.end("two")
		p := w.play(t, rst(w.begin("one")), fin(good)).hits(2).planned("r4_whole_restart(nothing_visible)").exactly(good)
		if string(p.Requests[1].Body) != w.request || p.Requests[1].Derived {
			t.Errorf("not the identical request: %s", p.Requests[1].Body)
		}
	})
}

// D16: helpers concatenate the role: "assistantassistant". D17: and ids and names of
// calls: "read_fileread_file".
func TestD16D17RoleIDAndNameAreSaidOnce(t *testing.T) {
	p := chatWire.play(t, rst(role("one")+oc("one", "AB")),
		fin(chunk("two", `"role":"assistant","content":"CD"`, "null")+
			chunk("two", `"role":"assistant","tool_calls":[{"index":0,"id":"c2","type":"function","function":{"name":"f","arguments":""}}]`, "null")+
			ta("two", 0, `{"a":`)+ta("two", 0, `1}`)+fr("two", "tool_calls")+done))
	p.hits(2).message("ABCD", "tool_calls", `f{"a":1}`).has(1, `"role"`).has(1, `"c2"`).has(1, `"name":"f"`)
}

// D18: parallel calls that share index 0. They pass as they are; the checkpoint
// keeps them apart, and so does what is synthesized from it.
func TestD18ParallelCallsThatShareAnIndex(t *testing.T) {
	a, b := tc("one", 0, "a", "f", `{"p":1}`), tc("one", 0, "b", "f", `{"p":2}`)
	all := role("one") + a + b + fr("one", "tool_calls") + done
	chatWire.play(t, fin(all)).hits(1).exactly(all)

	p := chatWire.play(t, rst(role("one")+a+b)).hits(1).planned("r2_synthesize_tool_use(complete_tool_call)").clean()
	s, err := turn.Replay(p.Log)
	if err != nil {
		t.Fatal(err)
	}
	if n, cut := s.Calls(); n != 2 || cut != 0 {
		t.Errorf("the checkpoint holds %d complete and %d cut calls", n, cut)
	}
	p.has(1, `"id":"a"`).has(1, `"id":"b"`)
}

// D20: behind a tool call nothing but tool calls may follow, or the history is
// invalid.
func TestD20NothingFollowsASynthesizedToolUse(t *testing.T) {
	first := ms("one") + bText(0) + tx(0, "AB") + stop(0) + bTool(1, "c1", "f") + jx(1, `{"a":1}`) + stop(1) + bTool(2, "c2", "f") + jx(2, `{"a":`)
	p := messagesWire.play(t, rst(first)).hits(1).planned("r2_synthesize_tool_use(complete_tool_call)")
	p.message("AB", "tool_use", `f{"a":1}`).lacks("c2")
	m, err := messages.read(p.Body)
	if err != nil || m.order != "text,tool_use" {
		t.Errorf("%v, %v", m.order, err)
	}
}

// D22: a tool is only ever synthesized from what the model called; no tools, no
// tool use.
func TestD22NoToolIsInvented(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		for name, story := range map[string]wire{
			"no tools":         w.without(t, "tools"),
			"tool choice none": w.with(map[string]string{"chat": `"tool_choice":"none"`, "messages": `"tool_choice":{"type":"none"}`}[w.name]),
		} {
			t.Run(name, func(t *testing.T) {
				p := story.play(t, rst(w.begin("one")+w.text("one", "AB")), fin(w.begin("two")+w.text("two", "CD")+w.end("two"))).hits(2)
				p.planned("r1_continue_text(text)").message("ABCD", w.stop).lacks("tool_use").lacks("tool_calls")
			})
		}
	})
}

// D23: a tool that runs at the provider is not run twice, and cannot be carried
// while it is in flight.
func TestD23ServerSideToolsInFlight(t *testing.T) {
	w := messagesWire
	running := block(0, `"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}`) + jx(0, `{"query":"x"}`) + stop(0)
	w.play(t, rst(ms("one")+running)).hits(1).planned("refuse(hosted_tool:web_search)").broken("failed:hosted_tool:web_search")

	result := block(1, `"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]`) + stop(1)
	p := w.play(t, rst(ms("one")+running+result+bText(2)+tx(2, "AB")), fin(w.begin("two")+tx(0, "CD")+w.end("two"))).hits(2)
	p.planned("r1_continue_text(text)").message("ABCD", "end_turn")
	if !strings.Contains(string(p.Requests[1].Body), "web_search_tool_result") {
		t.Errorf("the finished result is not carried: %s", p.Requests[1].Body)
	}
}

// D25: interleaved choices; indexing choices[0] crashed.
func TestD25SeveralChoices(t *testing.T) {
	w := chatWire.with(`"n":2`)
	c1 := func(s string) string { return strings.Replace(s, `"index":0,"delta"`, `"index":1,"delta"`, 1) }
	all := role("one") + c1(role("one")) + oc("one", "A") + c1(oc("one", "B")) + fr("one", "stop") + c1(oc("one", "C")) + c1(fr("one", "length")) + done
	w.play(t, fin(all)).hits(1).planned().exactly(all)
	open := role("one") + c1(role("one")) + oc("one", "A") + fr("one", "stop") + c1(oc("one", "B"))
	w.play(t, rst(open)).hits(1).planned("refuse(several_choices)")
	w.play(t, rst(role("one")+c1(role("one"))), fin(all)).hits(2).exactly(all)

	odd := role("one") + "data: {\"id\":\"one\",\"object\":\"chat.completion.chunk\",\"choices\":[]}\n\n" +
		"data: {\"id\":\"one\",\"object\":\"chat.completion.chunk\",\"choices\":null}\n\n" +
		"data: {\"id\":\"one\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{}}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,\"total_tokens\":3}}\n\n" +
		oc("one", "hi") + fr("one", "stop") + done
	chatWire.play(t, fin(odd)).hits(1).planned().exactly(odd)
}
