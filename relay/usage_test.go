package relay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

// One usage record, last: the prompt of the first hop, what was delivered before
// plus what the last hop produced (DESIGN §5).

// said is eight tokens by the estimate of four bytes each.
var said = strings.Repeat("abc ", 8)

func TestUsageIsMergedIntoOneRecord(t *testing.T) {
	t.Run("messages", func(t *testing.T) {
		second := strings.Replace(ms("two"), `"input_tokens":10`, `"input_tokens":18`, 1) + bText(0) + tx(0, "end") + stop(0) + md("end_turn", 5) + me
		p := messagesWire.play(t, rst(ms("one")+bText(0)+tx(0, said)), fin(second)).hits(2).message(said+"end", "end_turn")
		p.has(1, `"output_tokens":13}`).has(1, `"input_tokens":10`).lacks(`"input_tokens":18`)
		p.counted(10, 13, 18, true)
	})
	asking := chatWire.with(`"stream_options":{"include_usage":true}`)
	t.Run("chat", func(t *testing.T) {
		p := asking.play(t, rst(role("one")+oc("one", said)), fin(role("two")+oc("two", "end")+fr("two", "stop")+use("two", 20, 5)+done)).hits(2)
		// The first prompt's count was lost with its stream: the second one's
		// less what was delivered stands in.
		p.message(said+"end", "stop").has(1, `"usage":{"prompt_tokens":12,"completion_tokens":13,"total_tokens":25}`).has(1, `"usage"`)
		p.counted(12, 13, 20, true)
	})
	t.Run("chat/three hops", func(t *testing.T) {
		p := asking.play(t, rst(role("one")+oc("one", said)), rst(role("two")+oc("two", said)),
			fin(role("three")+oc("three", "end")+fr("three", "stop")+use("three", 40, 5)+done)).hits(3)
		p.message(said+said+"end", "stop").has(1, `"completion_tokens":21`)
	})
	t.Run("chat/not asked for", func(t *testing.T) {
		p := chatWire.play(t, rst(role("one")+oc("one", said)), fin(role("two")+oc("two", "end")+fr("two", "stop")+use("two", 20, 5)+done)).hits(2)
		p.message(said+"end", "stop").lacks(`"usage"`)
		if got := member(t, p.Requests[1].Body, "stream_options"); !strings.Contains(got, `"include_usage":true`) {
			t.Errorf("the continuation does not ask for usage: %s", got)
		}
	})
	t.Run("chat/uncut passes as told", func(t *testing.T) {
		all := role("one") + oc("one", "hi") + fr("one", "stop") + use("one", 20, 5) + done
		p := asking.play(t, fin(all)).hits(1).exactly(all)
		p.counted(20, 5, 0, false)
	})
	t.Run("chat/ended by us", func(t *testing.T) {
		p := asking.play(t, rst(role("one")+oc("one", said)+tc("one", 0, "c1", "f", `{"a":1}`))).hits(1)
		p.message(said, "tool_calls", `f{"a":1}`).has(1, `"usage":{`)
	})
	t.Run("a restart counts its own", func(t *testing.T) {
		good := role("two") + oc("two", "hi") + fr("two", "stop") + use("two", 20, 5) + done
		asking.play(t, rst(role("one")), fin(good)).hits(2).exactly(good)
	})
}

// counted asserts the end note's numbers.
func (p played) counted(in, out, repaid int64, estimated bool) {
	p.t.Helper()
	for _, n := range p.Notes {
		if n.Kind == relay.NoteEnd {
			u := n.Summary.Usage
			if got, want := fmt.Sprint(u.Input, u.Output, n.Summary.Repaid, n.Estimated), fmt.Sprint(in, out, repaid, estimated); got != want {
				p.t.Errorf("counted input, output, repaid, estimated = %s, want %s", got, want)
			}
		}
	}
}

// Structured output: continued without the schema, checked over the seam.

func TestStructuredOutput(t *testing.T) {
	const schema = `"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a","b"]}}}`
	w := chatWire.with(schema)
	first := rst(role("one") + oc("one", `{"a":1,`))
	say := func(s string) []string {
		return []string{role("two"), oc("two", s), chatWire.end("two")}
	}
	t.Run("valid", func(t *testing.T) {
		p := w.play(t, first, fin(say(`"b":"x"}`)...)).hits(2).message(`{"a":1,"b":"x"}`, "stop")
		if strings.Contains(string(p.Requests[1].Body), "response_format") {
			t.Errorf("the continuation carries the schema: %s", p.Requests[1].Body)
		}
	})
	t.Run("starts the document over", func(t *testing.T) {
		w.play(t, rst(role("one")+oc("one", `{"a":1234567,`)), fin(say(`{"a":1234567,"b":"x"}`)...)).hits(2).message(`{"a":1234567,"b":"x"}`, "stop")
	})
	t.Run("invalid, the attempt failed", func(t *testing.T) {
		p := w.play(t, first, fin(say(`}} no`)...), fin(say(`{"a":1,"b":"x"}`)...)).hits(3).message(`{"a":1,"b":"x"}`, "stop")
		p.lacks("no")
	})
	t.Run("something follows the document", func(t *testing.T) {
		w.play(t, first, fin(say(`"b":"x"} I hope this helps`)...)).hits(2).message(`{"a":1,"b":"x"}`, "stop").lacks("hope")
	})
	t.Run("whole when it was cut", func(t *testing.T) {
		w.play(t, rst(role("one")+oc("one", `{"a":1,"b":"x"}`))).hits(1).planned("finish(document_complete)").message(`{"a":1,"b":"x"}`, "stop")
	})
	t.Run("does not fit the schema", func(t *testing.T) {
		w.play(t, first, fin(say(`"b":7}`)...)).hits(2).broken("failed:schema_mismatch")
	})
	t.Run("uncut, it is the provider's answer", func(t *testing.T) {
		all := role("one") + oc("one", `not json`) + chatWire.end("one")
		w.play(t, fin(all)).hits(1).exactly(all)
	})
}

// A tool that the model called itself stands, whatever tool_choice demands; what is
// satisfied is released for the continuation (WIRE 2.2).
func TestAForcedToolChoiceIsReleasedInTheContinuation(t *testing.T) {
	choice := map[string]string{"chat": `"tool_choice":"required"`, "messages": `"tool_choice":{"type":"any"}`}
	each(t, func(t *testing.T, w wire) {
		p := w.with(choice[w.name]).play(t, rst(w.begin("one")+w.text("one", "AB")+w.tool("one", "c1", "f")+w.args("one", `{"a":1}`))).hits(1)
		p.message("AB", w.asks, `f{"a":1}`).planned("r2_synthesize_tool_use(complete_tool_call)")
		s, err := turn.Replay(p.Log)
		if err != nil || !s.Finished() || s.End().Why != turn.ToolUse {
			t.Errorf("the log does not hold the end: %+v, %v", s, err)
		}
	})
}
