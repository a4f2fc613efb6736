package openaichat

import (
	"reflect"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
)

var requestJSON = []byte(`{"model":"m-1","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hi"}]}`)

func request(t testing.TB) *dialect.Request { return dialecttest.Parse(t, Dialect{}, requestJSON) }

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, members string // beside messages
		want          dialect.Request
	}{
		{"nothing else", ``, dialect.Request{}},
		{"nulls are absent", `,"stream":null,"n":null,"tools":null,"response_format":null,"stop":null,"audio":null,"tool_choice":null`, dialect.Request{}},
		{"model and stream", `,"model":"gpt-\u0035","stream":true`, dialect.Request{Model: "gpt-5", Stream: true}},
		{"several choices", `,"n":3`, dialect.Request{N: 3}},
		{"logprobs", `,"logprobs":true`, dialect.Request{Logprobs: true}},
		{"top logprobs alone", `,"top_logprobs":2`, dialect.Request{Logprobs: true}},
		{"logprobs refused", `,"logprobs":false,"top_logprobs":0`, dialect.Request{}},
		{"usage asked for", `,"stream_options":{"include_usage":true}`, dialect.Request{IncludeUsage: true}},
		{"function tools", `,"tools":[{"type":"function","function":{"name":"f"}}]`, dialect.Request{Tools: true}},
		{"custom tools", `,"tools":[{"type":"custom","custom":{"name":"f"}}]`, dialect.Request{Tools: true}},
		{"no tools at all", `,"tools":[]`, dialect.Request{}},
		{"tools at the provider", `,"tools":[{"type":"code_interpreter"},{"type":"mcp"}]`, dialect.Request{HostedTools: []string{"code_interpreter", "mcp"}}},
		{"searching has no effects", `,"tools":[{"type":"browser_search"}],"web_search_options":{}`, dialect.Request{}},
		{"functions of 2023", `,"functions":[{"name":"f"}],"function_call":{"name":"f"}`, dialect.Request{Tools: true, ForcedTool: true}},
		{"free choice", `,"tool_choice":"auto"`, dialect.Request{}},
		{"forced", `,"tool_choice":"required"`, dialect.Request{ForcedTool: true}},
		{"forced, Mistral", `,"tool_choice":"any"`, dialect.Request{ForcedTool: true}},
		{"forced by name", `,"tool_choice":{"type":"function","function":{"name":"f"}}`, dialect.Request{ForcedTool: true}},
		{"allowed, not forced", `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`, dialect.Request{}},
		{"allowed and forced", `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[]}}`, dialect.Request{ForcedTool: true}},
		{"json mode", `,"response_format":{"type":"json_object"}`, dialect.Request{Structured: true}},
		{"plain text", `,"response_format":{"type":"text"}`, dialect.Request{}},
		{"schema", `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}}`, dialect.Request{Structured: true, Schema: []byte(`{"type":"object"}`)}},
		{"schema, vLLM", `,"guided_json":{"type":"object"}`, dialect.Request{Structured: true, Schema: []byte(`{"type":"object"}`)}},
		{"a grammar", `,"guided_regex":"a+"`, dialect.Request{Unsplicable: "guided_regex"}},
		{"another grammar", `,"response_format":{"type":"grammar","grammar":"x"}`, dialect.Request{Unsplicable: "response_format grammar"}},
		{"limit, old spelling", `,"max_tokens":7`, dialect.Request{MaxTokens: 7}},
		{"limit", `,"max_completion_tokens":8`, dialect.Request{MaxTokens: 8}},
		{"both limits: the lower one", `,"max_completion_tokens":8,"max_tokens":5`, dialect.Request{MaxTokens: 5}},
		{"one stop", `,"stop":"\n\n"`, dialect.Request{Stops: []string{"\n\n"}}},
		{"stops", `,"stop":["END","\u0041",""]`, dialect.Request{Stops: []string{"END", "A"}}},
		{"audio", `,"modalities":["text","audio"]`, dialect.Request{Unsplicable: "audio"}},
		{"text modality", `,"modalities":["text"]`, dialect.Request{}},
		{"wrong kinds are the provider's to judge", `,"stream":"yes","n":"2","stop":4,"tools":{},"stream_options":[]`, dialect.Request{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := []byte(`{"messages":[{"role":"user","content":"Hi"}]` + c.members + `}`)
			got, err := Dialect{}.Parse(body)
			if err != nil {
				t.Fatal(err)
			}
			c.want.Body, c.want.N = body, max(c.want.N, 1)
			if !reflect.DeepEqual(*got, c.want) {
				t.Errorf("got  %+v\nwant %+v", *got, c.want)
			}
		})
	}
}

func TestParsePrefill(t *testing.T) {
	for _, c := range []struct{ name, last, want string }{
		{"a user's turn", `{"role":"user","content":"x"}`, ""},
		{"an assistant's text", `{"role":"assistant","content":"Sure\n\u00e9 "}`, "Sure\né "},
		{"text in parts", `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"prefix":true}`, "ab"},
		{"a turn of calls", `{"role":"assistant","content":"x","tool_calls":[{"id":"a"}]}`, ""},
		{"nothing in it", `{"role":"assistant","content":null}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Dialect{}.Parse([]byte(`{"messages":[{"role":"user","content":"Hi"},` + c.last + `]}`))
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Prefill) != c.want {
				t.Errorf("got %q want %q", got.Prefill, c.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		body string
		want error
	}{
		{``, ErrRequest}, {`[]`, ErrRequest}, {`{"messages":[`, ErrRequest}, {`{} x`, ErrRequest},
		{`{}`, ErrMessages}, {`{"messages":null}`, ErrMessages}, {`{"messages":"Hi"}`, ErrMessages},
	} {
		if _, err := (Dialect{}).Parse([]byte(c.body)); err != c.want {
			t.Errorf("%q: %v, want %v", c.body, err, c.want)
		}
	}
}

func TestRepairLeavesABodyAlone(t *testing.T) {
	if got := (Dialect{}).Repair(requestJSON); &got[0] != &requestJSON[0] || len(got) != len(requestJSON) {
		t.Error("the body was copied or changed")
	}
}
