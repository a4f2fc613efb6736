package bedrock

import (
	"errors"
	"reflect"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       dialect.Request
	}{
		{"limits and stops", `{"messages":[],"inferenceConfig":{"maxTokens":7,"stopSequences":["a","\n"]}}`,
			dialect.Request{MaxTokens: 7, Stops: []string{"a", "\n"}}},
		{"tools of the caller's", `{"messages":[],"toolConfig":{"tools":[{"toolSpec":{"name":"f"}},{"cachePoint":{"type":"default"}}],"toolChoice":{"any":{}}}}`,
			dialect.Request{Tools: true, ForcedTool: true}},
		{"tools that run at the provider", `{"messages":[],"toolConfig":{"tools":[{"systemTool":{"name":"nova_grounding"}},{"systemTool":{"name":"nova_code_interpreter"}}],"toolChoice":{"auto":{}}}}`,
			dialect.Request{HostedTools: []string{"nova_code_interpreter"}}},
		{"a schema in a string", schemed, dialect.Request{Structured: true, Schema: []byte(`{"type":"object"}`)}},
		{"a schema as Anthropic spells it", `{"messages":[],"additionalModelRequestFields":{"output_config":{"format":{"type":"json_schema","schema":{"type":"array"}}}}}`,
			dialect.Request{Structured: true, Schema: []byte(`{"type":"array"}`)}},
		{"thinking", thinks, dialect.Request{MaxTokens: 4000, Thinking: true}},
		{"a prefill", prefills, dialect.Request{Prefill: []byte("Well, ")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Converse{}.ParseAt("/model/m/converse-stream", []byte(c.body))
			c.want.Body, c.want.Model, c.want.N, c.want.Stream, c.want.IncludeUsage = []byte(c.body), "m", 1, true, true
			if err != nil || !reflect.DeepEqual(*r, c.want) {
				t.Errorf("got %+v, %v\nwant %+v", r, err, c.want)
			}
		})
	}
	for body, want := range map[string]error{`{"messages":[}`: ErrRequest, `[]`: ErrRequest, `{"promptVariables":{}}`: ErrMessages} {
		if _, err := (Converse{}).Parse([]byte(body)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", body, err, want)
		}
	}
}

func TestInvokeIsForAnthropic(t *testing.T) {
	r, err := Invoke{}.ParseAt("/model/us.anthropic.claude-3%3A0/invoke", []byte(`{"anthropic_version":"bedrock-2023-05-31","max_tokens":9,"messages":[]}`))
	if err != nil || r.Model != "us.anthropic.claude-3:0" || r.Stream || r.MaxTokens != 9 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := (Invoke{}).Parse([]byte(`{"messages":[]}`)); !errors.Is(err, ErrModel) {
		t.Errorf("another model's wire: %v", err)
	}
}

func TestPaths(t *testing.T) {
	const arn = "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc"
	for path, want := range map[string]Call{
		"/model/anthropic.claude-v2:1/converse-stream":                                              {"anthropic.claude-v2:1", "converse-stream"},
		"/u/b/model/anthropic.claude-v2%3A1/invoke?x=/y":                                            {"anthropic.claude-v2:1", "invoke"},
		"/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fabc/converse": {arn, "converse"},
		"/model/" + arn + "/invoke-with-response-stream":                                            {arn, "invoke-with-response-stream"},
		"/model/converse":      {},
		"/model//converse":     {},
		"/v1/chat/completions": {},
	} {
		if got := ReadPath(path); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	if got := WithModel("/base/model/a%3A0/converse?q=/", "x/y:1"); got != "/base/model/x%2Fy:1/converse?q=/" {
		t.Errorf("got %s", got)
	}
	if got := WithModel("/v1/models", "x"); got != "/v1/models" {
		t.Errorf("got %s", got)
	}
}
