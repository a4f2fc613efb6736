package faultinject

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// What Gemini refuses, model by model, in the shape of google.rpc.Status.
func TestGeminiStrictness(t *testing.T) {
	user, partial := says("user", "Go."), says("model", "The quick")
	callPart := func(sign string) string {
		if sign != "" {
			sign = `,"thoughtSignature":` + quote(sign)
		}
		return `{"functionCall":{"name":"f","args":{"a":1,"b":2},"id":"c1"}` + sign + `}`
	}
	signed := signCall("f", `{"b": 2, "a": 1}`)
	resultOf := func(id string) string {
		return `{"functionResponse":{"name":"f","id":"` + id + `","response":{"output":"ok"}}}`
	}
	result := content("user", resultOf("c1"))
	const v2, v3, v38 = "gemini-2.5-flash", "gemini-3-pro-preview", "gemini-3.8-flash"
	const onward, again = " brown fox", "The quick"
	tools := `"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"INTEGER"}}}}]}]`
	config := func(members string) string { return `"generationConfig":{` + members + `}` }
	for _, tc := range []struct {
		name, model, body string
		status            int
		says              string // part of the message, or how the answer begins
	}{
		{"an ordinary request", v3, geminiBody([]string{user}), 200, again},
		{"both spellings of a field", v3, geminiBody([]string{user}, `"system_instruction":{"parts":{"text":"Be brief."}},"generation_config":{"maxOutputTokens":1000,"top_p":0.5}`), 200, again},
		{"one content in place of a list", v3, `{"contents":` + user + `}`, 200, again},
		{"no body", v3, `{`, 400, "Invalid JSON payload received. Unexpected token."},
		{"no contents", v3, `{}`, 400, "* GenerateContentRequest.contents: contents is not specified\n"},
		{"an invalid role", v3, geminiBody([]string{says("assistant", "x")}), 400, "Please use a valid role: user, model."},
		{"no parts", v3, geminiBody([]string{content("user")}), 400, "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.\n"},
		{"an empty text", v3, geminiBody([]string{user, says("model", ""), user}), 400, "* GenerateContentRequest.contents[1].parts[0].data: required oneof field 'data' must have one initialized field\n"},
		{"a part without data", v3, geminiBody([]string{content("user", `{"thought":true}`)}), 400, "parts[0].data: required oneof field 'data'"},
		{"an empty text with a signature", v3, geminiBody([]string{user, content("model", textPart("x"), `{"text":"","thoughtSignature":`+quote(signPart("text", ""))+`}`), user}), 200, again},
		{"a call without a name", v3, geminiBody([]string{user, content("model", `{"functionCall":{"args":{}},"thoughtSignature":"x"}`), result}), 400, "function_call.name: [REQUIRED_FIELD_MISSING]"},
		{"arguments that are no object", v3, geminiBody([]string{user, content("model", `{"functionCall":{"name":"f","args":"{}"}}`), result}), 400, "Invalid value at 'contents[1].parts[0].function_call.args' (type.googleapis.com/google.protobuf.Struct), \"{}\""},

		{"an unknown field at the top", v3, geminiBody([]string{user}, `"stream":true`), 400, `Invalid JSON payload received. Unknown name "stream": Cannot find field.`},
		{"an unknown field in a part", v3, geminiBody([]string{content("user", `{"text":"x","cache_control":{}}`)}), 400, `Unknown name "cache_control" at 'contents[0].parts[0]': Cannot find field.`},
		{"an unknown field in a schema", v3, geminiBody([]string{user}, strings.Replace(tools, `"type":"INTEGER"`, `"const":1`, 1)), 400, `Unknown name "const" at 'tools[0].function_declarations[0].parameters.properties[0].value': Cannot find field.`},
		{"a JSON schema may say what it wants", v3, geminiBody([]string{user}, `"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"const":1}}]}]`), 200, again},

		{"call and response", v2, geminiBody([]string{user, content("model", callPart("")), result}), 200, again},
		{"call and response in the tool's role", v2, geminiBody([]string{user, content("model", callPart("")), content("function", resultOf("c1"))}), 200, again},
		{"a call first", v2, geminiBody([]string{content("model", callPart("")), result}), 400, "Please ensure that function call turn comes immediately after a user turn or after a function response turn."},
		{"a call behind the model's turn", v2, geminiBody([]string{user, says("model", "x"), content("model", callPart("")), result}), 400, "Please ensure that function call turn comes immediately after a user turn or after a function response turn."},
		{"a response without a call", v2, geminiBody([]string{user, result}), 400, "Please ensure that function response turn comes immediately after a function call turn."},
		{"a call without a response", v2, geminiBody([]string{user, content("model", callPart("")), user}), 400, "number of function response parts is equal to the number of function call parts"},
		{"a call at the end", v2, geminiBody([]string{user, content("model", callPart(""))}), 400, "number of function response parts is equal to the number of function call parts"},
		{"two calls, one response", v2, geminiBody([]string{user, content("model", callPart(""), callPart("")), result}), 400, "number of function response parts is equal to the number of function call parts"},
		{"responses in two contents", v2, geminiBody([]string{user, content("model", callPart(""), callPart("")), result, result}), 400, "number of function response parts is equal to the number of function call parts"},
		{"the id of another call", v38, geminiBody([]string{user, content("model", callPart(signed)), content("user", resultOf("c2"))}), 400, "functionResponse.id does not match functionCall.id"},

		{"no signature in the current turn", v3, geminiBody([]string{user, content("model", callPart("")), result}), 400, "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:f` , position 2."},
		{"no signature in the second step", v3, geminiBody([]string{user, content("model", callPart(signed)), result, content("model", callPart("")), result}), 400, "`default_api:f` , position 4."},
		{"no signature in an earlier turn", v3, geminiBody([]string{user, content("model", callPart("")), result, says("model", "ok"), user}), 200, again},
		{"the signature, arguments spelled anew", v3, geminiBody([]string{user, content("model", callPart(signed)), result}), 200, again},
		{"parallel calls, the first one signed", v3, geminiBody([]string{user, content("model", callPart(signed), callPart("")), content("user", resultOf("c1"), resultOf("c1"))}), 200, again},
		{"parallel calls, the second one signed", v3, geminiBody([]string{user, content("model", callPart(""), callPart(signed)), content("user", resultOf("c1"), resultOf("c1"))}), 400, "missing a thought_signature"},
		{"the signature of another call", v3, geminiBody([]string{user, content("model", callPart(signCall("g", "{}"))), result}), 400, "Corrupted thought signature."},
		{"a text's signature on a call", v3, geminiBody([]string{user, content("model", callPart(signPart("text", ""))), result}), 400, "Corrupted thought signature."},
		{"the signature that skips", v3, geminiBody([]string{user, content("model", callPart("skip_thought_signature_validator")), result}), 200, again},

		{"a trailing answer goes on", v2, geminiBody([]string{user, partial}), 200, onward},
		{"and on 3", v3, geminiBody([]string{user, partial}), 200, onward},
		{"and on 3.5-flash", "gemini-3.5-flash", geminiBody([]string{user, partial}), 200, onward},
		{"not on 3.5-flash-lite", "gemini-3.5-flash-lite", geminiBody([]string{user, partial}), 400, "Requests ending with a model turn are not supported."},
		{"not on later ones", v38, geminiBody([]string{user, partial}), 400, "Requests ending with a model turn are not supported."},
		{"but when asked for it", v38, geminiBody([]string{user, partial, says("user", plainAsk)}), 200, onward},

		{"schema and functions on 2", v2, geminiBody([]string{user}, tools, config(`"responseMimeType":"application/json"`)), 400, "Function calling with a response mime type: 'application/json' is unsupported"},
		{"schema and functions on 3", v3, geminiBody([]string{user}, tools, config(`"responseMimeType":"application/json"`)), 200, again},
		{"schema and search on 2", v2, geminiBody([]string{user}, `"tools":[{"googleSearch":{}}]`, config(`"responseMimeType":"application/json"`)), 400, "Tool use with a response mime type: 'application/json' is unsupported"},
		{"functions and search on 2", v2, geminiBody([]string{user}, strings.Replace(tools, "}]}]", `}]},{"googleSearch":{}}]`, 1)), 400, "Tool use with function calling is unsupported"},

		{"a token nobody issued", v3, geminiBody([]string{user}, `"continuationToken":"bm9uZQ=="`), 400, "continuation token is invalid"},
		{"a token of another request", v3, geminiBody([]string{user}, `"continuationToken":"`+newToken("other", 12)+`"`), 400, "continuation token is invalid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "text"})
			got := post(t, s, geminiPathOf(tc.model), tc.body)
			if got.status != tc.status {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if tc.status == 200 {
				if h := hear(t, Gemini, got.body); !strings.HasPrefix(h.text, tc.says) {
					t.Errorf("answer begins %.30q, want %q", h.text, tc.says)
				}
				return
			}
			var e struct {
				Error struct {
					Code            int
					Message, Status string
				}
			}
			if err := json.Unmarshal([]byte(got.body), &e); err != nil || e.Error.Code != 400 || e.Error.Status != "INVALID_ARGUMENT" || !strings.Contains(e.Error.Message, tc.says) {
				t.Errorf("%v %s", err, got.body)
			}
		})
	}
}

func TestGeminiUnknownNamesAreDetailed(t *testing.T) {
	s := start(t, Config{})
	got := post(t, s, geminiPath, geminiBody([]string{content("user", `{"text":"x","one":1,"two":2}`)}))
	var e struct {
		Error struct {
			Message string
			Details []struct {
				Type            string `json:"@type"`
				FieldViolations []struct{ Field, Description string }
			}
		}
	}
	if err := json.Unmarshal([]byte(got.body), &e); err != nil {
		t.Fatal(err)
	}
	if d := e.Error.Details; len(d) != 1 || d[0].Type != "type.googleapis.com/google.rpc.BadRequest" || len(d[0].FieldViolations) != 2 ||
		d[0].FieldViolations[1].Field != "contents[0].parts[0]" || strings.Count(e.Error.Message, "\n") != 1 {
		t.Errorf("%s", got.body)
	}
}

func TestGeminiKeys(t *testing.T) {
	s := start(t, Config{Scenario: "text"})
	_, body := request(Gemini)
	const vertex = "/v1beta1/projects/p/locations/l/publishers/google/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
	for _, tc := range []struct {
		name, path string
		header     []string
		status     int
	}{
		{"none", geminiPath, []string{"Authorization", ""}, 403},
		{"header", geminiPath, []string{"Authorization", "", "X-Goog-Api-Key", "k"}, 200},
		{"query", geminiPath + "&key=k", []string{"Authorization", ""}, 200},
		{"token", vertex, nil, 200},
		{"an unknown method", strings.Replace(geminiPath, "streamGenerateContent", "predict", 1), nil, 404},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := post(t, s, tc.path, body, tc.header...)
			if got.status != tc.status || tc.status != 200 && !strings.Contains(got.body, `"status": "`+googleStatus(tc.status)) {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

func TestInteractionsStrictness(t *testing.T) {
	user, partial := step("user_input", "Go."), step("model_output", "The quick")
	const call = `{"type":"function_call","id":"c1","name":"f","arguments":{}}`
	const result = `{"type":"function_result","call_id":"c1","name":"f","result":"ok"}`
	const v2, v38 = "gemini-2.5-flash", "gemini-3.8-flash"
	const onward, again = " brown fox", "The quick"
	raw := func(members string) string { return `{"model":"gemini-2.5-flash","stream":true,` + members + `}` }
	for _, tc := range []struct {
		name, body string
		status     int
		says       string
	}{
		{"steps", interactionBody(v2, []string{user}), 200, again},
		{"text", raw(`"input":"Go."`), 200, again},
		{"a piece of content", raw(`"input":{"type":"text","text":"Go."}`), 200, again},
		{"a list of content", raw(`"input":[{"type":"text","text":"Go."},{"type":"image","mime_type":"image/png","data":"AA=="}]`), 200, again},
		{"no JSON", `[`, 400, "cannot be read"},
		{"no model", `{"input":"Go."}`, 400, "Either 'model' or 'agent' is required."},
		{"model and agent", raw(`"agent":"a","input":"Go."`), 400, "Only one of"},
		{"no input", raw(`"store":false`), 400, "Invalid input received"},
		{"an unknown parameter", raw(`"input":"Go.","messages":[]`), 400, "Unknown parameter 'messages'."},
		{"an unknown step", interactionBody(v2, []string{user, `{"type":"musing"}`}), 400, "input[1].type 'musing' is not supported"},
		{"a member of another step", interactionBody(v2, []string{user, strings.Replace(call, `"id"`, `"call_id":"c1","id"`, 1), result}), 400, "Unknown parameter 'call_id' at 'input[1]'."},
		{"an empty step", interactionBody(v2, []string{step("user_input", "")}), 400, "input[0].content must not be empty"},
		{"in the background and not kept", raw(`"input":"Go.","background":true,"store":false`), 400, "'background' requires 'store' to be true."},
		{"built on one that is unknown", raw(`"input":"Go.","previous_interaction_id":"v1_x"`), 404, "Interaction 'v1_x' not found."},
		{"built on one and not kept", raw(`"input":"Go.","store":false,"previous_interaction_id":"v1_x"`), 404, "not found"},

		{"call and result", interactionBody(v2, []string{user, call, result}), 200, again},
		{"a result without a name", interactionBody(v2, []string{user, call, strings.Replace(result, `,"name":"f"`, "", 1)}), 400, "Invalid input received"},
		{"a result without a call", interactionBody(v2, []string{user, result}), 400, "names no function call"},
		{"a call without a result", interactionBody(v2, []string{user, call}), 400, "has no result"},
		{"a call answered too late", interactionBody(v2, []string{user, call, user, result}), 400, "input[2] comes before the results"},
		{"arguments that are text", interactionBody(v2, []string{user, strings.Replace(call, "{}}", `"{}"}`, 1), result}), 400, "needs an id, a name and arguments"},
		{"a thought of ours", interactionBody(v2, []string{user, `{"type":"thought","signature":"` + signPart("thought", "hm") + `","summary":[{"type":"text","text":"h"},{"type":"text","text":"m"}]}`, call, result}), 200, again},
		{"a thought that was edited", interactionBody(v2, []string{user, `{"type":"thought","signature":"` + signPart("thought", "hm") + `","summary":[{"type":"text","text":"ah"}]}`, call, result}), 400, "Corrupted thought signature."},

		{"a trailing output goes on", interactionBody(v2, []string{user, partial}), 200, onward},
		{"not on later models", interactionBody(v38, []string{user, partial}), 400, "Requests ending with a model turn are not supported."},
		{"but when asked for it", interactionBody(v38, []string{user, partial, step("user_input", plainAsk)}), 200, onward},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "text"})
			got := post(t, s, interactionsPath, tc.body)
			if got.status != tc.status {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if tc.status == 200 {
				if h := hear(t, Interactions, got.body); !strings.HasPrefix(h.text, tc.says) {
					t.Errorf("answer begins %.30q, want %q", h.text, tc.says)
				}
				return
			}
			var e struct {
				Error struct{ Message, Code string }
			}
			code := map[int]string{400: "invalid_request", 404: "not_found"}[tc.status]
			if err := json.Unmarshal([]byte(got.body), &e); err != nil || e.Error.Code != code || !strings.Contains(e.Error.Message, tc.says) {
				t.Errorf("%v %s", err, got.body)
			}
		})
	}
}

func TestCompletionsStrictness(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		header     []string
		status     int
		says       string
	}{
		{"an ordinary request", completionBody("Go."), nil, 200, "The quick"},
		{"a list of one prompt", `{"model":"m","stream":true,"prompt":["Go."]}`, nil, 200, "The quick"},
		{"no key", completionBody("Go."), []string{"Authorization", ""}, 401, "You didn't provide an API key"},
		{"no model", `{"prompt":"Go."}`, nil, 400, "you must provide a model parameter"},
		{"no prompt", `{"model":"m"}`, nil, 400, "Invalid type for 'prompt'"},
		{"usage without stream", `{"model":"m","prompt":"x","stream_options":{"include_usage":true}}`, nil, 400, "only allowed when 'stream' is enabled"},
		{"best of more than are asked for", completionBody("Go.", `"best_of":3`), nil, 400, "Cannot stream results with best_of > n."},
		{"echo and suffix", completionBody("Go.", `"echo":true,"suffix":"x"`), nil, 400, "Cannot have both echo and suffix."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "text"})
			got := post(t, s, completionsPath, tc.body, tc.header...)
			if got.status != tc.status {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if tc.status == http.StatusOK {
				if h := hear(t, Completions, got.body); !strings.HasPrefix(h.text, tc.says) {
					t.Errorf("answer begins %.30q", h.text)
				}
				return
			}
			if !strings.HasPrefix(got.body, `{"error":{"message":`) || !strings.Contains(got.body, tc.says) {
				t.Errorf("%s", got.body)
			}
		})
	}
}
