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
	at     func(string)
}

func newMessages(sidecar, key, name string, at func(string)) *messages {
	return &messages{anthropic.NewClient(option.WithBaseURL(sidecar), option.WithAPIKey(key)), name, at}
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
	s := m.client.Messages.NewStreaming(ctx, p, option.WithHeader(headerRun, run))
	defer func() { _ = s.Close() }()
	var said anthropic.Message
	for s.Next() {
		if said.ID == "" {
			m.at("during the inference")
		}
		if err := said.Accumulate(s.Current()); err != nil {
			return turn{}, err
		}
	}
	if err := s.Err(); err != nil {
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
