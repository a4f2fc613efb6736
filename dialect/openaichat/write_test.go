package openaichat

import (
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

func TestWrite(t *testing.T) {
	const chunk = `data: {"id":"chatcmpl-A1","object":"chat.completion.chunk","created":17,"model":"m-1","service_tier":"default","system_fingerprint":"fp_1","choices":`
	said := spoken("Hi")
	said.Head = []byte(`{"id":"chatcmpl-A1","object":"chat.completion.chunk","created":17,"model":"m-1","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"role":"assistant"}}],"usage":null,"obfuscation":"x"}`)
	said.Blocks = append(said.Blocks,
		turn.Block{Kind: turn.Call, Index: 0, ID: "a", Name: `f"x`, Text: []byte(`{\"q\":1}`), Closed: true},
		turn.Block{Kind: turn.Call, Index: 1, ID: "b", Name: "g", Closed: true},
		turn.Block{Kind: turn.CustomCall, Index: 2, ID: "c", Name: "sh", Text: []byte(`ls\n`), Closed: true},
		turn.Block{Kind: turn.Reasoning, Name: "reasoning", Text: []byte("hm")},
		turn.Block{Kind: turn.Unknown, Name: "audio"})
	r := request(t)
	d := Dialect{}
	usage := turn.Usage{Known: true, Input: 3, Output: 4}
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"a call", d.Emit(nil, r, said, 1), chunk + `[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f\"x","arguments":"{\"q\":1}"}}]},"finish_reason":null}],"usage":null}` + "\n\n"},
		{"a call without arguments", d.Emit(nil, r, said, 2), chunk + `[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},"finish_reason":null}],"usage":null}` + "\n\n"},
		{"a custom call", d.Emit(nil, r, said, 3), chunk + `[{"index":0,"delta":{"tool_calls":[{"index":2,"id":"c","type":"custom","custom":{"name":"sh","input":"ls\n"}}]},"finish_reason":null}],"usage":null}` + "\n\n"},
		{"reasoning, under the name it came in", d.Emit(nil, r, said, 4), chunk + `[{"index":0,"delta":{"reasoning":"hm"},"finish_reason":null}],"usage":null}` + "\n\n"},
		{"an unknown block is not rebuilt", d.Emit(nil, r, said, 5), ``},
		{"the end", d.Finish(nil, r, said, dialect.Ending{Why: turn.ToolUse, Usage: usage}), chunk + `[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}` + "\n\n" + chunk + `[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}` + "\n\ndata: [DONE]\n\n"},
		{"the end in the provider's words", d.Finish(nil, r, said, dialect.Ending{Why: turn.OtherEnd, Reason: "eos"}), chunk + `[{"index":0,"delta":{},"finish_reason":"eos"}],"usage":null}` + "\n\ndata: [DONE]\n\n"},
		{"only the terminator is missing", d.Finish(nil, r, said, dialect.Ending{FinishSent: true, UsageSent: true, Usage: usage}), "data: [DONE]\n\n"},
		{"usage that nobody asked for", d.Finish(nil, &dialect.Request{}, said, dialect.Ending{FinishSent: true, Usage: usage}), "data: [DONE]\n\n"},
		{"heartbeat (B5: one line, no blank line)", d.Heartbeat(nil, nil, nil), ": keep-alive\n"},
		{"failure", d.Fail(nil, said, dialect.Failure{}), `data: {"error":{"message":"the provider's stream was interrupted","type":"upstream_error","param":null,"code":"stream_interrupted"}}` + "\n\n"},
		{"failure with its reasons", d.Fail(nil, said, dialect.Failure{Cause: "IdleStall", Reason: "budget", Type: "server_error", Code: "500", Message: "m"}), `data: {"error":{"message":"m (IdleStall; not recovered: budget)","type":"server_error","param":null,"code":"500"}}` + "\n\n"},
		{"the provider's own error", d.Fail(nil, said, dialect.Failure{Raw: []byte(`{"error":{"message":"x","extra":1}}`), Reason: "r"}), `data: {"error":{"message":"x","extra":1}}` + "\n\n"},
		{"an error that SDKs would not notice is reshaped", d.Fail(nil, said, dialect.Failure{Raw: []byte(`{"object":"error","message":"x"}`), Message: "x", Type: "t", Code: "c"}), `data: {"error":{"message":"x","type":"t","param":null,"code":"c"}}` + "\n\n"},
		{"a call is retracted", d.Retract(nil, said, 1, "cut"), "event: tool_call_cancel\n" + `data: {"id":"a","name":"f\"x","reason":"cut"}` + "\n\n"},
		{"the stream is retracted", d.Retract(nil, said, -1, "restart"), "event: stream_reset\n" + `data: {"reason":"restart"}` + "\n\n"},
		{"nothing closes a block", d.CloseBlock(nil, said, 0), ""},
		{"nothing drops reasoning", d.DropReasoning(nil, said, 4), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if string(c.got) != c.want {
				t.Errorf("got  %s\nwant %s", c.got, c.want)
			}
		})
	}
}

// Nothing was said and no role was sent: the call brings it.
func TestEmitSpeaksInARole(t *testing.T) {
	said := &turn.Snapshot{Head: []byte(`{"id":"x","choices":[]}`), Blocks: []turn.Block{{Kind: turn.Call, ID: "a", Name: "f", Closed: true}}}
	want := `data: {"id":"x","object":"chat.completion.chunk","created":0,"model":"","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}]}` + "\n\n"
	if got := string(Dialect{}.Emit(nil, request(t), said, 0)); got != want {
		t.Errorf("got %s", got)
	}
}

func TestFinishOfAnUnfinishedTurnIsABug(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an end was invented")
		}
	}()
	Dialect{}.Finish(nil, request(t), spoken("a"), dialect.Ending{})
}

func TestFinishReasons(t *testing.T) {
	for reason, want := range map[string]turn.Why{
		"stop": turn.Stopped, "length": turn.Length, "model_length": turn.Length, "tool_calls": turn.ToolUse, "function_call": turn.ToolUse,
		"content_filter": turn.Filtered, "error": turn.Broken, "insufficient_system_resource": turn.Broken, "network_error": turn.Broken, "eos": turn.OtherEnd,
	} {
		if got := finishWhy([]byte(reason), nil); got != want {
			t.Errorf("%s: %s, want %s", reason, got, want)
		}
	}
	for _, native := range []string{"error", "network_error"} {
		if got := finishWhy([]byte("stop"), []byte(native)); got != turn.Broken {
			t.Errorf("native %s: %s", native, got)
		}
	}
	for why, want := range map[turn.Why]string{turn.Stopped: "stop", turn.Length: "length", turn.ToolUse: "tool_calls", turn.Filtered: "content_filter", turn.OtherEnd: "stop"} {
		if got := finishReason(why); got != want {
			t.Errorf("%s: %s, want %s", why, got, want)
		}
	}
}
