package gemini

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/splice"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       dialect.Request
	}{
		{"bare", `{"contents":[]}`, dialect.Request{}},
		{"limits and stops", `{"contents":[],"generationConfig":{"maxOutputTokens":7,"stopSequences":["END","\u00e9",""],"candidateCount":3,"responseLogprobs":true}}`,
			dialect.Request{N: 3, MaxTokens: 7, Stops: []string{"END", "é"}, Logprobs: true}},
		{"names as the proto spells them", `{"contents":[],"generation_config":{"max_output_tokens":7,"stop_sequences":["x"],"candidate_count":2},"tool_config":{"function_calling_config":{"mode":"ANY"}}}`,
			dialect.Request{N: 2, MaxTokens: 7, Stops: []string{"x"}, ForcedTool: true}},
		{"client tools", `{"contents":[],"tools":[{"functionDeclarations":[{"name":"f"}]},{"googleSearch":{}}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}}`,
			dialect.Request{Tools: true}},
		{"no declarations are no tools", `{"contents":[],"tools":[{"functionDeclarations":[]}]}`, dialect.Request{}},
		{"tools without effects", `{"contents":[],"tools":[{"googleSearch":{},"urlContext":{}},{"fileSearch":{}},{"google_maps":{}},{"codeExecution":null}]}`, dialect.Request{}},
		{"tools with effects", `{"contents":[],"tools":[{"codeExecution":{}},{"mcpServers":[{"name":"m"}]},{"toolOfALaterYear":{}}]}`,
			dialect.Request{HostedTools: []string{"codeExecution", "mcpServers", "toolOfALaterYear"}}},
		{"computer use is the caller's", `{"contents":[],"tools":[{"computerUse":{}}]}`, dialect.Request{Tools: true}},
		{"thinking", `{"contents":[],"generationConfig":{"thinkingConfig":{"thinkingLevel":"low"}}}`, dialect.Request{Thinking: true}},
		{"thinking off", `{"contents":[],"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}`, dialect.Request{}},
		{"json mode", `{"contents":[],"generationConfig":{"responseMimeType":"application/json"}}`, dialect.Request{Structured: true, Schema: []byte(`{}`)}},
		{"json schema", `{"contents":[],"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"array"}}}`,
			dialect.Request{Structured: true, Schema: []byte(`{"type":"array"}`)}},
		{"enum mode", `{"contents":[],"generationConfig":{"responseMimeType":"text/x.enum","responseSchema":{"type":"STRING","enum":["a"]}}}`,
			dialect.Request{Unsplicable: "responseMimeType text/x.enum"}},
		{"pictures", `{"contents":[],"generationConfig":{"responseModalities":["TEXT","IMAGE"]}}`, dialect.Request{Unsplicable: "responseModalities IMAGE"}},
		{"text only", `{"contents":[],"generationConfig":{"responseModalities":["TEXT"]}}`, dialect.Request{}},
		{"from a checkpoint", `{"contents":[],"continuationToken":"dA=="}`, dialect.Request{Unsplicable: "continuationToken"}},
		{"trailing model turn", `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"so ","thought":true},{"text":"It "},{"text":"is\n"}]}]}`,
			dialect.Request{Prefill: []byte("It is\n")}},
		{"trailing call is no text", `{"contents":[{"role":"model","parts":[{"text":"a"},{"functionCall":{"name":"f"}}]}]}`, dialect.Request{}},
		{"trailing user turn", `{"contents":[{"parts":[{"text":"q"}]}]}`, dialect.Request{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Dialect{}.Parse([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			c.want.Body, c.want.Stream, c.want.IncludeUsage, c.want.N = []byte(c.body), true, true, max(1, c.want.N)
			if !reflect.DeepEqual(*got, c.want) {
				t.Errorf("got  %+v\nwant %+v", *got, c.want)
			}
		})
	}
}

func TestUnreadableRequests(t *testing.T) {
	for body, want := range map[string]error{
		``: ErrRequest, `[]`: ErrRequest, `{"contents":`: ErrRequest, `{}`: ErrContents, `{"contents":"hi"}`: ErrContents, `{"contents":null}`: ErrContents,
	} {
		if _, err := (Dialect{}).Parse([]byte(body)); err != want {
			t.Errorf("%q: %v, want %v", body, err, want)
		}
	}
}

// The schema that the proxy checks a spliced answer against must say what the
// provider's own dialect of OpenAPI says.
func TestResponseSchemaAsJSONSchema(t *testing.T) {
	open := `{"type":"OBJECT","description":"d","propertyOrdering":["a"],"required":["a"],"properties":{
		"a":{"type":"ARRAY","minItems":"1","maxItems":2,"items":{"type":"INTEGER","format":"int32","minimum":0}},
		"b":{"type":"STRING","nullable":true,"enum":["x","y"]},"c":{"anyOf":[{"type":"STRING"},{"type":"NUMBER"}]},"d":{}}}`
	r, err := Dialect{}.Parse([]byte(`{"contents":[],"generationConfig":{"responseMimeType":"application/json","responseSchema":` + open + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","required":["a"],"properties":{` +
		`"a":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"integer","minimum":0}},` +
		`"b":{"type":["string","null"],"enum":["x","y",null]},"c":{"anyOf":[{"type":"string"},{"type":"number"}]},"d":{}}}`
	var got, exp any
	if json.Unmarshal(r.Schema, &got) != nil || json.Unmarshal([]byte(want), &exp) != nil || !reflect.DeepEqual(got, exp) {
		t.Fatalf("got %s", r.Schema)
	}
	schema, err := splice.NewSchema(r.Schema)
	if err != nil {
		t.Fatal(err)
	}
	for doc, ok := range map[string]bool{`{"a":[1]}`: true, `{"a":[1],"b":null,"c":"s"}`: true, `{"a":[]}`: false, `{"a":[1,2,3]}`: false, `{"a":[-1]}`: false, `{"a":[1],"b":"z"}`: false, `{}`: false} {
		if err := schema.Check([]byte(doc)); (err == nil) != ok {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// A mask leaves of an answer what its caller names: perhaps no finishReason, so that the
// end of a stream looked like a cut, or no text, so that there was nothing to go on from.
func TestAMaskedAnswerIsNotOurs(t *testing.T) {
	const path = "/v1beta/models/m:streamGenerateContent?alt=sse"
	for _, tt := range []struct {
		path, mask string
		want       bool
	}{
		{path, "", false},
		{path, "*", false},
		{path, "candidates.content", true},
		{path, " candidates(content,finishReason),usageMetadata ", true},
		{path + "&fields=candidates", "", true},
		{path + "&%24fields=candidates", "", true},
		{"/v1beta/interactions?$fields=status", "", true},
		{"/v1beta/interactions?alt=sse", "", false},
	} {
		got := Masked(tt.path, func(name string) string {
			if name != "X-Goog-FieldMask" {
				t.Errorf("reads %s", name)
			}
			return tt.mask
		})
		if got != tt.want {
			t.Errorf("%s with mask %q: %t", tt.path, tt.mask, got)
		}
	}
}

func TestPath(t *testing.T) {
	for path, want := range map[string]Call{
		"/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse":                                            {Model: "gemini-2.5-flash", Method: "streamGenerateContent"},
		"/v1beta/models/gemini-2.5-flash:streamGenerateContent":                                                    {Model: "gemini-2.5-flash", Method: "streamGenerateContent", Array: true},
		"/v1beta/models/gemini-2.5-flash:streamGenerateContent?key=a&$alt=sse":                                     {Model: "gemini-2.5-flash", Method: "streamGenerateContent"},
		"/v1beta/models/gemini-3-pro:generateContent":                                                              {Model: "gemini-3-pro", Method: "generateContent"},
		"/v1/projects/p/locations/l/publishers/google/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse": {Model: "gemini-3.1-pro-preview", Method: "streamGenerateContent"},
		"/v1beta/tunedModels/mine-1:streamGenerateContent?alt=sse":                                                 {Model: "mine-1", Method: "streamGenerateContent"},
		"/v1/projects/p/locations/l/endpoints/123:streamGenerateContent?alt=sse":                                   {Model: "123", Method: "streamGenerateContent"},
		"/u/g/v1beta/models/a%20b:countTokens":                                                                     {Model: "a b", Method: "countTokens"},
		"/v1beta/models":                                                                                           {},
		"/v1beta/models/gemini-2.5-flash":                                                                          {Model: "gemini-2.5-flash"},
		"/v1beta/models/m:x?alt=sse&q=a:b":                                                                         {Model: "m", Method: "x"},
		"/v1beta/models/m:streamGenerateContent?alt=json&key=k&fields=":                                            {Model: "m", Method: "streamGenerateContent", Array: true},
		"/v1beta/models/m:streamGenerateContent?alt=proto":                                                         {Model: "m", Method: "streamGenerateContent", Array: true, Foreign: true},
		"/v1beta/models/m:streamGenerateContent?%24alt=sse&%24fields=candidates.content":                           {Model: "m", Method: "streamGenerateContent", Foreign: true},
		"/v1beta/models/m:streamGenerateContent?callback=f":                                                        {Model: "m", Method: "streamGenerateContent", Array: true, Foreign: true},
		"/v1beta/models/%zz:generateContent":                                                                       {Model: "%zz", Method: "generateContent"},
	} {
		if got := ReadPath(path); got != want {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
	r, err := Dialect{}.ParseAt("/v1beta/models/gemini-3-pro:generateContent", []byte(requestJSON))
	if err != nil || r.Model != "gemini-3-pro" || r.Stream {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = Dialect{}.ParseAt("/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", []byte(requestJSON))
	if err != nil || !r.Stream {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := (Dialect{}).ParseAt("/x", []byte("{}")); err != ErrContents {
		t.Error(err)
	}
}

func TestAnotherModelInThePath(t *testing.T) {
	for path, want := range map[string]string{
		"/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse&key=a:b":       "/v1beta/models/a%2Fb:streamGenerateContent?alt=sse&key=a:b",
		"/v1/projects/p/locations/l/publishers/google/models/x%20y:generateContent": "/v1/projects/p/locations/l/publishers/google/models/a%2Fb:generateContent",
		"/v1beta/models/x:streamGenerateContent?":                                   "/v1beta/models/a%2Fb:streamGenerateContent?",
		"/models/1/v1beta/tunedModels/mine:generateContent":                         "/models/1/v1beta/models/a%2Fb:generateContent",
		"/v1/projects/p/locations/l/endpoints/7:generateContent":                    "/v1/projects/p/locations/l/endpoints/a%2Fb:generateContent",
		"/v1beta/files":            "/v1beta/files",
		"/v1beta/models/x":         "/v1beta/models/x",
		"/v1beta/models/:generate": "/v1beta/models/:generate",
	} {
		if got := AtModel(path, "a/b"); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
