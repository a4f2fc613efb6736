package main

import (
	"context"
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

// response is OpenAI's Responses. The history is carried, not kept by the provider.
type response struct{ chat }

func newResponses(sidecar, key, name string, plain bool, at func(string)) *response {
	return &response{*newChat(sidecar, key, name, plain, at)}
}

func (m *response) ask(ctx context.Context, run string, c conversation) (turn, error) {
	in := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(c.Task, responses.EasyInputMessageRoleUser)}
	for _, t := range c.Turns {
		var items []json.RawMessage
		if err := json.Unmarshal(t.Message, &items); err != nil {
			return turn{}, err
		}
		for _, item := range items {
			in = append(in, param.Override[responses.ResponseInputItemUnionParam](item))
		}
		for i, r := range t.Results {
			in = append(in, param.Override[responses.ResponseInputItemUnionParam](map[string]string{
				"type": "function_call_output", "call_id": t.Calls[i].ID, "output": r,
			}))
		}
	}
	p := responses.ResponseNewParams{Model: m.name, Store: openai.Bool(false)}
	p.Input.OfInputItemList = in
	for _, t := range toolbox {
		tool := responses.ToolParamOfFunction(t.name, parameters, true)
		tool.OfFunction.Description = openai.String(t.about)
		p.Tools = append(p.Tools, tool)
	}
	if m.plain {
		said, err := m.client.Responses.New(ctx, p, option.WithHeader(headerRun, run))
		if err != nil {
			return turn{}, err
		}
		return fromResponse(said)
	}
	s := m.client.Responses.NewStreaming(ctx, p, option.WithHeader(headerRun, run))
	defer func() { _ = s.Close() }()
	var said *responses.Response
	for s.Next() {
		switch e := s.Current(); e.Type {
		case "response.created":
			m.at("during the inference")
		case "response.completed":
			said = &e.Response
		}
	}
	if err := s.Err(); err != nil {
		return turn{}, err
	}
	if said == nil {
		return turn{}, errCut
	}
	return fromResponse(said)
}

func fromResponse(r *responses.Response) (t turn, err error) {
	var items []json.RawMessage
	for _, item := range r.Output {
		items = append(items, json.RawMessage(item.RawJSON()))
		if item.Type == "function_call" {
			t.Calls = append(t.Calls, call{item.CallID, item.Name, item.Arguments.OfString})
		}
	}
	t.Text = r.OutputText()
	t.Message, err = json.Marshal(items)
	return t, err
}
