package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
)

// anthropicCall is a call with the official Go SDK.
func (j job) anthropicCall() (anthropic.Client, anthropic.MessageNewParams) {
	opts := []option.RequestOption{option.WithAPIKey("sk-ant-e2e"), option.WithBaseURL(j.Base)}
	for k, v := range j.Headers {
		opts = append(opts, option.WithHeader(k, v))
	}
	params := anthropic.MessageNewParams{
		Model:     anthropic.Model(j.Model),
		MaxTokens: int64(j.MaxTokens),
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(j.Prompt))},
	}
	for _, t := range j.Tools {
		p := anthropic.ToolParam{Name: t.Name, Description: anthropic.String(t.Description)}
		must(json.Unmarshal(t.Schema, &p.InputSchema))
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &p})
	}
	// Set as JSON: the typed fields differ between majors of the SDK.
	if j.Thinking != nil {
		opts = append(opts, option.WithJSONSet("thinking", j.Thinking))
	}
	if j.Schema != nil {
		opts = append(opts, option.WithJSONSet("output_config", map[string]any{"format": map[string]any{"type": "json_schema", "schema": j.Schema}}))
	}
	return anthropic.NewClient(opts...), params
}

// anthropicStream begins a streaming call.
func anthropicStream(ctx context.Context, j job) *ssestream.Stream[anthropic.MessageStreamEventUnion] {
	c, params := j.anthropicCall()
	return c.Messages.NewStreaming(ctx, params)
}

// runAnthropicStream adds the events up by hand.
func runAnthropicStream(ctx context.Context, j job) (reply, error) {
	s := anthropicStream(ctx, j)
	defer s.Close()
	var m message
	of := map[int64]int{} // block index to call
	for s.Next() {
		switch e := s.Current(); e.Type {
		case "message_start":
			m.Starts++
		case "content_block_start":
			m.Text += e.ContentBlock.Text
			if e.ContentBlock.Type == "tool_use" {
				of[e.Index] = len(m.Calls)
				m.Calls = append(m.Calls, call{ID: e.ContentBlock.ID, Name: e.ContentBlock.Name})
			}
		case "content_block_delta":
			m.Text += e.Delta.Text
			m.Reasoning += e.Delta.Thinking
			if e.Delta.Type == "input_json_delta" {
				m.Calls[of[e.Index]].Args += e.Delta.PartialJSON
			}
		case "message_delta":
			m.Finish = joinFinish(m.Finish, string(e.Delta.StopReason))
			m.Usages++
		}
	}
	return reply{Message: m, Failure: anthropicFailure(s.Err())}, nil
}

// runAnthropicAccumulate has the SDK's accumulator do it.
func runAnthropicAccumulate(ctx context.Context, j job) (reply, error) {
	s := anthropicStream(ctx, j)
	defer s.Close()
	var whole anthropic.Message
	var rejected error
	for s.Next() {
		if err := whole.Accumulate(s.Current()); err != nil && rejected == nil {
			rejected = fmt.Errorf("accumulate: %w", err)
		}
	}
	m := message{Finish: string(whole.StopReason)}
	if whole.ID != "" {
		m.Starts, m.Usages = 1, 1
	}
	for _, b := range whole.Content {
		m.Text += b.Text
		m.Reasoning += b.Thinking
		if b.Type == "tool_use" {
			m.Calls = append(m.Calls, call{b.ID, b.Name, string(b.Input)})
		}
	}
	return reply{Message: m, Failure: anthropicFailure(errors.Join(rejected, s.Err()))}, nil
}

func anthropicFailure(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Type: fmt.Sprintf("%T", unjoin(err)), Text: err.Error()}
	if e, ok := errors.AsType[*anthropic.Error](err); ok {
		f.Type, f.Status = "anthropic.Error", e.StatusCode
	}
	return f
}
