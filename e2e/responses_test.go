package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// responses is the request of a Responses call.
func (j job) responses() responses.ResponseNewParams {
	params := responses.ResponseNewParams{
		Model:           j.Model,
		Input:           responses.ResponseNewParamsInputUnion{OfString: openai.String(j.Prompt)},
		MaxOutputTokens: openai.Int(int64(j.MaxTokens)),
	}
	for _, t := range j.Tools {
		f := responses.FunctionToolParam{Name: t.Name, Description: openai.String(t.Description), Strict: openai.Bool(true)}
		must(json.Unmarshal(t.Schema, &f.Parameters))
		params.Tools = append(params.Tools, responses.ToolUnionParam{OfFunction: &f})
	}
	if j.Schema != nil {
		f := responses.ResponseFormatTextJSONSchemaConfigParam{Name: "report"}
		must(json.Unmarshal(j.Schema, &f.Schema))
		params.Text.Format.OfJSONSchema = &f
	}
	if j.Thinking != nil {
		params.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffortLow, Summary: shared.ReasoningSummaryAuto}
	}
	return params
}

// responsesStream begins a streaming call with the official Go SDK.
func responsesStream(ctx context.Context, j job) *ssestream.Stream[responses.ResponseStreamEventUnion] {
	c := j.openaiClient()
	return c.Responses.NewStreaming(ctx, j.responses())
}

// runResponsesStream adds the events up by hand.
func runResponsesStream(ctx context.Context, j job) (reply, error) {
	s := responsesStream(ctx, j)
	defer s.Close()
	var m message
	of := map[int64]int{} // output index to call
	for s.Next() {
		switch e := s.Current(); e.Type {
		case "response.created":
			m.Starts++
		case "response.output_item.added":
			if e.Item.Type == "function_call" {
				of[e.OutputIndex] = len(m.Calls)
				m.Calls = append(m.Calls, call{ID: e.Item.CallID, Name: e.Item.Name})
			}
		case "response.output_text.delta":
			m.Text += e.Delta
		case "response.reasoning_summary_text.delta":
			m.Reasoning += e.Delta
		case "response.function_call_arguments.delta":
			m.Calls[of[e.OutputIndex]].Args += e.Delta
		case "response.completed", "response.incomplete", "response.failed":
			m.Finish = joinFinish(m.Finish, string(e.Response.Status))
			if e.Response.JSON.Usage.Valid() {
				m.Usages++
			}
		}
	}
	return reply{Message: m, Failure: openaiFailure(s.Err())}, nil
}

// runResponsesAccumulator has the SDK's accumulator do it; it is held to what it
// reads of the terminal event.
func runResponsesAccumulator(ctx context.Context, j job) (reply, error) {
	s := responsesStream(ctx, j)
	defer s.Close()
	var acc responses.ResponseAccumulator
	var rejected error
	for s.Next() {
		var e responses.ResponsesServerEventUnion
		must(json.Unmarshal([]byte(s.Current().RawJSON()), &e))
		if err := acc.AddEvent(e); err != nil && rejected == nil {
			rejected = fmt.Errorf("the accumulator rejects %s: %w", s.Current().RawJSON(), err)
		}
	}
	var m message
	r, err := acc.ReconstructedResponse()
	if err != nil {
		return reply{Failure: openaiFailure(errors.Join(rejected, s.Err(), err))}, nil
	}
	m.Finish, m.Starts, m.Text = string(r.Status), 1, r.OutputText()
	if r.JSON.Usage.Valid() {
		m.Usages = 1
	}
	for _, it := range r.Output {
		switch it.Type {
		case "function_call":
			m.Calls = append(m.Calls, call{it.CallID, it.Name, it.Arguments.OfString})
		case "reasoning":
			for _, p := range it.Summary {
				m.Reasoning += p.Text
			}
		}
	}
	return reply{Message: m, Failure: openaiFailure(errors.Join(rejected, s.Err()))}, nil
}
