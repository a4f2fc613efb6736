package faultinject

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genai"
)

const geminiPath = "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"

func geminiPathOf(model string) string {
	return "/v1beta/models/" + model + ":streamGenerateContent?alt=sse"
}

// geminiBody is a request with the given contents and further members.
func geminiBody(contents []string, members ...string) string {
	return `{"contents":[` + strings.Join(contents, ",") + `]` + strings.Join(append([]string{""}, members...), ",") + `}`
}

func content(role string, parts ...string) string {
	return `{"role":"` + role + `","parts":[` + strings.Join(parts, ",") + `]}`
}

func textPart(s string) string { return `{"text":` + quote(s) + `}` }

func says(role, s string) string { return content(role, textPart(s)) }

// sdkTurn is a turn as google.golang.org/genai reads it.
type sdkTurn struct {
	text, thoughts string
	calls          []string // NAME ARGS
	hosted         []string // code and outputs
	sources        []string
	signatures     int
	finish         string
	blocked        string
	in, out        int32
	chunks         int
	parts          []*genai.Part // to send back
}

// sdkRead asks a server through the SDK.
func sdkRead(t *testing.T, s *Server, backend genai.Backend, model string, config *genai.GenerateContentConfig, contents ...*genai.Content) (sdkTurn, error) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(tr.CloseIdleConnections)
	cc := &genai.ClientConfig{Backend: backend, HTTPClient: &http.Client{Transport: tr}, HTTPOptions: genai.HTTPOptions{BaseURL: s.URL()}}
	if cc.APIKey = "k"; backend == genai.BackendVertexAI {
		cc.APIKey, cc.Project, cc.Location = "", "p", "l"
		cc.HTTPOptions.Headers = http.Header{"Authorization": {"Bearer k"}}
	}
	client, err := genai.NewClient(patience(t), cc)
	if err != nil {
		t.Fatal(err)
	}
	var turn sdkTurn
	for r, err := range client.Models.GenerateContentStream(patience(t), model, contents, config) {
		if err != nil {
			return turn, err
		}
		turn.add(t, r)
	}
	return turn, nil
}

func (turn *sdkTurn) add(t *testing.T, r *genai.GenerateContentResponse) {
	turn.chunks++
	if u := r.UsageMetadata; u != nil {
		if out := u.CandidatesTokenCount + u.ThoughtsTokenCount; out < turn.out {
			t.Errorf("the running total went back from %d to %d", turn.out, out)
		} else {
			turn.in, turn.out = u.PromptTokenCount, out
		}
	} else {
		t.Error("a chunk without usage")
	}
	if f := r.PromptFeedback; f != nil {
		turn.blocked = string(f.BlockReason)
	}
	for _, c := range r.Candidates {
		if c.Index != 0 {
			continue
		}
		if c.FinishReason != "" {
			turn.finish += string(c.FinishReason)
		}
		if g := c.GroundingMetadata; g != nil {
			for _, k := range g.GroundingChunks {
				turn.sources = append(turn.sources, k.Web.URI)
			}
		}
		if c.Content == nil {
			continue
		}
		for _, p := range c.Content.Parts {
			turn.part(p)
		}
	}
}

func (turn *sdkTurn) part(p *genai.Part) {
	turn.parts = append(turn.parts, p)
	if len(p.ThoughtSignature) > 0 {
		turn.signatures++
	}
	switch {
	case p.Thought:
		turn.thoughts += p.Text
	case p.FunctionCall != nil:
		args, _ := json.Marshal(p.FunctionCall.Args)
		turn.calls = append(turn.calls, p.FunctionCall.Name+" "+string(args))
	case p.ExecutableCode != nil:
		turn.hosted = append(turn.hosted, p.ExecutableCode.Code)
	case p.CodeExecutionResult != nil:
		turn.hosted = append(turn.hosted, p.CodeExecutionResult.Output)
	default:
		turn.text += p.Text
	}
}

// The SDK throws on comments, on named events and on a mixture of line ends
// (WIRE 3.4). It reads every scenario as what was meant, from either API.
func TestGeminiSDKReadsEveryScenario(t *testing.T) {
	for _, name := range ScenarioNames() {
		for _, model := range []string{"gemini-2.5-flash", "gemini-3-pro-preview"} {
			for _, backend := range []genai.Backend{genai.BackendGeminiAPI, genai.BackendVertexAI} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, model, backend), func(t *testing.T) {
					s := start(t, Config{Scenario: name, LongTokens: 60})
					got, err := sdkRead(t, s, backend, model, nil, genai.NewContentFromText("Tell me something.", genai.RoleUser))
					if err != nil {
						t.Fatal(err)
					}
					a, _ := Scenario(name, Prompt{Dialect: Gemini, Turns: []Turn{{Role: "user", Text: "Tell me something."}}}, Config{LongTokens: 60})
					matchSDK(t, got, a, model)
				})
			}
		}
	}
}

func matchSDK(t *testing.T, got sdkTurn, a Answer, model string) {
	t.Helper()
	thoughts, hosted := "", []string(nil)
	for _, k := range a.Blocks {
		switch k.Kind {
		case ThinkingBlock:
			thoughts += k.Text
		case CodeBlock:
			hosted = append(hosted, k.Args, k.Text)
		}
	}
	if got.text != spoken(a) || got.thoughts != thoughts || fmt.Sprint(got.hosted) != fmt.Sprint(hosted) {
		t.Errorf("said %q thinking %q running %q", got.text, got.thoughts, got.hosted)
	}
	if calls := a.Calls(); len(got.calls) != len(calls) {
		t.Errorf("calls %q", got.calls)
	}
	for i, k := range a.Calls() {
		if args, _ := wholeArgs(k.Args); !sameJSON(got.calls[i][len(k.Name)+1:], args) {
			t.Errorf("call %d: %q, want %s", i, got.calls[i], args)
		}
	}
	if len(got.sources) != len(a.Sources) {
		t.Errorf("sources %q", got.sources)
	}
	want, signed := geminiFinish(a.Finish), 0
	if a.Finish == FinishBlocked {
		want = ""
	}
	if got.finish != want || (got.blocked != "") != (a.Finish == FinishBlocked) {
		t.Errorf("finish %q, blocked %q", got.finish, got.blocked)
	}
	if geminiVersion(model) >= 3 {
		signed = min(1, len(a.Calls())) + len(hosted)/2
		if n := len(a.Blocks); n > 0 && a.Blocks[n-1].Kind == TextBlock {
			signed++
		}
	}
	if got.signatures != signed {
		t.Errorf("%d signatures, want %d", got.signatures, signed)
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && string(mustJSON(x)) == string(mustJSON(y))
}

// An agent's whole loop through the SDK: what the model said goes back as it came,
// signatures included, and is accepted.
func TestGeminiAgentLoop(t *testing.T) {
	for _, model := range []string{"gemini-2.5-flash", "gemini-3-pro-preview", "gemini-3.8-flash"} {
		for _, scenario := range []string{"agent", "parallel", "thinking-tool"} {
			t.Run(model+"/"+scenario, func(t *testing.T) {
				s := start(t, Config{Script: MustScript("attempt *: scenario " + scenario + "\n"), Scenario: scenario})
				ask := genai.NewContentFromText("What is the weather?", genai.RoleUser)
				first, err := sdkRead(t, s, genai.BackendGeminiAPI, model, nil, ask)
				if err != nil || len(first.calls) == 0 {
					t.Fatalf("%v %+v", err, first)
				}
				said := &genai.Content{Role: genai.RoleModel, Parts: first.parts}
				results := &genai.Content{Role: genai.RoleUser}
				for _, p := range first.parts {
					if f := p.FunctionCall; f != nil {
						results.Parts = append(results.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: f.ID, Name: f.Name, Response: map[string]any{"output": "sunny"}}})
					}
				}
				said.Parts = dropEmpty(said.Parts)
				second, err := sdkRead(t, s, genai.BackendGeminiAPI, model, nil, ask, said, results)
				if err != nil || scenario == "agent" && !strings.Contains(second.text, "sunny") {
					t.Fatalf("%v %+v", err, second)
				}
			})
		}
	}
}

// dropEmpty leaves out the empty text of the finish, as the SDK's chats do.
func dropEmpty(parts []*genai.Part) (out []*genai.Part) {
	for _, p := range parts {
		if p.Text != "" || len(p.ThoughtSignature) > 0 || p.FunctionCall != nil {
			out = append(out, p)
		}
	}
	return out
}

// The SDK goes on by itself where a stream pauses or breaks behind a checkpoint:
// it sends the token back, and reads the answer once.
func TestGeminiTokensContinueTheAnswer(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"pauses", "attempt *: variant pauses"},
		{"a break", "attempt 1: rst after event 14\nattempt *: variant checkpoints"},
		{"two breaks", "attempt 1: rst after event 14\nattempt 2: fin after event 9\nattempt *: variant checkpoints"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "long", LongTokens: 80, Script: MustScript(tc.script)})
			got, err := sdkRead(t, s, genai.BackendGeminiAPI, "gemini-3-pro-preview", nil, genai.NewContentFromText("Tell me something.", genai.RoleUser))
			if err != nil || got.finish != "STOP" {
				t.Fatalf("%v %+v", err, got)
			}
			// What was said behind the last checkpoint is said again: the SDK
			// leaves it to its caller to know.
			if tc.name == "pauses" && got.text != longText(80) {
				t.Errorf("%q", got.text)
			}
			list, err := s.WaitLog(patience(t), allEnded(2))
			if err != nil || list[1].Continuation.Manner != Resumed || !strings.HasPrefix(longText(80), list[1].Continuation.Said) {
				t.Errorf("%v %+v", err, list[1].Continuation)
			}
		})
	}
}

func TestGeminiWholeAnswers(t *testing.T) {
	for _, name := range ScenarioNames() {
		s := start(t, Config{Scenario: name, LongTokens: 60})
		client, err := genai.NewClient(context.Background(), &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: s.URL()},
			HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := client.Models.GenerateContent(patience(t), "gemini-3-pro-preview", genai.Text("Tell me something."), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got sdkTurn
		got.add(t, r)
		a, _ := Scenario(name, Prompt{Dialect: Gemini, Turns: []Turn{{Role: "user", Text: "Tell me something."}}}, Config{LongTokens: 60})
		matchSDK(t, got, a, "gemini-3-pro-preview")
	}
}
