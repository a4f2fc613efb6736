package main

import (
	"context"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
)

// messages is Anthropic's Messages.
type messages struct {
	client anthropic.Client
	name   string
	plain  bool
	at     func(string)
}

func newMessages(sidecar, key, name string, plain bool, at func(string)) *messages {
	return &messages{anthropic.NewClient(option.WithBaseURL(sidecar), option.WithAPIKey(key)), name, plain, at}
}

func (m *messages) credential(key string) (name, value string) { return "X-Api-Key", key }

func (m *messages) ask(ctx context.Context, run string, c conversation) (turn, error) {
	p := anthropic.MessageNewParams{Model: anthropic.Model(m.name), MaxTokens: 4096}
	p.Messages = append(p.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock(c.Task)))
	for _, t := range c.Turns {
		p.Messages = append(p.Messages, param.Override[anthropic.MessageParam](t.Message))
		var results []anthropic.ContentBlockParamUnion
		for i, r := range t.Results {
			results = append(results, anthropic.NewToolResultBlock(t.Calls[i].ID, r, false))
		}
		if len(results) > 0 {
			p.Messages = append(p.Messages, anthropic.NewUserMessage(results...))
		}
	}
	for _, t := range toolbox {
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: t.name, Description: anthropic.String(t.about),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: parameters["properties"], Required: []string{"what"}},
		}})
	}
	said, err := m.answer(ctx, p, option.WithHeader(headerRun, run))
	if err != nil {
		return turn{}, err
	}
	if said.StopReason == "" {
		return turn{}, errCut
	}
	b, err := json.Marshal(said.ToParam())
	t := turn{Message: b}
	for _, k := range said.Content {
		t.Text += k.Text
		if k.Type == "tool_use" {
			t.Calls = append(t.Calls, call{k.ID, k.Name, string(k.Input)})
		}
	}
	return t, err
}

// answer gets the whole answer, from a stream or as it is.
func (m *messages) answer(ctx context.Context, p anthropic.MessageNewParams, run option.RequestOption) (*anthropic.Message, error) {
	if m.plain {
		return m.client.Messages.New(ctx, p, run)
	}
	s := m.client.Messages.NewStreaming(ctx, p, run)
	defer func() { _ = s.Close() }()
	var said anthropic.Message
	for s.Next() {
		if said.ID == "" {
			m.at("during the inference")
		}
		if err := said.Accumulate(s.Current()); err != nil {
			return nil, err
		}
	}
	return &said, s.Err()
}
