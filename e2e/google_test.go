package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/turn"
)

// geminiTurn is what an application makes of an answer: text, calls and finish.
// Thoughts are left out; after a cut in them they are thought anew.
type geminiTurn struct {
	text, calls, hosted, finish string
	signatures, sources         int
}

// askGemini has google.golang.org/genai ask for an answer under a script, without
// its own continuation.
func askGemini(t *testing.T, st *stage, model, scenario, script string) (g geminiTurn, seen []faultinject.Exchange, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	key := fmt.Sprintf("gemini %d", turns.Add(1))
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	h := http.Header{faultinject.HeaderScenario: {scenario}, faultinject.HeaderTurn: {key}}
	if script != "" {
		h.Set(faultinject.HeaderScript, script)
	}
	c, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPClient: &http.Client{Transport: tr},
		HTTPOptions: genai.HTTPOptions{BaseURL: st.base, Headers: h}})
	if err != nil {
		t.Fatal(err)
	}
	off := false
	for r, err := range c.Models.GenerateContentStream(ctx, model, genai.Text("Tell me something."), &genai.GenerateContentConfig{AutomaticContinuation: &off}) {
		if err != nil {
			return g, st.of(key), err
		}
		g.add(r)
	}
	return g, st.of(key), nil
}

func (g *geminiTurn) add(r *genai.GenerateContentResponse) {
	if f := r.PromptFeedback; f != nil {
		g.finish += string(f.BlockReason)
	}
	for _, c := range r.Candidates {
		if g.finish += string(c.FinishReason); c.GroundingMetadata != nil {
			g.sources += len(c.GroundingMetadata.GroundingChunks)
		}
		if c.Content == nil {
			continue
		}
		for _, p := range c.Content.Parts {
			switch {
			case p.Thought:
				continue
			case p.FunctionCall != nil:
				args, _ := json.Marshal(p.FunctionCall.Args)
				g.calls += p.FunctionCall.Name + string(args) + ";"
			case p.ExecutableCode != nil:
				g.hosted += p.ExecutableCode.Code
			case p.CodeExecutionResult != nil:
				g.hosted += p.CodeExecutionResult.Output
			}
			g.text += p.Text
			if len(p.ThoughtSignature) > 0 {
				g.signatures++
			}
		}
	}
}

// Gemini, its stream cut behind its events: the SDK reads what it reads without a
// cut, whatever way of going on the model has. Each cut has a proxy of its own, so
// that none waits for the pace of the others.
func TestGeminiHealsBehindEveryEvent(t *testing.T) {
	prefill := []dialect.AbilityRule{{Ability: dialect.Ability{Manners: []turn.Manner{turn.Prefill, turn.Asked}}}}
	provider := newProvider(t, faultinject.OpenAI)
	for _, way := range []struct {
		name, model string
		abilities   []dialect.AbilityRule
		lines       string
	}{
		{"a trailing turn", "gemini-3-pro-preview", prefill, "attempt *: pass"},
		{"asked", "gemini-3.8-flash", nil, "attempt *: pass"},
		{"a trailing turn that is refused, then asked", "gemini-3.8-flash", prefill, "attempt *: pass"},
		{"a continuation token", "gemini-3-pro-preview", nil, "attempt *: variant checkpoints"},
	} {
		for _, scenario := range []string{"text", "unicode", "whitespace", "thinking", "tool", "thinking-tool", "grounded", "code-run"} {
			t.Run(way.name+"/"+scenario, func(t *testing.T) {
				t.Parallel()
				want, seen, err := askGemini(t, provider, way.model, scenario, way.lines)
				if err != nil || want.finish == "" {
					t.Fatalf("the provider itself: %v %+v", err, want)
				}
				every := 1
				if scenario != "tool" {
					every = 3 // enough to stand in every part of it
				}
				refused := 0
				for cut := 1; cut < seen[0].Events; cut += every {
					front := &stage{provider.provider, serve(t, proxy.Config{Upstreams: []proxy.Upstream{{Name: "gemini", URL: provider.base, Abilities: way.abilities}}})}
					script := fmt.Sprintf("attempt 1: rst after event %d|%s", cut, way.lines)
					got, seen, err := askGemini(t, front, way.model, scenario, script)
					if scenario == "code-run" && err != nil && strings.Contains(err.Error(), "hosted_tool") {
						refused++ // code that runs somewhere, and no result: the promise of DESIGN §3
						continue
					}
					if err != nil || got != want {
						t.Errorf("cut behind event %d: %v\n%+v, want\n%+v\n%s", cut, err, got, want, story(seen))
					}
				}
				if refused > 1 {
					t.Errorf("%d cuts were refused for the code, which stands between two events", refused)
				}
			})
		}
	}
}

// The same for a prompt that is completed.
func TestCompletionsHealBehindEveryEvent(t *testing.T) {
	provider := newProvider(t, faultinject.OpenAI)
	read := func(base, script string) (said, finish string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/completions", strings.NewReader(`{"model":"gpt-3.5-turbo-instruct","stream":true,"prompt":"Go."}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Authorization": {"Bearer k"}, "Content-Type": {"application/json"}, faultinject.HeaderScenario: {"text"},
			faultinject.HeaderTurn: {fmt.Sprintf("completions %d", turns.Add(1))}, faultinject.HeaderScript: {script}}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		for payload := range payloads(t, res.Body) {
			var c struct {
				Choices []struct {
					Text         string
					FinishReason string `json:"finish_reason"`
				}
			}
			if payload == "[DONE]" {
				finish += payload
			} else if err := json.Unmarshal([]byte(payload), &c); err != nil {
				t.Fatalf("%s: %v", payload, err)
			}
			for _, k := range c.Choices {
				said, finish = said+k.Text, finish+k.FinishReason
			}
		}
		return said, finish
	}
	want, end := read(provider.base, "attempt *: pass")
	if end != "stop[DONE]" {
		t.Fatalf("%q %q", want, end)
	}
	for cut := 1; cut < provider.provider.Log()[0].Events; cut += 3 {
		base := serve(t, proxy.Config{Upstreams: []proxy.Upstream{{Name: "openai", URL: provider.base}}})
		if got, finish := read(base, fmt.Sprintf("attempt 1: rst after event %d|attempt *: pass", cut)); got != want || finish != end {
			t.Errorf("cut behind event %d: %q (%s), want %q", cut, got, finish, want)
		}
	}
}

// payloads ranges over the data of a stream of events.
func payloads(t *testing.T, body io.Reader) iter.Seq[string] {
	return func(yield func(string) bool) {
		lines := bufio.NewScanner(body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && !yield(data) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			t.Errorf("the stream broke: %v", err)
		}
	}
}
