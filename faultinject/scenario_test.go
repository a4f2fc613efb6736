package faultinject

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

const bashTool = `{"name":"Bash","description":"run","input_schema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}`

// An agent that knows nothing of faults: a call, its result, the answer; and
// the side requests it makes.
func TestAutoServesAnAgent(t *testing.T) {
	s := start(t, Config{})
	withTools := func(messages ...string) string {
		return strings.Replace(messagesBody("claude-opus-4-6", messages...), `"stream"`, `"tools":[`+bashTool+`],"stream"`, 1)
	}
	question := msg("user", "Please run echo hello and tell me what it printed, with all details.")
	first := hear(t, Messages, post(t, s, messagesPath, withTools(question)).body)
	if len(first.calls) != 1 || first.finish != "tool_use" || !strings.HasPrefix(first.calls[0], `Bash {"command":"echo hello"`) {
		t.Fatalf("%+v", first)
	}
	call := `{"role":"assistant","content":[{"type":"text","text":` + quote(first.text) + `},{"type":"tool_use","id":"toolu_9","name":"Bash","input":{"command":"echo hello"}}]}`
	result := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_9","content":[{"type":"text","text":"hello\n"}]}]}`
	second := hear(t, Messages, post(t, s, messagesPath, withTools(question, call, result)).body)
	if second.finish != "end_turn" || !strings.Contains(second.text, `"hello"`) {
		t.Errorf("%+v", second)
	}
	again := hear(t, Messages, post(t, s, messagesPath, withTools(question, call, result, msg("assistant", second.text), msg("user", "And again, with all details please."))).body)
	if again.finish != "tool_use" {
		t.Errorf("the next question: %+v", again)
	}
	partial := second.text[:20]
	rest := hear(t, Messages, post(t, s, messagesPath, withTools(question, call, result, msg("assistant", partial), msg("user", plainAsk))).body)
	if partial+rest.text != second.text {
		t.Errorf("continued: %q", rest.text)
	}
	title := hear(t, Messages, post(t, s, messagesPath, messagesBody("claude-haiku-4-5", msg("user", "Title?"))).body)
	if title.text == "" || len(title.text) > 40 || len(title.calls) > 0 {
		t.Errorf("side request: %+v", title)
	}
}

// An agent has to send the reasoning of its tool call back, as it was signed.
func TestThinkingAgentKnowsItsReasoningAgain(t *testing.T) {
	s := start(t, Config{Scenario: "thinking-agent"})
	ask := func(messages ...string) answerOf {
		body := messagesBody("claude-opus-4-6", messages...)
		return post(t, s, messagesPath, strings.Replace(body, `"stream"`, `"tools":[`+bashTool+`],"thinking":{"type":"adaptive"},"stream"`, 1))
	}
	question := msg("user", "Please run echo hello.")
	first := hear(t, Messages, ask(question).body)
	if first.thinking == "" || len(first.calls) != 1 || first.finish != "tool_use" {
		t.Fatalf("%+v", first)
	}
	history := func(thought string) []string {
		return []string{question,
			`{"role":"assistant","content":[{"type":"thinking","thinking":` + quote(thought) + `,"signature":` + quote(Sign(first.thinking)) + `},` +
				`{"type":"text","text":` + quote(first.text) + `},{"type":"tool_use","id":"toolu_9","name":"Bash","input":{"command":"echo hello"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_9","content":"hello"}]}`}
	}
	second := hear(t, Messages, ask(history(first.thinking)...).body)
	if second.thinking == "" || second.finish != "end_turn" || !strings.Contains(second.text, `"hello"`) {
		t.Errorf("%+v", second)
	}
	if got := ask(history(first.thinking + " Edited.")...); got.status != 400 {
		t.Errorf("edited reasoning: %d %s", got.status, got.body)
	}
}

func TestAutoAnswersASchema(t *testing.T) {
	s := start(t, Config{})
	body := strings.Replace(messagesBody("claude-haiku-4-5", msg("user", "Title?")), `"stream"`,
		`"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"title":{"type":"string"},"n":{"type":["integer","null"]},"tags":{"type":"array","items":{"enum":["a","b"]}}},"required":["title","n","tags"]}}},"stream"`, 1)
	var got struct {
		Title string
		N     *int
		Tags  []string
	}
	text := hear(t, Messages, post(t, s, messagesPath, body).body).text
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.Title == "" || got.N == nil || len(got.Tags) < 1 || got.Tags[0] != "a" {
		t.Errorf("%q: %v", text, err)
	}
}

func TestConfiguredAndMadeUpCalls(t *testing.T) {
	tools := []Tool{{Name: "mcp__x", Schema: json.RawMessage(`{}`)}, {Name: "paint", Schema: json.RawMessage(`{"type":"object","properties":{"colour":{"enum":["red"]}},"required":["colour"]}`)}}
	a, _ := Scenario("auto", Prompt{Tools: tools}, Config{})
	if k := a.Calls(); len(k) != 1 || k[0].Name != "paint" || k[0].Args != `{"colour":"red"}` {
		t.Errorf("%+v", a)
	}
	a, _ = Scenario("auto", Prompt{Tools: tools}, Config{Calls: []ToolCall{{"mcp__x", `{"a":1}`}}})
	if k := a.Calls(); len(k) != 1 || k[0].Name != "mcp__x" {
		t.Errorf("%+v", a)
	}
	a, _ = Scenario("auto", Prompt{Tools: tools, ToolChoice: "none"}, Config{})
	if len(a.Calls()) != 0 {
		t.Errorf("tool_choice none: %+v", a)
	}
	if _, err := Scenario("nowhere", Prompt{}, Config{}); err == nil || !strings.Contains(err.Error(), "use one of agent") {
		t.Errorf("%v", err)
	}
}

// Codex declares its tools in the input, in a namespace; what is in another one
// cannot be called by its name alone.
func TestToolsDeclaredInTheInput(t *testing.T) {
	s := start(t, Config{Calls: []ToolCall{{"spawn", `{}`}, {"exec", "text(1)"}}})
	tools := `{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"team","tools":[{"type":"function","name":"spawn"}]},` +
		`{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]}`
	called := post(t, s, responsesPath, responsesBody("gpt-5.1", tools, msg("user", "Go.")))
	if called.status != 200 || !strings.Contains(called.body, `"type":"custom_tool_call","status":"completed","input":"text(1)"`) {
		t.Errorf("%d %s", called.status, called.body)
	}
}

func TestScenarioIsChosenByHeaderModelScriptOrConfig(t *testing.T) {
	s := start(t, Config{Scenario: "code", Script: MustScript("attempt 2: scenario unicode")})
	for _, tc := range []struct {
		name, model, header, want string
	}{
		{"config", "gpt-4.1", "", codeText},
		{"model", "scenario/text", "", shortText},
		{"model with abilities", "scenario/text@gpt-4.1", "", shortText},
		{"header", "scenario/text", "whitespace", whitespaceText},
	} {
		got := hear(t, Chat, post(t, s, chatPath, chatBody(tc.model, msg("user", tc.name)), HeaderScenario, tc.header).body)
		if got.text != tc.want {
			t.Errorf("%s: %q", tc.name, got.text)
		}
	}
	s = start(t, Config{Scenario: "code", Script: MustScript("attempt 1: fin before headers\nattempt 2: scenario unicode")})
	path, body := request(Chat)
	post(t, s, path, body)
	if got := hear(t, Chat, post(t, s, path, body).body); got.text != unicodeText {
		t.Errorf("script: %q", got.text)
	}
	if got := post(t, s, chatPath, chatBody("scenario/nowhere", msg("user", "x"))); got.status != 404 || !strings.Contains(got.body, "use one of") {
		t.Errorf("unknown scenario: %d %s", got.status, got.body)
	}
}

func TestSideEndpoints(t *testing.T) {
	s := start(t, Config{})
	if got := post(t, s, "/v1/messages/count_tokens?beta=true", messagesBody("claude-opus-4-6", msg("user", "Hi"))); got.status != 200 || !strings.Contains(got.body, `"input_tokens":`) {
		t.Errorf("%+v", got)
	}
	if got := post(t, s, "/v1/nothing", `{}`); got.status != 404 {
		t.Errorf("%+v", got)
	}
	for header, want := range map[string]string{"Anthropic-Version": `"has_more":false`, "X-None": `"object":"list"`} {
		req, err := http.NewRequestWithContext(patience(t), http.MethodGet, s.URL()+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(header, "2023-06-01")
		tr := &http.Transport{DisableKeepAlives: true}
		res, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("models with %s: %s %v", header, b, err)
		}
	}
	if got := sendWith(t, http.DefaultClient, http.MethodGet, s.URL()+responsesPath, "", "Connection", "Upgrade", "Upgrade", "websocket"); got.status != 426 || !strings.Contains(got.body, "not WebSocket") {
		t.Errorf("a WebSocket: %+v", got)
	}
	whole := post(t, s, chatPath, `{"model":"scenario/text","messages":[`+msg("user", "Hi")+`]}`)
	if whole.header.Get("Content-Type") != "application/json" || !strings.Contains(whole.body, `"object":"chat.completion"`) {
		t.Errorf("%+v", whole)
	}
}

func TestMaxTokensAndStopsCountOnTheWire(t *testing.T) {
	s := start(t, Config{Scenario: "long"})
	body := strings.Replace(messagesBody("claude-opus-4-6", msg("user", "Go.")), "4096", "10", 1)
	if got := hear(t, Messages, post(t, s, messagesPath, body).body); got.finish != "max_tokens" || !strings.HasPrefix(longText(600), got.text) {
		t.Errorf("%+v", got)
	}
	body = strings.Replace(chatBody("gpt-4.1", msg("user", "Go.")), `"stream"`, `"stop":"heron","stream"`, 1)
	if got := hear(t, Chat, post(t, s, chatPath, body).body); got.finish != "stop" || strings.Contains(got.text, "heron") {
		t.Errorf("%+v", got)
	}
}

// What a client pays for being cut is the sum of the prompts in the log, those
// that were never answered included.
func TestLogTellsTheSizeOfThePrompt(t *testing.T) {
	var log strings.Builder
	s, err := New(Config{Script: MustScript("attempt 1: status 529"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	body := messagesBody("claude-opus-4-6", msg("user", "Hello?"))
	for range 2 {
		post(t, s, messagesPath, body)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("prompt_bytes=%d ", len(body)); strings.Count(log.String(), want) != 2 {
		t.Errorf("not twice %q in\n%s", want, log.String())
	}
}

func TestConfigIsValidated(t *testing.T) {
	for name, c := range map[string]Config{
		"use one of agent":         {Scenario: "nowhere"},
		"use one of diverge":       {Seam: Seam{Name: "of-gold"}},
		"use one of openai, vllm,": {Host: "mainframe"},
		"choose another address":   {Listen: "256.0.0.1:1"},
	} {
		if s, err := New(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v %v", name, s, err)
		}
	}
}
