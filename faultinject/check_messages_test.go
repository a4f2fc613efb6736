package faultinject

import (
	"strings"
	"testing"
)

// What Anthropic refuses, in its words (WIRE 2.1-2.4, FIELD-REPORTS D5-D9).
func TestMessagesStrictness(t *testing.T) {
	user := msg("user", "Go.")
	call := `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]}`
	result := func(id string) string {
		return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"ok"}]}`
	}
	thinking := func(text, signature string) string {
		return `{"role":"assistant","content":[{"type":"thinking","thinking":` + quote(text) + `,"signature":` + quote(signature) + `},{"type":"text","text":"So."}]}`
	}
	const old, modern = "claude-sonnet-4-5", "claude-opus-4-6"
	const clearing = `"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},`
	with := func(body, member string) string { return strings.Replace(body, `"stream"`, member+`,"stream"`, 1) }
	for _, tc := range []struct {
		name, body string
		header     []string
		status     int
		says       string // part of the message; the answer streams if status is 200
	}{
		{"an ordinary request", messagesBody(modern, user), nil, 200, ""},
		{"bearer instead of key", messagesBody(modern, user), []string{"X-Api-Key", ""}, 200, ""},
		{"no credential", messagesBody(modern, user), []string{"X-Api-Key", "", "Authorization", ""}, 401, "x-api-key header is required"},
		{"no version", messagesBody(modern, user), []string{"Anthropic-Version", ""}, 400, "anthropic-version: header is required"},
		{"no JSON", `{"model":`, nil, 400, "could not parse"},
		{"no model", `{"max_tokens":5,"messages":[` + user + `]}`, nil, 400, "model: Field required"},
		{"no max_tokens", `{"model":"m","messages":[` + user + `]}`, nil, 400, "max_tokens: Field required"},
		{"no messages", messagesBody(modern), nil, 400, "at least one message is required"},
		{"assistant first", messagesBody(modern, msg("assistant", "Hi"), user), nil, 400, `first message must use the \"user\" role`},
		{"unknown role", messagesBody(modern, msg("tool", "x")), nil, 400, "messages.0.role: Input should be 'user' or 'assistant'"},
		{"system message", messagesBody(modern, user, msg("system", "x"), user), nil, 400, "messages.1.role"},
		{"system message with its beta", messagesBody(modern, user, msg("system", "x"), user), []string{"Anthropic-Beta", "mid-conversation-system-2026-01-01"}, 200, ""},
		{"two user messages in a row are joined", messagesBody(modern, user, user), nil, 200, ""},
		{"empty text", messagesBody(modern, msg("user", "")), nil, 400, "text content blocks must be non-empty"},
		{"blank text", messagesBody(modern, user, msg("assistant", " \n"), user), nil, 400, "text content blocks must contain non-whitespace text"},
		{"empty content", messagesBody(modern, `{"role":"user","content":[]}`), nil, 400, "all messages must have non-empty content"},

		{"prefill on an old model", messagesBody(old, user, msg("assistant", "The")), nil, 200, ""},
		{"prefill on a modern model", messagesBody(modern, user, msg("assistant", "The")), nil, 400, noPrefill},
		{"prefill with trailing whitespace", messagesBody(old, user, msg("assistant", "The ")), nil, 400, "final assistant content cannot end with trailing whitespace"},
		{"trailing whitespace earlier in the history", messagesBody(old, user, msg("assistant", "The "), user), nil, 200, ""},
		{"prefill with thinking", with(messagesBody(old, user, msg("assistant", "The")), `"thinking":{"type":"enabled","budget_tokens":1024}`), nil, 400, "Expected `thinking` or `redacted_thinking`, but found `text`"},
		{"scenario name with a model", messagesBody("scenario/text@claude-sonnet-4-5", user, msg("assistant", "The")), nil, 200, ""},

		{"our own thinking", messagesBody(modern, user, thinking("hm", Sign("hm")), user), nil, 200, ""},
		{"edited thinking", messagesBody(modern, user, thinking("hmm", Sign("hm")), user), nil, 400, "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{"foreign signature", messagesBody(modern, user, thinking("hm", "ub1.drop"), user), nil, 400, "Invalid `signature`"},
		{"unsigned thinking", messagesBody(modern, user, strings.Replace(thinking("hm", "x"), `,"signature":"x"`, "", 1), user), nil, 400, "thinking.signature: Field required"},
		{"half a signature", messagesBody(modern, user, thinking("hm", Sign("hm")[:9]), user), nil, 400, "Invalid `signature`"},
		{"our own redacted thinking", messagesBody(modern, user, `{"role":"assistant","content":[{"type":"redacted_thinking","data":`+quote(Redact("a"))+`},{"type":"text","text":"So."}]}`, user), nil, 200, ""},
		{"foreign redacted thinking", messagesBody(modern, user, `{"role":"assistant","content":[{"type":"redacted_thinking","data":"zzz"},{"type":"text","text":"So."}]}`, user), nil, 400, "Invalid `data` in `redacted_thinking` block"},

		{"call and result", messagesBody(modern, user, call, result("toolu_1")), nil, 200, ""},
		{"call without result", messagesBody(modern, user, call, user), nil, 400, "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1"},
		{"call at the end", messagesBody(old, user, call), nil, 400, "without `tool_result` blocks immediately after: toolu_1"},
		{"result without call", messagesBody(modern, user, msg("assistant", "Hi"), result("toolu_1")), nil, 400, "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1"},
		{"result of another call", messagesBody(modern, user, call, result("toolu_2")), nil, 400, "unexpected `tool_use_id`"},
		{"text before the result", messagesBody(modern, user, call, `{"role":"user","content":[{"type":"text","text":"so"},{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]}`), nil, 400, "immediately after: toolu_1"},
		{"text after the result", messagesBody(modern, user, call, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"},{"type":"text","text":"so"}]}`), nil, 200, ""},
		{"same id twice", messagesBody(modern, user, call, result("toolu_1"), call, result("toolu_1")), nil, 400, "`tool_use` ids must be unique"},
		{"input that is no object", messagesBody(modern, user, strings.Replace(call, "{}", `"{\"a\":"`, 1), result("toolu_1")), nil, 400, "Input should be a valid dictionary"},
		{"strange call id", messagesBody(modern, user, strings.ReplaceAll(call, "toolu_1", "a b"), result("a b")), nil, 400, "String should match pattern"},

		{"budget not below max_tokens", with(messagesBody(modern, user), `"thinking":{"type":"enabled","budget_tokens":4096}`), nil, 400, "`max_tokens` must be greater than `thinking.budget_tokens`"},
		{"budget too small", with(messagesBody(modern, user), `"thinking":{"type":"enabled","budget_tokens":1000}`), nil, 400, "greater than or equal to 1024"},
		{"thinking with a forced tool", with(messagesBody(modern, user), `"thinking":{"type":"enabled","budget_tokens":1024},"tool_choice":{"type":"any"}`), nil, 400, "Thinking may not be enabled when tool_choice forces tool use"},
		{"thinking disabled where it cannot be", with(messagesBody("claude-fable-5-1", user), `"thinking":{"type":"disabled"}`), nil, 400, "not supported for this model"},
		{"clearing thoughts while there are none", with(messagesBody(modern, user), clearing+`"thinking":{"type":"disabled"}`), nil, 400, "`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive"},
		{"clearing thoughts without a word about thinking", with(messagesBody(modern, user), strings.TrimSuffix(clearing, ",")), nil, 400, "strategy requires `thinking`"},
		{"clearing thoughts while thinking", with(messagesBody(modern, user), clearing+`"thinking":{"type":"adaptive"}`), nil, 200, ""},
		{"clearing tool results", with(messagesBody(modern, user), strings.Replace(strings.TrimSuffix(clearing, ","), "clear_thinking_20251015", "clear_tool_uses_20250919", 1)), nil, 200, ""},
		{"unknown fields", with(messagesBody(modern, user), `"brand_new":{"a":1}`), nil, 200, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "text"})
			got := post(t, s, messagesPath, tc.body, tc.header...)
			if got.status != tc.status || tc.status != 200 && !strings.Contains(got.body, strings.ReplaceAll(tc.says, "\n", `\n`)) {
				t.Fatalf("%d %s", got.status, got.body)
			}
			x := s.Log()[0]
			if (x.Refusal != nil) != (tc.status != 200) {
				t.Errorf("logged refusal: %v", x.Refusal)
			}
			if tc.status != 200 && !strings.HasPrefix(got.body, `{"type":"error","error":{"type":"`) {
				t.Errorf("shape: %s", got.body)
			}
		})
	}
}

func TestPrefillTableOfClaude(t *testing.T) {
	for model, want := range map[string]bool{
		"claude-3-5-sonnet-20241022": true, "claude-2.1": true, "claude-opus-4-1-20250805": true, "claude-sonnet-4-20250514": true,
		"claude-sonnet-4-5-20250929": true, "claude-haiku-4-5": true, "claude-opus-4-5": true, "anthropic/claude-sonnet-4.5": true, "anthropic/claude-opus-4": true,
		"claude-opus-4-6": false, "claude-sonnet-4-6": false, "claude-opus-4-7": false, "claude-opus-5": false, "claude-sonnet-5-5": false, "claude-fable-5": false, "claude-mythos-1": false,
	} {
		if got := claudePrefills(model); got != want {
			t.Errorf("%s: prefill %v", model, got)
		}
	}
}
