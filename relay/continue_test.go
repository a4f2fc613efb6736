package relay_test

import (
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

// FIELD-REPORTS group D, second half: what a continuation asks for, and what is
// never made up.

// D12: self-hosted servers open a new turn behind a trailing assistant message,
// unless the vendor's flag says not to; the flags go where they are known.
func TestD12ContinueThatOpensANewTurn(t *testing.T) {
	rules, _ := dialect.EngineRules("vllm")
	vllm, _ := dialect.Match(rules, dialect.Endpoint{Dialect: "chat"})
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
