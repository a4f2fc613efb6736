package main

import (
	"context"
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

// chat is OpenAI's Chat Completions.
type chat struct {
	client openai.Client
	name   string
	plain  bool
	at     func(string)
}

func newChat(sidecar, key, name string, plain bool, at func(string)) *chat {
	return &chat{openai.NewClient(option.WithBaseURL(sidecar+"/v1"), option.WithAPIKey(key)), name, plain, at}
}

func (m *chat) credential(key string) (name, value string) { return "Authorization", "Bearer " + key }

func (m *chat) ask(ctx context.Context, run string, c conversation) (turn, error) {
	p := openai.ChatCompletionNewParams{Model: m.name, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(c.Task)}}
	for _, t := range c.Turns {
		p.Messages = append(p.Messages, param.Override[openai.ChatCompletionMessageParamUnion](t.Message))
		for i, r := range t.Results {
			p.Messages = append(p.Messages, openai.ToolMessage(r, t.Calls[i].ID))
		}
	}
	for _, t := range toolbox {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.name, Description: openai.String(t.about), Parameters: parameters,
		}))
	}
	said, err := m.answer(ctx, p, option.WithHeader(headerRun, run))
	if err != nil {
		return turn{}, err
	}
	if len(said.Choices) == 0 || said.Choices[0].FinishReason == "" {
		return turn{}, errCut // to the SDK a connection that closes is an end
	}
	msg := said.Choices[0].Message
	b, err := json.Marshal(msg.ToAssistantMessageParam())
	t := turn{Message: b, Text: msg.Content}
	for _, k := range msg.ToolCalls {
		t.Calls = append(t.Calls, call{k.ID, k.Function.Name, k.Function.Arguments})
	}
	return t, err
}

// answer gets the whole answer, from a stream or as it is.
func (m *chat) answer(ctx context.Context, p openai.ChatCompletionNewParams, run option.RequestOption) (*openai.ChatCompletion, error) {
	if m.plain {
		return m.client.Chat.Completions.New(ctx, p, run)
	}
	s := m.client.Chat.Completions.NewStreaming(ctx, p, run)
	defer func() { _ = s.Close() }()
	var said openai.ChatCompletionAccumulator
	for s.Next() {
		if len(said.Choices) == 0 {
			m.at("during the inference")
		}
		said.AddChunk(s.Current())
	}
	return &said.ChatCompletion, s.Err()
}
