package faultinject

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genai"
	sdk "google.golang.org/genai/interactions/models/interactions"
	"google.golang.org/genai/interactions/models/operations"
)

const interactionsPath = "/v1beta/interactions"

// interactionBody is a streaming request with the given steps and members.
func interactionBody(model string, steps []string, members ...string) string {
	return `{"model":"` + model + `","stream":true,"input":[` + strings.Join(steps, ",") + `]` + strings.Join(append([]string{""}, members...), ",") + `}`
}

func step(kind, text string) string {
	return `{"type":"` + kind + `","content":[{"type":"text","text":` + quote(text) + `}]}`
}

// sdkInteraction is an interaction as the SDK reads its stream.
type sdkInteraction struct {
	id, text, thoughts, signature, status string
	calls                                 []string // NAME ARGS
	hosted                                []string
	sources                               int
	last                                  string // the last event id
	out                                   int
}

// add folds one event.
func (p *sdkInteraction) add(e sdk.InteractionSSEEvent) {
	var head struct {
		EventID string `json:"event_id"`
	}
	if raw, err := json.Marshal(e); err == nil && json.Unmarshal(raw, &head) == nil && head.EventID != "" {
		p.last = head.EventID
	}
	switch {
	case e.InteractionCreatedEvent != nil:
		p.id += e.InteractionCreatedEvent.Interaction.ID
	case e.InteractionCompletedEvent != nil:
		p.status += string(e.InteractionCompletedEvent.Interaction.Status)
		p.out = *e.InteractionCompletedEvent.Interaction.Usage.TotalOutputTokens
	case e.StepStart != nil && e.StepStart.Step.FunctionCallStep != nil:
		p.calls = append(p.calls, e.StepStart.Step.FunctionCallStep.Name+" ")
	case e.StepDelta != nil:
		p.delta(e.StepDelta.Delta)
	}
}

func (p *sdkInteraction) delta(d sdk.StepDeltaData) {
	switch {
	case d.TextDelta != nil:
		p.text += d.TextDelta.Text
	case d.ThoughtSummaryDelta != nil:
		p.thoughts += d.ThoughtSummaryDelta.Content.TextContent.Text
	case d.ThoughtSignatureDelta != nil:
		p.signature += *d.ThoughtSignatureDelta.Signature
	case d.ArgumentsDelta != nil:
		p.calls[len(p.calls)-1] += *d.ArgumentsDelta.Arguments
	case d.CodeExecutionCallDelta != nil:
		p.hosted = append(p.hosted, *d.CodeExecutionCallDelta.Arguments.Code)
	case d.CodeExecutionResultDelta != nil:
		p.hosted = append(p.hosted, d.CodeExecutionResultDelta.Result)
	case d.TextAnnotationDelta != nil:
		p.sources += len(d.TextAnnotationDelta.Annotations)
	}
}

func interactionsClient(t *testing.T, s *Server) *genai.Client {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(tr.CloseIdleConnections)
	c, err := genai.NewClient(patience(t), &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPClient: &http.Client{Transport: tr}, HTTPOptions: genai.HTTPOptions{BaseURL: s.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sdkCreate reads a new interaction through the SDK, which takes an end without
// [DONE] for a broken stream.
func sdkCreate(t *testing.T, s *Server, model string) (p sdkInteraction, err error) {
	t.Helper()
	yes, input := true, sdk.NewInteractionsInput("Tell me something.")
	res, err := interactionsClient(t, s).Interactions.Create(patience(t), operations.CreateInteractionRequest{
		Body: operations.NewCreateInteractionRequestBody(sdk.CreateModelInteraction{Model: sdk.Model(model), Stream: &yes, Input: &input}),
	}, operations.WithAutomaticContinuation(false))
	if err != nil {
		return p, err
	}
	events := res.InteractionSSEStreamEvent
	defer events.Close()
	for events.Next() {
		p.add(events.Value().GetData())
	}
	return p, events.Err()
}

func TestInteractionsSDKReadsEveryScenario(t *testing.T) {
	for _, name := range ScenarioNames() {
		t.Run(name, func(t *testing.T) {
			s := start(t, Config{Scenario: name, LongTokens: 60})
			got, err := sdkCreate(t, s, "gemini-2.5-flash")
			if err != nil {
				t.Fatal(err)
			}
			a, _ := Scenario(name, Prompt{Dialect: Interactions, Turns: []Turn{{Role: "user", Text: "Tell me something."}}}, Config{LongTokens: 60})
			thoughts, signature, hosted := "", "", []string(nil)
			for _, k := range a.Blocks {
				switch k.Kind {
				case ThinkingBlock:
					thoughts, signature = thoughts+k.Text, signature+signPart("thought", k.Text)
				case CodeBlock:
					hosted = append(hosted, k.Args, k.Text)
				}
			}
			if got.text != spoken(a) || got.thoughts != thoughts || got.signature != signature || fmt.Sprint(got.hosted) != fmt.Sprint(hosted) || got.sources != len(a.Sources) {
				t.Errorf("%+v", got)
			}
			var calls []string
			for _, k := range a.Calls() {
				if k.Kind == ToolBlock {
					args, _ := wholeArgs(k.Args)
					calls = append(calls, k.Name+" "+args)
				}
			}
			if fmt.Sprint(got.calls) != fmt.Sprint(calls) || got.status != interactionStatus(a) || got.id == "" || got.last == "" {
				t.Errorf("calls %q, want %q; status %q", got.calls, calls, got.status)
			}
		})
	}
}

// A kept interaction that broke is resumed behind the last event that arrived, by
// the SDK, and is whole then; and again when the resumed stream breaks.
func TestInteractionsResumeWhereTheyBroke(t *testing.T) {
	s := start(t, Config{Scenario: "thinking-tool", Script: MustScript("attempt 1: rst after event 7\nattempt 2: fin after event 5")})
	whole := start(t, Config{Scenario: "thinking-tool"})
	want, err := sdkCreate(t, whole, "gemini-2.5-flash")
	if err != nil {
		t.Fatal(err)
	}
	got, err := sdkCreate(t, s, "gemini-2.5-flash")
	if err == nil || got.id == "" || got.status != "" {
		t.Fatalf("%v %+v", err, got)
	}
	for range 2 {
		yes := true
		res, err := interactionsClient(t, s).Interactions.Get(patience(t), operations.GetInteractionByIDRequest{ID: got.id, Stream: &yes, LastEventID: &got.last})
		if err != nil {
			t.Fatal(err)
		}
		for res.InteractionSSEStreamEvent.Next() {
			got.add(res.InteractionSSEStreamEvent.Value().GetData())
		}
		res.InteractionSSEStreamEvent.Close()
	}
	got.id, want.id, got.last, want.last = "", "", "", ""
	if fmt.Sprint(got) != fmt.Sprint(want) || want.status != "requires_action" {
		t.Errorf("resumed: %+v\nwhole: %+v", got, want)
	}
	list, err := s.WaitLog(patience(t), allEnded(3))
	if err != nil || list[2].Continuation.Manner != Resumed || list[2].Attempt != 3 || list[1].Ending != CutFIN || list[2].Dialect != Interactions {
		t.Errorf("%v %+v", err, list)
	}
}

// fetch sends a request without a body.
func fetch(t *testing.T, s *Server, method, path string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(patience(t), method, s.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Goog-Api-Key", "k")
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestInteractionsKept(t *testing.T) {
	s := start(t, Config{Scenario: "tool"})
	user := []string{step("user_input", "Tell me something.")}
	first := post(t, s, interactionsPath, interactionBody("gemini-2.5-flash", user))
	h := hear(t, Interactions, first.body)
	unkept := hear(t, Interactions, post(t, s, interactionsPath, interactionBody("gemini-2.5-flash", user, `"store":false`)).body)
	if h.id == "" || unkept.id == "" || h.id == unkept.id {
		t.Fatalf("%q %q", h.id, unkept.id)
	}
	event := h.events[4]
	for _, tc := range []struct {
		name, method, path string
		status             int
		says               string
	}{
		{"as it stands", "GET", "/" + h.id, 200, `"status":"requires_action","steps":[{"type":"model_output","content":[{"type":"text","text":"Let me look that up."}]},{"type":"function_call"`},
		{"from its beginning", "GET", "/" + h.id + "?stream=true", 200, "event: interaction.created\n"},
		{"behind an event", "GET", "/" + h.id + "?stream=true&last_event_id=" + event, 200, "event: step."},
		{"behind an event of another", "GET", "/" + h.id + "?stream=true&last_event_id=ev_x", 400, `names no event of this interaction.","code":"invalid_request"}}`},
		{"an event without a stream", "GET", "/" + h.id + "?last_event_id=" + event, 400, "can only be used if 'stream' is true"},
		{"one that was not kept", "GET", "/" + unkept.id + "?stream=true", 404, `not found.","code":"not_found"}}`},
		{"one that never was", "GET", "/v1_none", 404, `{"error":{"message":"Interaction 'v1_none' not found.","code":"not_found"}}`},
		{"cancelled though in front", "POST", "/" + h.id + "/cancel", 400, "runs in the background"},
		{"deleted", "DELETE", "/" + h.id, 200, "{}"},
		{"after that", "GET", "/" + h.id, 404, "not found"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, body := fetch(t, s, tc.method, interactionsPath+tc.path)
			if status != tc.status || !strings.Contains(body, tc.says) {
				t.Errorf("%d %s", status, body)
			}
			if tc.name == "behind an event" && (strings.Contains(body, event) || !strings.HasSuffix(first.body, body)) {
				t.Errorf("not the rest of the stream, byte for byte: %s", body)
			}
		})
	}
}

// An interaction goes on from an earlier one: the provider holds the history, the
// request the result alone.
func TestInteractionsBuildOnEachOther(t *testing.T) {
	s := start(t, Config{Scenario: "agent"})
	h := hear(t, Interactions, post(t, s, interactionsPath, interactionBody("gemini-2.5-flash", []string{step("user_input", "What is the weather?")})).body)
	if len(h.calls) != 1 {
		t.Fatalf("%+v", h)
	}
	status, body := fetch(t, s, "GET", interactionsPath+"/"+h.id)
	_, call, _ := strings.Cut(body, `"function_call","id":"`)
	call, _, _ = strings.Cut(call, `"`)
	if status != 200 || call == "" {
		t.Fatalf("%d %s", status, body)
	}
	result := `{"type":"function_result","call_id":"` + call + `","name":"get_weather","result":"rain"}`
	got := post(t, s, interactionsPath, interactionBody("gemini-2.5-flash", []string{result}, `"previous_interaction_id":"`+h.id+`"`))
	if end := hear(t, Interactions, got.body); got.status != 200 || !strings.Contains(end.text, `"rain"`) || end.finish != "completed" {
		t.Errorf("%d %s", got.status, got.body)
	}
	list := s.Log()
	if x := list[len(list)-1]; x.TurnNo != 2 {
		t.Errorf("turn %d", x.TurnNo)
	}
}
