package anthropic_test

import (
	"reflect"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
)

func TestParse(t *testing.T) {
	const user = `"messages":[{"role":"user","content":"Q"}]`
	base := dialect.Request{Model: "m", N: 1, IncludeUsage: true}
	for _, tt := range []struct {
		name, body string
		want       func(*dialect.Request)
	}{
		{"nothing special", `{"model":"m",` + user + `}`, func(*dialect.Request) {}},
		{"stream, limit and stops", `{"model":"m","stream":true,"max_tokens":77,"stop_sequences":["A","\u0042\""],` + user + `}`, func(r *dialect.Request) {
			r.Stream, r.MaxTokens, r.Stops = true, 77, []string{"A", `B"`}
		}},
		{"escaped keys are keys", `{"mod\u0065l":"m","stre\u0061m":true,` + user + `}`, func(r *dialect.Request) { r.Stream = true }},
		{"thinking enabled", `{"model":"m","thinking":{"type":"enabled","budget_tokens":1024},` + user + `}`, func(r *dialect.Request) { r.Thinking = true }},
		{"thinking adaptive", `{"model":"m","thinking":{"type":"adaptive"},` + user + `}`, func(r *dialect.Request) { r.Thinking = true }},
		{"thinking disabled", `{"model":"m","thinking":{"type":"disabled"},` + user + `}`, func(*dialect.Request) {}},
		{"tools of the caller", `{"model":"m","tools":[{"name":"f","input_schema":{}},{"type":"custom","name":"g","input_schema":{}}],` + user + `}`, func(r *dialect.Request) { r.Tools = true }},
		{"tools whose schema is Anthropic's run at the caller too", `{"model":"m","tools":[{"type":"bash_20250124","name":"bash"}],` + user + `}`, func(r *dialect.Request) { r.Tools = true }},
		{"text editor, computer, memory", `{"model":"m","tools":[{"type":"text_editor_20250728","name":"e"},{"type":"computer_20250124","name":"c"},{"type":"memory_20250818","name":"memory"}],` + user + `}`, func(r *dialect.Request) { r.Tools = true }},
		{"hosted tools", `{"model":"m","tools":[{"type":"web_search_20250305","name":"web_search"},{"type":"code_execution_20250825","name":"code_execution"},{"type":"tool_of_tomorrow"}],` + user + `}`, func(r *dialect.Request) {
			r.HostedTools = []string{"code_execution", "tool_of_tomorrow"} // searching has no effect
		}},
		{"an mcp server is named once", `{"model":"m","mcp_servers":[{"name":"deep"},{"name":"b"}],"tools":[{"type":"mcp_toolset","mcp_server_name":"deep"}],` + user + `}`, func(r *dialect.Request) {
			r.HostedTools = []string{"mcp:deep", "mcp:b"}
		}},
		{"any tool is forced", `{"model":"m","tool_choice":{"type":"any"},` + user + `}`, func(r *dialect.Request) { r.ForcedTool = true }},
		{"one tool is forced", `{"model":"m","tool_choice":{"type":"tool","name":"f"},` + user + `}`, func(r *dialect.Request) { r.ForcedTool = true }},
		{"auto forces nothing", `{"model":"m","tool_choice":{"type":"auto"},` + user + `}`, func(*dialect.Request) {}},
		{"output_format", `{"model":"m","output_format":{"type":"json_schema","schema":{"a": 1}},` + user + `}`, func(r *dialect.Request) {
			r.Structured, r.Schema = true, []byte(`{"a": 1}`)
		}},
		{"output_config.format", `{"model":"m","output_config":{"effort":"low","format":{"type":"json_schema","schema":{"a": 1}}},` + user + `}`, func(r *dialect.Request) {
			r.Structured, r.Schema = true, []byte(`{"a": 1}`)
		}},
		{"effort alone is no structure", `{"model":"m","output_config":{"effort":"low"},` + user + `}`, func(*dialect.Request) {}},
		{"a string prefill", `{"model":"m","messages":[{"role":"user","content":"Q"},{"role":"assistant","content":"A \u00e9"}]}`, func(r *dialect.Request) { r.Prefill = []byte("A é") }},
		{"a prefill behind a hosted result", `{"model":"m","messages":[{"role":"assistant","content":[{"type":"text","text":"no"},{"type":"web_search_tool_result"},{"type":"text","text":"A"},{"type":"text","text":"B"}]}]}`, func(r *dialect.Request) { r.Prefill = []byte("AB") }},
		{"an assistant message in the middle is no prefill", `{"model":"m","messages":[{"role":"assistant","content":"A"},{"role":"user","content":"Q"}]}`, func(*dialect.Request) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := parse(t, tt.body)
			want := base
			want.Body = []byte(tt.body)
			tt.want(&want)
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, body := range []string{``, `[]`, `{`, `{"model":"m"}`, `{"model":"m","messages":{}}`, `{"messages":[]}`, `{"model":5,"messages":[]}`, "{\"model\":\"\x01\",\"messages\":[]}"} {
		if r, err := d.Parse([]byte(body)); err == nil {
			t.Errorf("%s: parsed to %+v", body, r)
		}
	}
}
