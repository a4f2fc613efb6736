package faultinject

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	sdk "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// sdkClient is the official client, pointed at s.
func sdkClient(s *Server) openai.Client {
	return openai.NewClient(option.WithAPIKey("test"), option.WithBaseURL(s.URL()+"/v1"), option.WithMaxRetries(0))
}

func question(model string) sdk.ResponseNewParams {
	return sdk.ResponseNewParams{Model: model, Input: sdk.ResponseNewParamsInputUnion{OfString: openai.String("Tell me something.")},
		Reasoning: shared.ReasoningParam{Summary: shared.ReasoningSummaryAuto}, Include: []sdk.ResponseIncludable{sdk.ResponseIncludableReasoningEncryptedContent}}
}

// readSDK reads a stream with the official accumulator. It returns the events'
// own JSON, too.
func readSDK(st *ssestream.Stream[sdk.ResponseStreamEventUnion]) (*sdk.Response, []string, error) {
	defer st.Close()
	var acc sdk.ResponseAccumulator
	var raws []string
	for st.Next() {
		raw := st.Current().RawJSON()
		raws = append(raws, raw)
		var e sdk.ResponsesServerEventUnion
		if err := json.Unmarshal([]byte(raw), &e); err != nil {
			return nil, raws, err
		}
		if err := acc.AddEvent(e); err != nil {
			return nil, raws, err
		}
	}
	if err := st.Err(); err != nil {
		return nil, raws, err
	}
	r, err := acc.ReconstructedResponse()
	return r, raws, err
}

// Every scenario, streamed and whole, as the official SDK reads it: what it
// adds up from the deltas is what the terminal event and the JSON answer say.
func TestResponsesAsTheSDKReadsThem(t *testing.T) {
	s := start(t, Config{LongTokens: 40})
	c := sdkClient(s)
	for _, scenario := range ScenarioNames() {
		t.Run(scenario, func(t *testing.T) {
			a, err := Scenario(scenario, Prompt{Dialect: Responses, Turns: []Turn{{Role: "user", Text: "Tell me something."}}}, Config{LongTokens: 40})
			if err != nil {
				t.Fatal(err)
			}
			params := question("scenario/" + scenario)
			streamed, raws, err := readSDK(c.Responses.NewStreaming(patience(t), params))
			if err != nil {
				t.Fatal(err)
			}
			var last struct{ Response json.RawMessage }
			if err := json.Unmarshal([]byte(raws[len(raws)-1]), &last); err != nil {
				t.Fatal(err)
			}
			whole, err := c.Responses.New(patience(t), params)
			if err != nil {
				t.Fatal(err)
			}
			for how, raw := range map[string]string{"added up": streamed.RawJSON(), "terminal": string(last.Response), "whole": whole.RawJSON()} {
				if got, want := contentOf(t, raw), contentOf(t, whole.RawJSON()); !reflect.DeepEqual(got, want) && raw != "" {
					t.Errorf("%s: %v\nwant %v", how, got, want)
				}
			}
			if want := a.Text(); streamed.OutputText() != want || whole.OutputText() != want {
				t.Errorf("text %q and %q, want %q", streamed.OutputText(), whole.OutputText(), want)
			}
			if whole.Usage.OutputTokens < 1 || whole.Usage.TotalTokens != whole.Usage.InputTokens+whole.Usage.OutputTokens {
				t.Errorf("usage %+v", whole.Usage)
			}
		})
	}
}

// contentOf is the output of a response without the ids, which differ from
// response to response.
func contentOf(t *testing.T, raw string) any {
	t.Helper()
	if raw == "" {
		return nil
	}
	var r struct{ Output []map[string]any }
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		t.Fatal(err)
	}
	for _, it := range r.Output {
		delete(it, "id")
		delete(it, "call_id")
	}
	return r.Output
}

// A tool's call and answer, by input items and by reference to the response
// that made the call.
func TestResponsesToolTurns(t *testing.T) {
	s := start(t, Config{Scenario: "thinking-agent"})
	c := sdkClient(s)
	first := question("gpt-5.1")
	first.Tools = []sdk.ToolUnionParam{{OfFunction: &sdk.FunctionToolParam{Name: "exec_command", Parameters: map[string]any{"type": "object"}}}}
	called, _, err := readSDK(c.Responses.NewStreaming(patience(t), first))
	if err != nil {
		t.Fatal(err)
	}
	var call sdk.ResponseOutputItemUnion
	items := sdk.ResponseInputParam{sdk.ResponseInputItemParamOfMessage("Tell me something.", sdk.EasyInputMessageRoleUser)}
	for _, it := range called.Output {
		if it.Type == "function_call" {
			call = it
		}
		items = append(items, param.Override[sdk.ResponseInputItemUnionParam](json.RawMessage(it.RawJSON())))
	}
	if call.Name != "exec_command" {
		t.Fatalf("called %+v", called.Output)
	}
	output := sdk.ResponseInputItemUnionParam{OfFunctionCallOutput: &sdk.ResponseInputItemFunctionCallOutputParam{CallID: openai.String(call.CallID),
		Output: sdk.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: openai.String("42 degrees")}}}
	byItems, byReference := first, first
	byItems.Input = sdk.ResponseNewParamsInputUnion{OfInputItemList: append(items, output)}
	byReference.Input = sdk.ResponseNewParamsInputUnion{OfInputItemList: sdk.ResponseInputParam{output}}
	byReference.PreviousResponseID = openai.String(called.ID)
	for name, params := range map[string]sdk.ResponseNewParams{"items": byItems, "reference": byReference} {
		answer, _, err := readSDK(c.Responses.NewStreaming(patience(t), params))
		if err != nil || !strings.Contains(answer.OutputText(), "42 degrees") {
			t.Errorf("by %s: %v %v, refused: %v", name, answer, err, s.Log()[len(s.Log())-1].Refusal)
		}
	}
}

// WIRE 2.1: a background stream that was cut is resumed behind the last event
// seen, byte for byte, as often as needed.
func TestBackgroundStreamsResume(t *testing.T) {
	s := start(t, Config{Scenario: "thinking-tool", Script: MustScript("attempt 1: fin after event 7\nattempt 2: rst inside event 4\nattempt 3: polite after event 5")})
	c := sdkClient(s)
	params := question("gpt-5.1")
	params.Background = openai.Bool(true)
	_, raws, err := readSDK(c.Responses.NewStreaming(patience(t), params))
	if err == nil || len(raws) != 7 {
		t.Fatalf("%d events, %v", len(raws), err)
	}
	var head struct{ Response struct{ ID, Status string } }
	if err := json.Unmarshal([]byte(raws[0]), &head); err != nil || head.Response.Status != "queued" {
		t.Fatalf("%s %v", raws[0], err)
	}
	asQuery := option.WithQuery("stream", "true") // this SDK puts it into a body, which a GET has none of
	for range 3 {
		_, more, _ := readSDK(c.Responses.GetStreaming(patience(t), head.Response.ID, sdk.ResponseGetParams{StartingAfter: openai.Int(int64(len(raws) - 1))}, asQuery))
		raws = append(raws, more...)
	}
	_, whole, _ := readSDK(c.Responses.GetStreaming(patience(t), head.Response.ID, sdk.ResponseGetParams{StartingAfter: openai.Int(0)}, asQuery, option.WithHeader(HeaderScript, "attempt *: pass")))
	if got, want := strings.Join(raws[1:], "\n"), strings.Join(whole, "\n"); got != want || !strings.Contains(want, `"type":"response.completed"`) {
		t.Errorf("%d events, want %d, resumed:\n%s", len(raws)-1, len(whole), got)
	}
	list := s.Log()
	if x := list[1]; x.Attempt != 2 || x.Continuation.Manner != Resumed || x.Dialect != Responses || x.Turn != list[0].Turn || x.Ending != CutReset {
		t.Errorf("%+v", x)
	}
	got, err := c.Responses.Get(patience(t), head.Response.ID, sdk.ResponseGetParams{})
	if err != nil || got.Status != "completed" || len(got.Output) != 3 || !got.Background {
		t.Errorf("%+v %v", got, err)
	}
	if err := c.Responses.Delete(patience(t), head.Response.ID); err != nil {
		t.Error(err)
	}
	_, err = c.Responses.Get(patience(t), head.Response.ID, sdk.ResponseGetParams{})
	if refused := new(openai.Error); !errors.As(err, &refused) || refused.StatusCode != 404 {
		t.Errorf("after deletion: %v", err)
	}
}

// A background response is made in its own time, polled, and can be cancelled;
// its stream ends with it.
func TestBackgroundResponsesAreCancelled(t *testing.T) {
	s := start(t, Config{Scenario: "long", Pace: time.Hour})
	c := sdkClient(s)
	params := question("gpt-5.1")
	params.Background = openai.Bool(true)
	ctx, cancel := context.WithCancel(patience(t))
	defer cancel()
	st := c.Responses.NewStreaming(ctx, params)
	if !st.Next() {
		t.Fatal(st.Err())
	}
	id := st.Current().Response.ID
	if r, err := c.Responses.Get(ctx, id, sdk.ResponseGetParams{}); err != nil || r.Status != "queued" {
		t.Fatalf("%+v %v", r, err)
	}
	polled, err := c.Responses.New(ctx, params)
	if err != nil || polled.Status != "queued" || len(polled.Output) != 0 {
		t.Fatalf("%+v %v", polled, err)
	}
	for range 2 { // cancelling again changes nothing
		if r, err := c.Responses.Cancel(ctx, id); err != nil || r.Status != "cancelled" {
			t.Fatalf("%+v %v", r, err)
		}
	}
	if st.Next() || st.Err() != nil {
		t.Errorf("after the cancellation: %s %v", st.Current().RawJSON(), st.Err())
	}
}
