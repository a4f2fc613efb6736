package openairesponses_test

import (
	"reflect"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       dialect.Request
	}{
		{"the least", `{"model":"m","input":"x"}`, dialect.Request{Model: "m"}},
		{"a stored prompt", `{"prompt":{"id":"p"},"stream":true}`, dialect.Request{Stream: true}},
		{"a limit", `{"model":"m","input":[],"max_output_tokens":9}`, dialect.Request{Model: "m", MaxTokens: 9}},
		{"logprobs by include", `{"model":"m","input":"x","include":["message.output_text.logprobs"]}`, dialect.Request{Model: "m", Logprobs: true}},
		{"logprobs by number", `{"model":"m","input":"x","top_logprobs":2}`, dialect.Request{Model: "m", Logprobs: true}},
		{"reasoning", `{"model":"m","input":"x","reasoning":{"effort":"low"}}`, dialect.Request{Model: "m", Thinking: true}},
		{"tools of the caller", `{"model":"m","input":"x","tools":[{"type":"function","name":"f"},{"type":"custom"},{"type":"local_shell"},{"type":"apply_patch"},{"type":"shell"}]}`, dialect.Request{Model: "m", Tools: true}},
		{"tools with effects", `{"model":"m","input":"x","tools":[{"type":"mcp","server_label":"s"},{"type":"code_interpreter"},{"type":"image_generation"},{"type":"shell","environment":{"type":"container_auto"}},{"type":"laser"}]}`,
			dialect.Request{Model: "m", HostedTools: []string{"mcp:s", "code_interpreter", "image_generation", "shell", "laser"}}},
		{"tools in items", `{"model":"m","input":[{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","tools":[]}]},{"role":"user","content":"x"}]}`, dialect.Request{Model: "m", Tools: true}},
		{"tools with effects in items", `{"model":"m","input":[{"type":"additional_tools","tools":[{"type":"code_interpreter"}]},{"type":"tool_search_output","tools":[{"type":"mcp","server_label":"s"}]},{"type":"message","tools":[{"type":"mcp"}]}]}`,
			dialect.Request{Model: "m", HostedTools: []string{"code_interpreter", "mcp:s"}}},
		{"searching has none", `{"model":"m","input":"x","tools":[{"type":"web_search"},{"type":"web_search_preview_2025_03_11"},{"type":"file_search"}]}`, dialect.Request{Model: "m"}},
		{"a forced call", `{"model":"m","input":"x","tool_choice":"required"}`, dialect.Request{Model: "m", ForcedTool: true}},
		{"a forced function", `{"model":"m","input":"x","tool_choice":{"type":"function","name":"f"}}`, dialect.Request{Model: "m", ForcedTool: true}},
		{"allowed tools force none", `{"model":"m","input":"x","tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]}}`, dialect.Request{Model: "m"}},
		{"a schema", `{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}}}`, dialect.Request{Model: "m", Structured: true, Schema: []byte(`{"type":"object"}`)}},
		{"a grammar", `{"model":"m","input":"x","text":{"format":{"type":"lark"}}}`, dialect.Request{Model: "m", Unsplicable: "text.format lark"}},
		{"a conversation", `{"model":"m","input":"x","conversation":"conv_1"}`, dialect.Request{Model: "m", Unsplicable: "conversation", Committed: true}},
		{"text left in progress", `{"model":"m","input":[{"role":"assistant","status":"in_progress","content":[{"type":"output_text","text":"So \u00e9"}]}]}`, dialect.Request{Model: "m", Prefill: []byte("So é")}},
		{"a finished assistant turn is none", `{"model":"m","input":[{"role":"assistant","content":"So"}]}`, dialect.Request{Model: "m"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := d.Parse([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			c.want.Body, c.want.N, c.want.IncludeUsage = []byte(c.body), 1, true
			if !reflect.DeepEqual(*got, c.want) {
				t.Errorf("got  %+v\nwant %+v", *got, c.want)
			}
		})
	}
	for _, body := range []string{``, `[]`, `{"model":`, `{"model":"m","input":7}`} {
		if _, err := d.Parse([]byte(body)); err == nil {
			t.Errorf("%q was understood", body)
		}
	}
}

func TestRepairTakesMarkedReasoningOut(t *testing.T) {
	marked := `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ub1.drop"}`
	for _, c := range []struct{ name, body, want string }{
		{"nothing to do", `{"input":[{"type":"reasoning","encrypted_content":"gAAA"}]}`, ``},
		{"text is not a mark", `{"input":"ub1.drop"}`, ``},
		{"first", `{"input":[` + marked + `, {"role":"user"}],"x":1}`, `{"input":[{"role":"user"}],"x":1}`},
		{"between", `{"input":[{"role":"user"}, ` + marked + `,{"type":"message"}]}`, `{"input":[{"role":"user"},{"type":"message"}]}`},
		{"alone", `{"input":[` + marked + `]}`, `{"input":[]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := []byte(c.body)
			got := d.Repair(body)
			if c.want == "" {
				if &got[0] != &body[0] || string(got) != c.body {
					t.Errorf("%s", got)
				}
			} else if string(got) != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
