package faultinject

import (
	"encoding/json"
	"strings"
	"testing"
)

func (h *heard) gemini(t *testing.T, payload string) {
	t.Helper()
	var c struct {
		Candidates []struct {
			Index   int
			Content struct {
				Parts []struct {
					Text         string
					Thought      bool
					FunctionCall *struct {
						Name string
						Args json.RawMessage
					}
				}
			}
			FinishReason string
		}
		PromptFeedback struct{ BlockReason string }
	}
	if err := json.Unmarshal([]byte(payload), &c); err != nil {
		t.Fatalf("chunk %s: %v", payload, err)
	}
	h.starts = 1
	if c.PromptFeedback.BlockReason != "" {
		h.finish, h.ended = c.PromptFeedback.BlockReason, true
	}
	for _, k := range c.Candidates {
		if k.Index > 0 {
			continue
		}
		for _, p := range k.Content.Parts {
			switch {
			case p.Thought:
				h.thinking += p.Text
			case p.FunctionCall != nil:
				h.calls = append(h.calls, p.FunctionCall.Name+" "+string(p.FunctionCall.Args))
			default:
				h.text += p.Text
			}
		}
		if k.FinishReason != "" {
			h.finish, h.ended = k.FinishReason, true
		}
	}
}

func (h *heard) interactions(t *testing.T, payload string) {
	t.Helper()
	var e struct {
		EventType   string `json:"event_type"`
		EventID     string `json:"event_id"`
		Interaction struct{ ID, Status string }
		Step        struct{ Type, Name string }
		Delta       struct {
			Text, Arguments string
			Content         struct{ Text string }
		}
	}
	if err := json.Unmarshal([]byte(payload), &e); err != nil {
		t.Fatalf("event %s: %v", payload, err)
	}
	h.events = append(h.events, e.EventID)
	h.text += e.Delta.Text
	h.thinking += e.Delta.Content.Text
	switch e.EventType {
	case "interaction.created":
		h.starts++
		h.id = e.Interaction.ID
	case "interaction.completed":
		h.finish = e.Interaction.Status
	case "step.start":
		if e.Step.Type == "function_call" {
			h.calls = append(h.calls, e.Step.Name+" ")
		}
	case "step.delta":
		if n := len(h.calls); n > 0 {
			h.calls[n-1] += e.Delta.Arguments
		}
	}
}

func (h *heard) completions(t *testing.T, payload string) {
	t.Helper()
	var c struct {
		Choices []struct {
			Index        int
			Text         string
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal([]byte(payload), &c); err != nil {
		t.Fatalf("chunk %s: %v", payload, err)
	}
	h.starts = 1
	for _, k := range c.Choices {
		if k.Index > 0 {
			continue
		}
		h.text += k.Text
		if k.FinishReason != "" {
			h.finish = k.FinishReason
		}
	}
}

const completionsPath = "/v1/completions"

func completionBody(prompt string, members ...string) string {
	return `{"model":"gpt-3.5-turbo-instruct","stream":true,"prompt":` + quote(prompt) + strings.Join(append([]string{""}, members...), ",") + `}`
}
