package faultinject

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// What the Responses endpoint refuses, in its words (WIRE 2.2), and what it
// lets pass.
func TestResponsesStrictness(t *testing.T) {
	user, partial := msg("user", "Go."), msg("assistant", "The quick")
	body := func(items ...string) string { return responsesBody("gpt-5.1", items...) }
	with := func(body, member string) string { return strings.Replace(body, `"stream"`, member+`,"stream"`, 1) }
	part := func(role, kind string) string {
		return `{"type":"message","role":"` + role + `","content":[{"type":"` + kind + `","text":"Hm."}]}`
	}
	const (
		call   = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}`
		output = `{"type":"function_call_output","call_id":"c1","output":"ok"}`
		custom = `{"type":"custom_tool_call","call_id":"c2","name":"sql","input":"SELECT 1"}`
		result = `{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"1"}]}`
		search = `{"type":"web_search_call","id":"ws_1","status":"completed"}`
		tool   = `"tools":[{"type":"function","name":"f","parameters":{}}]`
	)
	reasoning := `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"` + Seal("I think.") + `"}`
	altered := strings.Replace(reasoning, sealMark, sealMark+"A", 1)
	const refusedNothing = "The quick brown fox"
	for _, tc := range []struct {
		name   string
		body   string
		header []string
		status int
		says   string // in the error's message, or how the answer begins
		code   string
		param  string
	}{
		{"an ordinary request", body(user), nil, 200, refusedNothing, "", ""},
		{"a string", `{"model":"gpt-5.1","stream":true,"input":"Go."}`, nil, 200, refusedNothing, "", ""},
		{"no key", body(user), []string{"Authorization", ""}, 401, "You didn't provide an API key", "", ""},
		{"azure key", body(user), []string{"Authorization", "", "Api-Key", "k"}, 200, refusedNothing, "", ""},
		{"no json", `{"model":`, nil, 400, "We could not parse the JSON body of your request.", "", ""},
		{"no model", `{"input":"Go."}`, nil, 400, "Missing required parameter: 'model'.", "missing_required_parameter", "model"},
		{"no input", `{"model":"m"}`, nil, 400, `One of "input" or "previous_response_id"`, "", ""},
		{"input of a wrong type", `{"model":"m","input":7}`, nil, 400, "Invalid type for 'input'", "invalid_type", "input"},
		{"unknown parameter", with(body(user), `"brand_new":1`), nil, 400, "Unknown parameter: 'brand_new'.", "unknown_parameter", "brand_new"},
		{"what Codex says of itself", with(body(user), `"client_metadata":{"k":"v"}`), nil, 200, refusedNothing, "", ""},
		{"chat's messages", `{"model":"m","messages":[` + user + `]}`, nil, 400, "this parameter has moved to 'input'", "unsupported_parameter", "messages"},
		{"chat's format", with(body(user), `"response_format":{}`), nil, 400, "has moved to 'text.format'", "unsupported_parameter", "response_format"},
		{"too few tokens", with(body(user), `"max_output_tokens":15`), nil, 400, "Expected a value >= 16, but got 15 instead.", "integer_below_min_value", "max_output_tokens"},
		{"stream options without a stream", `{"model":"m","input":"Go.","stream_options":{"include_obfuscation":false}}`, nil, 400, "only allowed when 'stream' is enabled", "", "stream_options"},
		{"a nameless schema", with(body(user), `"text":{"format":{"type":"json_schema","schema":{}}}`), nil, 400, "Missing required parameter: 'text.format.name'.", "missing_required_parameter", "text.format.name"},
		{"unknown include", with(body(user), `"include":["all"]`), nil, 400, "Invalid value: 'all'. Supported values are: 'file_search_call.results'", "invalid_value", "include[0]"},
		{"a tool in chat's form", with(body(user), `"tools":[{"type":"function","function":{"name":"f"}}]`), nil, 400, "Missing required parameter: 'tools[0].name'.", "missing_required_parameter", "tools[0].name"},
		{"a choice that is no tool", with(body(user), tool+`,"tool_choice":{"type":"function","name":"g"}`), nil, 400, "Tool choice 'function' not found in 'tools' parameter.", "", "tool_choice"},
		{"a choice that is one", with(body(user), tool+`,"tool_choice":{"type":"function","name":"f"}`), nil, 200, refusedNothing, "", ""},

		{"unknown role", body(msg("robot", "x")), nil, 400, "Invalid value: 'robot'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", "invalid_value", "input[0]"},
		{"unknown item", body(user, `{"type":"robot_call"}`), nil, 400, "Invalid value: 'robot_call'. Supported values are: 'additional_tools'", "invalid_value", "input[1]"},
		{"nothing", body(`{}`), nil, 400, "Missing required parameter: 'input[0].type'.", "missing_required_parameter", "input[0].type"},
		{"a message without content", body(`{"role":"user"}`), nil, 400, "Missing required parameter: 'input[0].content'.", "missing_required_parameter", "input[0].content"},
		{"the assistant's text is output", body(user, part("assistant", "input_text")), nil, 400, "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.", "invalid_value", "input[1].content[0]"},
		{"the assistant's text of chat", body(user, part("assistant", "text")), nil, 400, "Supported values are: 'output_text' and 'refusal'.", "invalid_value", "input[1].content[0]"},
		{"the assistant's output", body(user, part("assistant", "output_text"), user), nil, 200, refusedNothing, "", ""},
		{"the user's text of chat", body(part("user", "text")), nil, 400, "Invalid value: 'text'. Supported values are: 'input_text', 'input_image'", "invalid_value", "input[0].content[0]"},
		{"an id of another kind", body(user, strings.Replace(call, "fc_1", "call_1", 1), output), nil, 400, "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.", "invalid_value", "input[1].id"},
		{"a long call id", body(user, strings.Replace(call, "c1", strings.Repeat("c", 65), 1)), nil, 400, "maximum length 64, but got a string with length 65", "string_above_max_length", "input[1].call_id"},
		{"an id twice", body(user, search, search), nil, 400, "Duplicate item found with id ws_1. Remove duplicate items from your input and try again.", "", "input"},

		{"call and output", body(user, call, output), nil, 200, refusedNothing, "", ""},
		{"custom call and output", body(user, custom, result), nil, 200, refusedNothing, "", ""},
		{"parallel calls", body(user, call, custom, result, output), nil, 200, refusedNothing, "", ""},
		{"output without call", body(user, output), nil, 400, "No tool call found for function call output with call_id c1.", "", "input"},
		{"custom output without call", body(user, result), nil, 400, "No tool call found for custom tool call output with call_id c2.", "", "input"},
		{"output before its call", body(user, output, call), nil, 400, "No tool call found for function call output with call_id c1.", "", "input"},
		{"output of the other kind", body(user, custom, strings.Replace(output, "c1", "c2", 1)), nil, 400, "No tool call found for function call output with call_id c2.", "", "input"},
		{"call without output", body(user, call), nil, 400, "No tool output found for function call c1.", "", "input"},
		{"call without output, then the user", body(user, call, user), nil, 400, "No tool output found for function call c1.", "", "input"},
		{"custom call without output", body(user, custom), nil, 400, "No tool output found for custom tool call c2.", "", "input"},
		{"a call without a name", body(user, strings.Replace(call, `"name":"f",`, "", 1), output), nil, 400, "Missing required parameter: 'input[1].name'.", "missing_required_parameter", "input[1].name"},
		{"a call without arguments", body(user, strings.Replace(call, `,"arguments":"{}"`, "", 1), output), nil, 400, "Missing required parameter: 'input[1].arguments'.", "missing_required_parameter", "input[1].arguments"},
		{"an output without output", body(user, call, `{"type":"function_call_output","call_id":"c1"}`), nil, 400, "Missing required parameter: 'input[2].output'.", "missing_required_parameter", "input[2].output"},

		{"reasoning and its call", body(user, reasoning, call, output), nil, 200, refusedNothing, "", ""},
		{"reasoning and its message", body(user, reasoning, part("assistant", "output_text"), user), nil, 200, refusedNothing, "", ""},
		{"reasoning at the end", body(user, reasoning), nil, 400, "Item 'rs_1' of type 'reasoning' was provided without its required following item.", "", "input"},
		{"reasoning, then the user", body(user, reasoning, user), nil, 400, "Item 'rs_1' of type 'reasoning' was provided without its required following item.", "", "input"},
		{"reasoning, then an output", body(user, call, reasoning, output), nil, 400, "Item 'rs_1' of type 'reasoning' was provided without its required following item.", "", "input"},
		{"altered reasoning", body(user, altered, call, output), nil, 400, "could not be verified. Reason: Encrypted content could not be decrypted or parsed.", "invalid_encrypted_content", ""},
		{"reasoning nobody kept", body(user, `{"type":"reasoning","id":"rs_9","summary":[]}`, call, output), nil, 404, "Item with id 'rs_9' not found. Items are not persisted when `store` is set to false.", "", "input"},
		{"a reference to nothing", body(user, `{"type":"item_reference","id":"msg_9"}`), nil, 404, "Item with id 'msg_9' not found.", "", "input"},

		{"unknown previous response", with(body(user), `"previous_response_id":"resp_9"`), nil, 400, "Previous response with id 'resp_9' not found.", "previous_response_not_found", "previous_response_id"},
		{"two histories", with(body(user), `"previous_response_id":"resp_9","conversation":"conv_1"`), nil, 400, "Mutually exclusive parameters", "mutually_exclusive_parameters", ""},
		{"unknown conversation", with(body(user), `"conversation":{"id":"conv_1"}`), nil, 404, "Conversation with id 'conv_1' not found.", "", ""},
		{"background without store", with(body(user), `"background":true,"store":false`), nil, 400, "Background mode requires store", "", "background"},

		{"a trailing answer is over", body(user, partial), nil, 200, refusedNothing, "", ""},
		{"in progress means nothing here", body(user, strings.Replace(partial, `{`, `{"status":"in_progress",`, 1)), nil, 200, refusedNothing, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "text"})
			got := post(t, s, responsesPath, tc.body, tc.header...)
			if got.status != tc.status {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if tc.status == 200 {
				if h := hear(t, Responses, got.body); !strings.HasPrefix(h.text, tc.says) || h.finish != "completed" {
					t.Errorf("%+v", h)
				}
				return
			}
			var e struct {
				Error struct{ Message, Type, Code, Param string }
			}
			if err := json.Unmarshal([]byte(got.body), &e); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(e.Error.Message, tc.says) || e.Error.Type != "invalid_request_error" || e.Error.Code != tc.code || e.Error.Param != tc.param {
				t.Errorf("%s", got.body)
			}
		})
	}
}

// vLLM goes on with a trailing message that is in progress, and only with one.
func TestResponsesPrefillOfVLLM(t *testing.T) {
	for status, begins := range map[string]string{"in_progress": " brown fox", "completed": "The quick brown"} {
		s := start(t, Config{Scenario: "text", Host: VLLM})
		partial := `{"type":"message","role":"assistant","status":"` + status + `","content":[{"type":"output_text","text":"The quick"}]}`
		got := post(t, s, responsesPath, responsesBody("m", msg("user", "Go."), partial))
		if h := hear(t, Responses, got.body); !strings.HasPrefix(h.text, begins) {
			t.Errorf("%s: %d %q", status, got.status, h.text)
		}
	}
}

// What belongs together is known of kept responses: their reasoning goes with
// the item it led to, neither alone; nothing of it may come twice; and a call
// wants its output even when only the response is named.
func TestResponsesKeptItems(t *testing.T) {
	s := start(t, Config{Scenario: "thinking-tool"})
	kept := itemsOf(t, post(t, s, responsesPath, responsesBody("m", msg("user", "Go."))).body)
	lost := itemsOf(t, post(t, s, responsesPath, strings.Replace(responsesBody("m", msg("user", "Go.")), `"stream"`, `"store":false,"stream"`, 1)).body)
	output := func(items []inputItem) string {
		return `{"type":"function_call_output","call_id":"` + items[2].CallID + `","output":"7"}`
	}
	reference := func(items []inputItem, n int) string { return `{"type":"item_reference","id":"` + items[n].ID + `"}` }
	previous := func(items ...string) string {
		return strings.Replace(responsesBody("m", items...), `"stream"`, `"previous_response_id":"`+kept[0].Name+`","stream"`, 1)
	}
	message := `{"type":"message","id":"` + kept[1].ID + `","role":"assistant","content":"I will check."}`
	for _, tc := range []struct {
		name, body string
		status     int
		says       string
	}{
		{"all by reference", responsesBody("m", msg("user", "Go."), reference(kept, 0), reference(kept, 1), reference(kept, 2), output(kept)), 200, ""},
		{"the response by reference", previous(output(kept)), 200, ""},
		{"its call unanswered", previous(msg("user", "Go on.")), 400, "No tool output found for function call " + kept[2].CallID + "."},
		{"its item again", previous(reference(kept, 2), output(kept)), 400, "Duplicate item found with id " + kept[2].ID},
		{"reasoning with the wrong item", responsesBody("m", msg("user", "Go."), reference(kept, 0), reference(kept, 2), output(kept)), 400, "Item '" + kept[0].ID + "' of type 'reasoning' was provided without its required following item."},
		{"a message without its reasoning", responsesBody("m", msg("user", "Go."), message, msg("user", "And?")), 400, "Item '" + kept[1].ID + "' of type 'message' was provided without its required 'reasoning' item: '" + kept[0].ID + "'."},
		{"what was not stored", responsesBody("m", msg("user", "Go."), reference(lost, 0)), 404, "Item with id '" + lost[0].ID + "' not found."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := post(t, s, responsesPath, tc.body)
			var e struct{ Error struct{ Message string } }
			if got.status != 200 {
				if err := json.Unmarshal([]byte(got.body), &e); err != nil {
					t.Fatal(err)
				}
			}
			if got.status != tc.status || !strings.Contains(e.Error.Message, tc.says) {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

// itemsOf returns the output items of a stream. The name of a reasoning item,
// which has none, is the id of the response.
func itemsOf(t *testing.T, stream string) []inputItem {
	t.Helper()
	var items []inputItem
	for n := FrameLF.eventLen([]byte(stream)); n > 0; n = FrameLF.eventLen([]byte(stream)) {
		var e struct {
			Type     string
			Item     inputItem
			Response struct{ ID string }
		}
		if err := json.Unmarshal(payloadOf([]byte(stream[:n])), &e); err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case "response.output_item.done":
			items = append(items, e.Item)
		case "response.completed":
			items[0].Name = e.Response.ID
		}
		stream = stream[n:]
	}
	if len(items) != 3 {
		t.Fatalf("%d items", len(items))
	}
	return items
}

// Refusals of requests for stored responses.
func TestStoredResponsesStrictness(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1 turn 2: fin after event 6")})
	idOf := func(member string, items ...string) string {
		got := post(t, s, responsesPath, strings.Replace(responsesBody("m", items...), `"stream"`, member+`"stream"`, 1))
		_, rest, _ := strings.Cut(got.body, `"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		return id
	}
	ordinary := idOf("", msg("user", "Go."))
	background := idOf(`"background":true,`, msg("user", "Come."))
	unstored := idOf(`"store":false,`, msg("user", "Go."))
	cut := idOf("", msg("user", "Go."), msg("assistant", "Gone."), msg("user", "Where?"))
	unstreamed := func() string {
		got := post(t, s, responsesPath, `{"model":"m","input":"Go.","background":true}`)
		var r struct{ ID string }
		if err := json.Unmarshal([]byte(got.body), &r); err != nil {
			t.Fatal(err)
		}
		return r.ID
	}()
	for _, tc := range []struct {
		name, method, path string
		status             int
		says               string
	}{
		{"an ordinary one", http.MethodGet, ordinary, 200, `"status":"completed"`},
		{"one of the background", http.MethodGet, background, 200, `"background":true`},
		{"unknown", http.MethodGet, "resp_9", 404, "Response with id 'resp_9' not found."},
		{"store false", http.MethodGet, unstored, 404, "Response with id '" + unstored + "' not found."},
		{"ended by a cut", http.MethodGet, cut, 404, "Response with id '" + cut + "' not found."},
		{"the stream of an ordinary one", http.MethodGet, ordinary + "?stream=true", 400, "not created with background=true and stream=true"},
		{"the stream of an unstreamed one", http.MethodGet, unstreamed + "?stream=true", 400, "not created with background=true and stream=true"},
		{"a stream from its start", http.MethodGet, background + "?stream=true", 200, `"sequence_number":0,`},
		{"beyond the end", http.MethodGet, background + "?stream=true&starting_after=9999", 400, "beyond the last event"},
		{"after no number", http.MethodGet, background + "?stream=true&starting_after=x", 400, "Invalid 'starting_after'"},
		{"after, without a stream", http.MethodGet, background + "?starting_after=3", 400, "only allowed when 'stream' is enabled"},
		{"cancel an ordinary one", http.MethodPost, ordinary + "/cancel", 400, "Cannot cancel a synchronous response."},
		{"cancel one that is over", http.MethodPost, background + "/cancel", 200, `"status":"completed"`},
		{"cancel an unknown one", http.MethodPost, "resp_9/cancel", 404, "not found"},
		{"another act", http.MethodPost, background + "/applaud", 404, "Invalid URL"},
		{"delete", http.MethodDelete, ordinary, 200, `"deleted":true`},
		{"delete again", http.MethodDelete, ordinary, 404, "not found"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := bodiless(t, s, tc.method, "/v1/responses/"+tc.path)
			if got.status != tc.status || !strings.Contains(got.body, tc.says) {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

// bodiless sends a request without a body.
func bodiless(t *testing.T, s *Server, method, path string) answerOf {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	return sendWith(t, &http.Client{Transport: tr}, method, s.URL()+path, "")
}
