package faultinject

import (
	"strings"
	"testing"
)

// What Chat servers refuse, and what they make of a trailing assistant
// message (WIRE 2.1).
func TestChatStrictness(t *testing.T) {
	user, partial := msg("user", "Go."), msg("assistant", "The quick")
	flagged := func(flag string) string { return strings.Replace(partial, `}`, `,`+flag+`}`, 1) }
	body := func(messages ...string) string { return chatBody("some-model", messages...) }
	with := func(body, member string) string { return strings.Replace(body, `"stream"`, member+`,"stream"`, 1) }
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	result := `{"role":"tool","tool_call_id":"c1","content":"ok"}`
	const onward, again = " brown fox", "The quick"
	for _, tc := range []struct {
		name   string
		host   Host
		body   string
		header []string
		path   string
		status int
		says   string // part of the error, or how the answer begins
	}{
		{"an ordinary request", OpenAI, body(user), nil, "", 200, again},
		{"no key", OpenAI, body(user), []string{"Authorization", ""}, "", 401, "You didn't provide an API key"},
		{"azure key", OpenAI, body(user), []string{"Authorization", "", "Api-Key", "k"}, "", 200, again},
		{"no model", OpenAI, chatBody("", user), nil, "", 400, "you must provide a model parameter"},
		{"no messages", OpenAI, `{"model":"m"}`, nil, "", 400, "Missing required parameter: 'messages'"},
		{"empty messages", OpenAI, body(), nil, "", 400, "empty array"},
		{"unknown role", OpenAI, body(msg("robot", "x")), nil, "", 400, "Invalid value: 'robot'"},
		{"call and result", OpenAI, body(user, call, result), nil, "", 200, again},
		{"result without call", OpenAI, body(user, result), nil, "", 400, "must be a response to a preceeding message with 'tool_calls'"},
		{"call without result", OpenAI, body(user, call, user), nil, "", 400, "did not have response messages: c1"},
		{"call at the end", OpenAI, body(user, call), nil, "", 400, "did not have response messages: c1"},
		{"null content", OpenAI, body(`{"role":"user","content":null}`), nil, "", 400, "expected a string, got null"},
		{"call id too long", OpenAI, body(user, strings.ReplaceAll(call, "c1", strings.Repeat("c", 65)), strings.ReplaceAll(result, "c1", strings.Repeat("c", 65))), nil, "", 400, "maximum length 64"},
		{"usage without stream", OpenAI, `{"model":"m","stream_options":{"include_usage":true},"messages":[` + user + `]}`, nil, "", 400, "only allowed when 'stream' is enabled"},
		{"unknown fields", OpenAI, with(body(user), `"brand_new":1`), nil, "", 200, again},

		{"openai: a trailing answer is finished", OpenAI, body(user, partial), nil, "", 200, again},
		{"openai: continue_final_message", OpenAI, with(body(user, partial), `"continue_final_message":true`), nil, "", 400, "Unrecognized request argument supplied: continue_final_message"},
		{"openai: add_generation_prompt", OpenAI, with(body(user, partial), `"add_generation_prompt":false`), nil, "", 400, "Unrecognized request argument supplied: add_generation_prompt"},
		{"openai: prefix", OpenAI, body(user, flagged(`"prefix":true`)), nil, "", 400, "('prefix' was unexpected) - 'messages.1'"},

		{"vllm: both flags right", VLLM, with(body(user, partial), `"continue_final_message":true,"add_generation_prompt":false`), nil, "", 200, onward},
		{"vllm: both true", VLLM, with(body(user, partial), `"continue_final_message":true,"add_generation_prompt":true`), nil, "", 400, "Cannot set both"},
		{"vllm: only one", VLLM, with(body(user, partial), `"continue_final_message":true`), nil, "", 400, "Cannot set both"},
		{"vllm: no flags", VLLM, body(user, partial), nil, "", 200, again},
		{"vllm: nothing to continue", VLLM, with(body(user), `"continue_final_message":true,"add_generation_prompt":false`), nil, "", 400, "final message is not from the assistant"},
		{"sglang: flag", SGLang, with(body(user, partial), `"continue_final_message":true`), nil, "", 200, onward},
		{"sglang: without it the turn is the user's", SGLang, body(user, partial), nil, "", 200, again},
		{"mistral: prefix", Mistral, body(user, flagged(`"prefix":true`)), nil, "", 200, onward},
		{"mistral: none", Mistral, body(user, partial), nil, "", 400, "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"},
		{"deepseek: prefix under beta", DeepSeek, body(user, flagged(`"prefix":true`)), nil, "/beta/v1/chat/completions", 200, onward},
		{"deepseek: prefix elsewhere", DeepSeek, body(user, flagged(`"prefix":true`)), nil, "", 400, "prefix mode"},
		{"moonshot: partial", Moonshot, body(user, flagged(`"partial":true`)), nil, "", 200, onward},
		{"moonshot: none", Moonshot, body(user, partial), nil, "", 200, again},
		{"llama.cpp: by itself", LlamaCPP, body(user, partial), nil, "", 200, onward},
		{"llama.cpp: two answers", LlamaCPP, body(user, partial, partial), nil, "", 400, "Cannot have 2 or more assistant messages"},
		{"llama.cpp: thinking", LlamaCPP, with(body(user, partial), `"chat_template_kwargs":{"enable_thinking":true}`), nil, "", 400, "incompatible with enable_thinking"},
		{"ollama: by itself", Ollama, body(user, partial), nil, "", 200, onward},
		{"groq: by itself", Groq, body(user, partial), nil, "", 200, onward},
		{"openrouter: an old claude", OpenRouter, chatBody("anthropic/claude-sonnet-4.5", user, partial), nil, "", 200, onward},
		{"openrouter: a modern claude", OpenRouter, chatBody("anthropic/claude-opus-4.6", user, partial), nil, "", 400, noPrefill},
		{"openrouter: another model starts again", OpenRouter, chatBody("openai/gpt-5", user, partial), nil, "", 200, again},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "text", Host: tc.host})
			path := tc.path
			if path == "" {
				path = chatPath
			}
			got := post(t, s, path, tc.body, tc.header...)
			if got.status != tc.status {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if tc.status != 200 {
				if !strings.Contains(got.body, tc.says) || !strings.HasPrefix(got.body, `{"error":{"message":`) {
					t.Errorf("%s", got.body)
				}
				return
			}
			if h := hear(t, Chat, got.body); !strings.HasPrefix(h.text, tc.says) {
				t.Errorf("answer begins %.30q, want %q", h.text, tc.says)
			}
		})
	}
}

func TestIdempotencyKeyOfAChangedBody(t *testing.T) {
	s := start(t, Config{Scenario: "text"})
	_, body := request(Chat)
	for i, want := range []int{200, 200, 400} {
		if i == 2 {
			body = chatBody("gpt-4.1", msg("user", "Something else."))
		}
		if got := post(t, s, chatPath, body, "Idempotency-Key", "k"); got.status != want {
			t.Errorf("request %d: %d %s", i, got.status, got.body)
		}
	}
}

func TestRefusedRequestsAreNoAttempts(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: fin after event 4\nattempt 2: seam restart")})
	question := msg("user", "Go.")
	first := post(t, s, messagesPath, messagesBody("claude-opus-4-6", question))
	said := strings.TrimSpace(hear(t, Messages, first.body).text)
	if got := post(t, s, messagesPath, messagesBody("claude-opus-4-6", question, msg("assistant", said))); got.status != 400 {
		t.Fatalf("prefill: %d", got.status)
	}
	third := post(t, s, messagesPath, messagesBody("claude-opus-4-6", question, msg("assistant", said), msg("user", plainAsk)))
	if got := hear(t, Messages, third.body).text; got != shortText {
		t.Errorf("seam of attempt 2 was not used: %q", got)
	}
}
