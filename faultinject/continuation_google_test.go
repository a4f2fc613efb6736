package faultinject

import (
	"net/http"
	"strings"
	"testing"
	"unicode"
)

// Event boundaries of an answer, continued over the wire in each manner that
// Google's endpoints and the legacy completions have.
func TestGoogleContinuationsEqualTheWhole(t *testing.T) {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	c := &http.Client{Transport: tr}
	user := step("user_input", "Go.")
	for _, scenario := range []string{"text", "whitespace", "unicode", "structured"} {
		s := start(t, Config{Scenario: scenario})
		a, _ := Scenario(scenario, Prompt{}, Config{})
		said := ""
		for i, tok := range tokens(a.Text(), 7) {
			said += tok
			partial := strings.TrimRightFunc(said, unicode.IsSpace)
			if partial == "" || i%4 != 0 {
				continue
			}
			trimmedTail := strings.TrimSpace(tailRunes(said, 40))
			for _, m := range []struct {
				name       string
				dialect    Dialect
				path, body string
				echo       string
				manner     Manner
			}{
				{"gemini prefill", Gemini, geminiPathOf("gemini-2.5-flash"), geminiBody([]string{says("user", "Go."), says("model", partial)}), "", Prefill},
				{"gemini, a trailing turn that is no beginning", Gemini, geminiPathOf("gemini-2.5-flash"),
					geminiBody([]string{says("user", "Go."), content("model", textPart(partial[:len(tokens(partial, 7)[0])]), textPart(partial))}), "\x00", Fresh},
				{"gemini asked", Gemini, geminiPathOf("gemini-3.8-flash"), geminiBody([]string{says("user", "Go."), says("model", partial), says("user", ask(trimmedTail))}), trimmedTail, Asked},
				{"gemini asked plainly", Gemini, geminiPathOf("gemini-3.8-flash"), geminiBody([]string{says("user", "Go."), says("model", partial), says("user", plainAsk)}), "", Asked},
				{"interactions prefill", Interactions, interactionsPath, interactionBody("gemini-2.5-flash", []string{user, step("model_output", partial)}), "", Prefill},
				{"interactions asked", Interactions, interactionsPath, interactionBody("gemini-3.8-flash", []string{user, step("model_output", partial), step("user_input", ask(trimmedTail))}), trimmedTail, Asked},
			} {
				s.Reset()
				got := postWith(t, c, s.URL()+m.path, m.body)
				h := hear(t, m.dialect, got.body)
				if m.manner == Fresh { // what the model said is not how the answer begins: the whole is due
					if h.text != a.Text() {
						t.Fatalf("%s/%s: %q", scenario, m.name, h.text)
					}
					continue
				}
				rest, echoed := strings.CutPrefix(h.text, m.echo)
				if partial == a.Text() && h.text == "[[COMPLETE]]" {
					rest, echoed = "", true
				}
				if got.err != nil || got.status != 200 || !echoed || partial+rest != a.Text() {
					t.Fatalf("%s/%s after %q: %d %v\n%q", scenario, m.name, partial, got.status, got.err, h.text)
				}
				list := s.Log()
				if x := list[len(list)-1]; x.Continuation.Manner != m.manner || x.Continuation.Said != partial || x.TurnNo != 1 {
					t.Fatalf("%s/%s: %+v", scenario, m.name, x.Continuation)
				}
			}
		}
	}
}

// A prompt that ends in what was answered to its beginning is continued, and only
// while that answer is unfinished.
func TestCompletionsContinueByPrompt(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: rst after event 9\nattempt 2: fin after event 6")})
	const prompt = "Tell me something.\n"
	said := ""
	for attempt := range 3 {
		got := post(t, s, completionsPath, completionBody(prompt+said))
		h := hear(t, Completions, got.body)
		if !strings.HasPrefix(shortText, said+h.text) || h.text == "" {
			t.Fatalf("attempt %d after %q: %q", attempt+1, said, h.text)
		}
		said += h.text
	}
	list := s.Log()
	if said != shortText || list[2].Attempt != 3 || list[2].Continuation.Manner != Prefill || list[2].Continuation.Said == "" {
		t.Errorf("%q %+v", said, list[2].Continuation)
	}
	// The turn is over: the same words are a prompt like any other.
	again := hear(t, Completions, post(t, s, completionsPath, completionBody(prompt+shortText[:20])).body)
	if again.text == shortText[20:] {
		t.Errorf("a finished answer went on")
	}
	// A prompt that goes on otherwise is another one.
	post(t, s, completionsPath, completionBody("Once"))
	if other := hear(t, Completions, post(t, s, completionsPath, completionBody("Once upon a time")).body); !strings.HasPrefix(other.text, "The") {
		t.Errorf("%q", other.text)
	}
}

// Code that ran is not run again: its result is part of what was said.
func TestGoogleContinuesBehindCode(t *testing.T) {
	a, _ := Scenario("code-run", Prompt{Dialect: Gemini}, Config{})
	before, code, behind := a.Blocks[0].Text, a.Blocks[1], a.Blocks[2].Text
	run := `{"executableCode":{"language":"PYTHON","code":` + quote(code.Args) + `,"id":"x"},"thoughtSignature":` + quote(signPart("code", code.Args)) + `}`
	result := `{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":` + quote(code.Text) + `,"id":"x"}}`
	steps := func(more ...string) []string { return append([]string{step("user_input", "Go.")}, more...) }
	codeSteps := []string{step("model_output", before), `{"type":"code_execution_call","id":"x","arguments":{"code":` + quote(code.Args) + `}}`,
		`{"type":"code_execution_result","call_id":"x","result":` + quote(code.Text) + `}`, step("model_output", "The result")}
	for _, tc := range []struct {
		name    string
		dialect Dialect
		path    string
		body    string
		want    string
	}{
		{"a trailing turn", Gemini, geminiPathOf("gemini-3-pro-preview"), geminiBody([]string{says("user", "Go."), content("model", textPart(before), run, result, textPart("The result"))}), strings.TrimPrefix(behind, "The result")},
		{"a trailing result", Gemini, geminiPathOf("gemini-3-pro-preview"), geminiBody([]string{says("user", "Go."), content("model", textPart(before), run, result)}), behind},
		{"asked", Gemini, geminiPathOf("gemini-3.8-flash"), geminiBody([]string{says("user", "Go."), content("model", textPart(before), run, result), says("user", plainAsk)}), behind},
		{"trailing steps", Interactions, interactionsPath, interactionBody("gemini-2.5-flash", steps(codeSteps...)), strings.TrimPrefix(behind, "The result")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "code-run"})
			got := post(t, s, tc.path, tc.body)
			if h := hear(t, tc.dialect, got.body); h.text != tc.want || strings.Contains(got.body, "print(") {
				t.Errorf("%d %q\n%s", got.status, h.text, got.body)
			}
		})
	}
}

// Limits of a resumed generation count from its beginning; those of a continuation
// from its own (WIRE 2.2).
func TestGeminiLimits(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: rst after event 10; variant checkpoints\nattempt *: variant checkpoints")})
	ask := geminiBody([]string{says("user", "Go.")}, `"generationConfig":{"maxOutputTokens":30}`)
	first := post(t, s, geminiPath, ask)
	token := ""
	for _, part := range strings.Split(first.body, `"continuationToken": "`)[1:] {
		token, _, _ = strings.Cut(part, `"`)
	}
	said, err := readToken(token)
	if err != nil {
		t.Fatalf("%v %s", err, first.body)
	}
	rest := hear(t, Gemini, post(t, s, geminiPath, strings.Replace(ask, `{`, `{"continuationToken":"`+token+`",`, 1)).body)
	whole := limit(say(shortText), 30, 0).Text()
	if shortText[:said]+rest.text != whole || rest.finish != "MAX_TOKENS" {
		t.Errorf("%q + %q (%s), want %q", shortText[:said], rest.text, rest.finish, whole)
	}
}
