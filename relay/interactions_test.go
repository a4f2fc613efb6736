package relay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genai"
	sdk "google.golang.org/genai/interactions/models/interactions"
	"google.golang.org/genai/interactions/models/operations"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/interactions"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

var interact = family{
	name:     "interactions",
	d:        steps{},
	fallback: `{"model":"gemini-3-pro","stream":true,"input":"go on","tools":[{"type":"function","name":"getWeather"}]}`,
	named: func(p []byte) string {
		s, _ := jsonwalk.String(jsonwalk.Get(p, "event_type"))
		return string(s)
	},
	folders: []string{"gemini-interactions"},
	half:    "event: step.delta\ndata: {\"index\":0,\"del",
	fault:   "event: error\ndata: {\"error\":{\"code\":\"gateway_timeout\",\"message\":\"Deadline expired.\"},\"event_type\":\"error\"}\n\n",
	marker:  "event: done\ndata: [DONE]\n\n",
	ping:    "event: interaction.status_update\ndata: {\"status\":\"in_progress\",\"interaction_id\":\"\",\"event_type\":\"interaction.status_update\"}\n\n",
	render:  faultinject.RenderInteractions,
	read:    readInteraction,
}

var interactKept = func(f family) family { f.name = "interactions, kept"; return f }(interact)

// steps hands the provider model a continuation as the messages it reads. It refuses
// what the API would.
type steps struct{ interactions.Dialect }

func (d steps) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	body, err := d.Dialect.Continue(r, said, c)
	if err != nil {
		return nil, err
	}
	var q struct {
		Store *bool
		Input []struct {
			Type      string
			Signature string
			Content   []struct{ Text string }
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("400: %w", err)
	}
	if q.Store == nil || *q.Store {
		return nil, fmt.Errorf("a continuation would be kept: %s", body)
	}
	var messages []map[string]string
	for i, s := range q.Input {
		role := map[string]string{"user_input": "user", "model_output": "assistant"}[s.Type]
		text := ""
		for _, c := range s.Content {
			text += c.Text
		}
		switch {
		case s.Type == "thought" && s.Signature == "":
			return nil, fmt.Errorf("400: a thought without its signature at %d", i)
		case s.Type == "thought":
			continue
		case role == "" || text == "":
			return nil, fmt.Errorf("400: step %d is a %s of nothing", i, s.Type)
		}
		messages = append(messages, map[string]string{"role": role, "content": text})
	}
	return json.Marshal(map[string]any{"messages": messages})
}

// interactionsClient takes an end without [DONE] for a broken stream.
var interactionsClient = sync.OnceValues(func() (*genai.Client, error) {
	return genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPClient: &http.Client{Transport: cannedEvents{}},
	})
})

// cannedEvents answers a request with the event stream in its context.
type cannedEvents struct{}

func (cannedEvents) RoundTrip(q *http.Request) (*http.Response, error) {
	stream, _ := q.Context().Value(cannedEvents{}).([]byte)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(stream))}, nil
}

// readInteraction is the Interactions client of google.golang.org/genai over a stream.
func readInteraction(stream []byte) (m message, err error) {
	client, err := interactionsClient()
	if err != nil {
		return m, err
	}
	yes, input := true, sdk.NewInteractionsInput("x")
	res, err := client.Interactions.Create(context.WithValue(context.Background(), cannedEvents{}, stream), operations.CreateInteractionRequest{
		Body: operations.NewCreateInteractionRequestBody(sdk.CreateModelInteraction{Model: "gemini-3-pro", Stream: &yes, Input: &input}),
	}, operations.WithAutomaticContinuation(false))
	if err != nil {
		return m, err
	}
	events := res.InteractionSSEStreamEvent
	defer events.Close()
	r := interactionReader{open: map[int]bool{}, names: map[int]string{}, args: map[int]string{}}
	for events.Next() {
		if err := r.event(events.Value().GetData()); err != nil {
			return m, err
		}
	}
	if err := events.Err(); err != nil {
		return m, err
	}
	return r.message()
}

// interactionReader is as strict as a client can be: one interaction, steps in order,
// each opened and closed once, nothing outside of them.
type interactionReader struct {
	id, status  string
	steps       int
	open        map[int]bool
	names, args map[int]string
	order       []string
	text        string
}

func (r *interactionReader) event(e sdk.InteractionSSEEvent) error {
	switch {
	case e.InteractionCreatedEvent != nil:
		if r.id != "" {
			return fmt.Errorf("a second interaction.created")
		}
		r.id = e.InteractionCreatedEvent.Interaction.ID
	case e.InteractionCompletedEvent != nil:
		if id := e.InteractionCompletedEvent.Interaction.ID; id != r.id {
			return fmt.Errorf("%q completes, %q began", id, r.id)
		}
		r.status = string(e.InteractionCompletedEvent.Interaction.Status)
	case e.ErrorEvent != nil:
		return fmt.Errorf("error event")
	case e.StepStart != nil:
		i := e.StepStart.Index
		if i != r.steps || r.status != "" {
			return fmt.Errorf("step %d opens at %d, status %q", r.steps, i, r.status)
		}
		r.steps++
		r.open[i] = true
		switch f := e.StepStart.Step.FunctionCallStep; {
		case f != nil:
			r.names[i] = f.Name
			r.order = append(r.order, "tool_use")
		case e.StepStart.Step.ModelOutputStep != nil:
			if n := len(r.order); n == 0 || r.order[n-1] != "text" {
				r.order = append(r.order, "text")
			}
		}
	case e.StepStop != nil:
		if !r.open[e.StepStop.Index] {
			return fmt.Errorf("step %d closes and is not open", e.StepStop.Index)
		}
		delete(r.open, e.StepStop.Index)
	case e.StepDelta != nil:
		if !r.open[e.StepDelta.Index] {
			return fmt.Errorf("delta outside of step %d", e.StepDelta.Index)
		}
		switch d := e.StepDelta.Delta; {
		case d.TextDelta != nil:
			r.text += d.TextDelta.Text
		case d.ArgumentsDelta != nil && d.ArgumentsDelta.Arguments != nil:
			r.args[e.StepDelta.Index] += *d.ArgumentsDelta.Arguments
		}
	}
	return nil
}

func (r *interactionReader) message() (message, error) {
	if r.status == "" || len(r.open) > 0 {
		return message{}, fmt.Errorf("status %q, %d steps open", r.status, len(r.open))
	}
	m := message{text: r.text, finish: r.status}
	for i := range r.steps {
		if name, ok := r.names[i]; ok {
			args := r.args[i]
			if args == "" {
				args = "{}"
			}
			if !jsonwalk.Valid([]byte(args)) {
				return message{}, fmt.Errorf("call %s has cut arguments %q", name, args)
			}
			m.calls = append(m.calls, name+compact(args))
		}
	}
	if r.status == "requires_action" {
		m.finish = "tool_calls"
	}
	if r.text == "" { // a step of it that says nothing
		r.order = without(r.order, "text")
	}
	m.order = strings.Join(r.order, ",")
	return m, nil
}

func without(list []string, word string) (out []string) {
	for _, s := range list {
		if s != word {
			out = append(out, s)
		}
	}
	return out
}

// interactionRecordings are the recordings with the end marker, which one of them
// lacks, and their requests, which asked to keep the interaction or not.
func interactionRecordings(t *testing.T, kept bool) []relaytest.Recording {
	recs := relaytest.Recordings(t, interact.fallback, interact.named, interact.folders...)
	for i := range recs {
		r := &recs[i]
		if !bytes.Contains(r.Stream(), []byte("[DONE]")) {
			r.Units = append(r.Units, []byte(interact.marker))
		}
		if !kept {
			r.Request = jsonwalk.SetMember(nil, r.Request, "store", []byte("false"))
		}
	}
	return recs
}

// An interaction that is not kept is continued like any other turn.
func TestCutEverywhereInteractions(t *testing.T) {
	interact.cutEverywhere(t, interactionRecordings(t, false))
}

// One that is kept, and that the provider does not give back, is the only one that its
// id can name: once the client has the id, it is refused.
func TestCutEverywhereInteractionsKept(t *testing.T) {
	interactKept.cutEverywhere(t, interactionRecordings(t, true))
}

func TestKilledEverywhereInteractions(t *testing.T) {
	interact.killedEverywhere(t, relaytest.World.Resume, interactionRecordings(t, false))
}

func TestFollowedAndThenLostInteractions(t *testing.T) {
	interact.killedEverywhere(t, followed, interactionRecordings(t, false))
}
