package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"
)

// openaiClient is the official Go SDK.
func (j job) openaiClient() openai.Client {
	opts := []option.RequestOption{option.WithAPIKey("sk-e2e"), option.WithBaseURL(j.Base + "/v1")}
	for k, v := range j.Headers {
		opts = append(opts, option.WithHeader(k, v))
	}
	return openai.NewClient(opts...)
}

// chat is the request of a Chat call.
func (j job) chat() openai.ChatCompletionNewParams {
	params := openai.ChatCompletionNewParams{
		Model:               j.Model,
		Messages:            []openai.ChatCompletionMessageParamUnion{openai.UserMessage(j.Prompt)},
		MaxCompletionTokens: openai.Int(int64(j.MaxTokens)),
	}
	if j.Choices > 1 {
		params.N = openai.Int(int64(j.Choices))
	}
	for _, t := range j.Tools {
		var schema shared.FunctionParameters
		must(json.Unmarshal(t.Schema, &schema))
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.Name, Description: openai.String(t.Description), Parameters: schema,
		}))
	}
	if j.Schema != nil {
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "report", Schema: j.Schema},
		}
	}
	return params
}

// openaiStream begins a streaming call.
func openaiStream(ctx context.Context, j job) *ssestream.Stream[openai.ChatCompletionChunk] {
	params, c := j.chat(), j.openaiClient()
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	return c.Chat.Completions.NewStreaming(ctx, params)
}

// runOpenAIStream adds the chunks up by hand.
func runOpenAIStream(ctx context.Context, j job) (reply, error) {
	s := openaiStream(ctx, j)
	defer s.Close()
	var m message
	ids := map[string]bool{}
	for s.Next() {
		c := s.Current()
		ids[c.ID] = true
		m.Starts = len(ids)
		if c.JSON.Usage.Valid() {
			m.Usages++
		}
		for _, ch := range c.Choices {
			m.Text += ch.Delta.Content
			m.Finish = joinFinish(m.Finish, ch.FinishReason)
			for _, t := range ch.Delta.ToolCalls {
				for len(m.Calls) <= int(t.Index) {
					m.Calls = append(m.Calls, call{})
				}
				k := &m.Calls[t.Index]
				k.ID += t.ID
				k.Name += t.Function.Name
				k.Args += t.Function.Arguments
			}
		}
	}
	return reply{Message: m, Failure: openaiFailure(s.Err())}, nil
}

// runOpenAIAccumulator has the SDK's accumulator do it.
func runOpenAIAccumulator(ctx context.Context, j job) (reply, error) {
	s := openaiStream(ctx, j)
	defer s.Close()
	var acc openai.ChatCompletionAccumulator
	var rejected error
	for s.Next() {
		if c := s.Current(); !acc.AddChunk(c) && rejected == nil {
			rejected = fmt.Errorf("the accumulator rejects %s", c.RawJSON())
		}
	}
	var m message
	if len(acc.Choices) > 0 {
		ch := acc.Choices[0]
		m.Text, m.Finish, m.Starts = ch.Message.Content, ch.FinishReason, 1
		for _, t := range ch.Message.ToolCalls {
			m.Calls = append(m.Calls, call{t.ID, t.Function.Name, t.Function.Arguments})
		}
	}
	if acc.Usage.TotalTokens > 0 {
		m.Usages = 1
	}
	return reply{Message: m, Failure: openaiFailure(errors.Join(rejected, s.Err()))}, nil
}

func openaiFailure(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Type: fmt.Sprintf("%T", unjoin(err)), Text: err.Error()}
	if e, ok := errors.AsType[*openai.Error](err); ok {
		f.Type, f.Status, f.Kind = "openai.Error", e.StatusCode, e.Type
	}
	return f
}
