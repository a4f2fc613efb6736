package faultinject

import (
	"encoding/base64"
	"strings"
	"testing"
)

// refusals are requests and what becomes of them.
type refusals []struct {
	name, path, body string
	status           int
	says             string // part of the message; the answer streams if status is 200
}

func (rs refusals) try(t *testing.T, d Dialect) {
	for _, tc := range rs {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "text"})
			got := post(t, s, tc.path, tc.body)
			if got.status != tc.status {
				t.Fatalf("%d %s", got.status, got.body)
			}
			x := s.Log()[0]
			if x.Dialect != d {
				t.Errorf("it was taken for %q", x.Dialect)
			}
			if tc.status == 200 {
				if h := hear(t, d, got.body); h.text == "" || !h.ended || got.header.Get("Content-Type") != "application/vnd.amazon.eventstream" {
					t.Errorf("%v %+v", got.header, h)
				}
				return
			}
			if !strings.HasPrefix(got.body, `{"message":`) || !strings.Contains(got.body, tc.says) || !strings.HasSuffix(got.header.Get("X-Amzn-Errortype"), "Exception") {
				t.Errorf("%v %s", got.header, got.body)
			}
		})
	}
}

// What Converse refuses: the service, and, in its words, the model.
func TestConverseStrictness(t *testing.T) {
	const nova = "us.amazon.nova-pro-v1:0"
	user, partial := saying("user", "Go."), saying("assistant", "The quick")
	call := func(id string) string {
		return `{"toolUse":{"toolUseId":"` + id + `","name":"f","input":{"a":1}}}`
	}
	result := func(id string) string {
		return `{"toolResult":{"toolUseId":"` + id + `","content":[{"text":"ok"}]}}`
	}
	thought := func(text, signature string) string {
		return `{"reasoningContent":{"reasoningText":{"text":` + quote(text) + `,"signature":` + quote(signature) + `}}}`
	}
	redacted := func(data string) string {
		return `{"reasoningContent":{"redactedContent":"` + base64.StdEncoding.EncodeToString([]byte(data)) + `"}}`
	}
	const tools = `"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}]}`
	const thinking = `"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":1024}}`
	const blank = "The text field in the ContentBlock object at messages.0.content.0 is blank. Add text to the text field, and try again."
	const ofTheModel = "The model returned the following errors: "
	at := converseAt(bedrockClaude)
	body := func(turns ...string) string { return converseBody(turns, tools) }
	refusals{
		{"an ordinary request", at, converseBody([]string{user}), 200, ""},
		{"an ARN with its slashes", converseAt("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-5"), converseBody([]string{user}), 200, ""},
		{"no such model", converseAt("claude"), converseBody([]string{user}), 400, "The provided model identifier is invalid."},
		{"no JSON", at, `{"messages":`, 400, "Malformed input request"},
		{"no messages", at, converseBody(nil), 400, "A conversation must start with a user message."},
		{"the assistant first", at, converseBody([]string{partial, user}), 400, "A conversation must start with a user message."},
		{"an unknown role", at, converseBody([]string{user, saying("system", "x")}), 400, "Value 'system' at 'messages.2.member.role' failed to satisfy constraint"},
		{"two user messages in a row", at, converseBody([]string{user, user}), 400, "A conversation must alternate between user and assistant roles."},
		{"no content", at, converseBody([]string{turnOf("user")}), 400, "The content field in the Message object at messages.0 is empty."},
		{"an empty text", at, converseBody([]string{saying("user", "")}), 400, blank},
		{"a blank text", at, converseBody([]string{saying("user", " \n")}), 400, blank},
		{"a block of Messages", at, converseBody([]string{turnOf("user", `{"type":"text","text":"x"}`)}), 400, ofTheModel + "Malformed input request: #/messages/0/content/0: extraneous key [type] is not permitted"},
		{"an unknown field for the model", at, converseBody([]string{user}, `"additionalModelRequestFields":{"chat_id":"x"}`), 400, ofTheModel + "Malformed input request: #: extraneous key [chat_id] is not permitted"},
		{"no tokens", at, converseBody([]string{user}, `"inferenceConfig":{"maxTokens":0}`), 400, "Value '0' at 'inferenceConfig.maxTokens' failed to satisfy constraint"},

		{"call and result", at, body(user, turnOf("assistant", call("a")), turnOf("user", result("a"))), 200, ""},
		{"without a toolConfig", at, converseBody([]string{user, turnOf("assistant", call("a")), turnOf("user", result("a"))}), 400, "The toolConfig field must be defined when using toolUse and toolResult content blocks."},
		{"a call without its result", at, body(user, turnOf("assistant", call("a"), call("b")), turnOf("user", result("a"))), 400, "Expected toolResult blocks at messages.2.content for the following Ids: b"},
		{"a result without a call", at, body(user, partial, turnOf("user", result("a"))), 400, "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn."},
		{"the result of another call", at, body(user, turnOf("assistant", call("a")), turnOf("user", result("b"))), 400, "Expected toolResult blocks at messages.2.content for the following Ids: a"},
		{"one id twice", at, body(user, turnOf("assistant", call("a"), call("a")), turnOf("user", result("a"))), 400, "The toolUse blocks at messages.1.content contain duplicate Ids: a"},
		{"a call at the end", at, body(user, turnOf("assistant", call("a"))), 400, ofTheModel + "messages.1: `tool_use` ids were found without `tool_result` blocks"},

		{"a prefill", at, converseBody([]string{user, partial}), 200, ""},
		{"a prefill that ends in white space", at, converseBody([]string{user, saying("assistant", "The ")}), 400, ofTheModel + "messages: final assistant content cannot end with trailing whitespace"},
		{"a prefill on a later Claude", converseAt(bedrockLater), converseBody([]string{user, partial}), 400, ofTheModel + noPrefill},
		{"a prefill on another model", converseAt(nova), converseBody([]string{user, partial}), 400, "A conversation must end with a user message."},
		{"a prefill while it thinks", at, converseBody([]string{user, partial}, thinking), 400, ofTheModel + "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`"},
		{"thinking that leaves no tokens", at, converseBody([]string{user}, thinking, `"inferenceConfig":{"maxTokens":1000}`), 400, ofTheModel + "`max_tokens` must be greater than `thinking.budget_tokens`"},
		{"its own thinking", at, converseBody([]string{user, turnOf("assistant", thought("hm", Sign("hm")), `{"text":"So."}`), user}), 200, ""},
		{"edited thinking", at, converseBody([]string{user, turnOf("assistant", thought("hmm", Sign("hm")), `{"text":"So."}`), user}), 400, ofTheModel + "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{"its own redacted thinking", at, converseBody([]string{user, turnOf("assistant", redacted(Redact("a")), `{"text":"So."}`), user}), 200, ""},
		{"foreign redacted thinking", at, converseBody([]string{user, turnOf("assistant", redacted("zzz"), `{"text":"So."}`), user}), 400, "Invalid `data` in `redacted_thinking` block"},
	}.try(t, Converse)
}

// What InvokeModel of Anthropic's models refuses: what the model refuses of Messages
// (TestMessagesStrictness), and members that stand elsewhere.
func TestInvokeStrictness(t *testing.T) {
	user, partial := msg("user", "Go."), msg("assistant", "The quick")
	at := invokeAt(bedrockClaude)
	refusals{
		{"an ordinary request", at, invokeBody([]string{user}), 200, ""},
		{"a model in the body", at, invokeBody([]string{user}, `"model":"claude-sonnet-4-5"`), 400, "Malformed input request: #: extraneous key [model] is not permitted, please reformat your input and try again."},
		{"a stream in the body", at, invokeBody([]string{user}, `"stream":true`), 400, "#: extraneous key [stream] is not permitted"},
		{"no version", at, strings.Replace(invokeBody([]string{user}), `"anthropic_version":"bedrock-2023-05-31",`, "", 1), 400, "anthropic_version: Field required"},
		{"Anthropic's own version", at, strings.Replace(invokeBody([]string{user}), "bedrock-2023-05-31", "2023-06-01", 1), 400, "Invalid API version"},
		{"no max_tokens", at, strings.Replace(invokeBody([]string{user}), `"max_tokens":4096,`, "", 1), 400, "max_tokens: Field required"},
		{"no JSON", at, `{`, 400, "Malformed input request"},
		{"a blank text", at, invokeBody([]string{msg("user", " ")}), 400, "messages: text content blocks must contain non-whitespace text"},
		{"a result without a call", at, invokeBody([]string{user, partial, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}`}), 400, "unexpected `tool_use_id` found in `tool_result` blocks: a"},
		{"a prefill", at, invokeBody([]string{user, partial}), 200, ""},
		{"a prefill that ends in white space", at, invokeBody([]string{user, msg("assistant", "The\n")}), 400, "final assistant content cannot end with trailing whitespace"},
		{"a prefill on a later model", invokeAt(bedrockLater), invokeBody([]string{user, partial}), 400, noPrefill},
	}.try(t, Invoke)
}

func TestBedrockKeys(t *testing.T) {
	for _, d := range []Dialect{Converse, Invoke} {
		path, body := request(d)
		for _, tc := range []struct {
			authorization string
			status        int
			kind          string
		}{
			{"", 403, "MissingAuthenticationTokenException"},
			{"Basic x", 403, "AccessDeniedException"},
			{"Bearer key", 200, ""},
			{"AWS4-HMAC-SHA256 Credential=AKID", 200, ""},
		} {
			s := start(t, Config{})
			got := post(t, s, path, body, "Authorization", tc.authorization)
			if got.status != tc.status || got.header.Get("X-Amzn-Errortype") != tc.kind {
				t.Errorf("%s, %q: %d %v %s", d, tc.authorization, got.status, got.header, got.body)
			}
		}
	}
}
