package faultinject

import (
	"encoding/json"
	"strings"
)

// classify tells the kind of an event that somebody else rendered.
func classify(raw []byte) Kind {
	data := payloadOf(raw)
	switch {
	case len(data) == 0:
		return KindPing
	case string(data) == "[DONE]":
		return KindEnd
	}
	var r struct {
		Type string
		Item struct{ Type string }
	}
	if json.Unmarshal(data, &r) == nil && (strings.HasPrefix(r.Type, "response.") || r.Type == "keepalive") {
		return responsesKind(r.Type, r.Item.Type)
	}
	if k, ok := classifyGoogle(data); ok {
		return k
	}
	var e struct {
		Type  string
		Delta struct{ Type string }
		Block struct{ Type string } `json:"content_block"`

		Choices []struct {
			Delta struct {
				Role, Content    string
				Refusal          string
				Reasoning        string
				ReasoningContent string                `json:"reasoning_content"`
				ToolCalls        []struct{ ID string } `json:"tool_calls"`
			}
			Text         string // of legacy completions
			FinishReason string `json:"finish_reason"`
		}
		Usage json.RawMessage
	}
	if json.Unmarshal(data, &e) != nil {
		return KindOther
	}
	if e.Type != "" {
		return classifyMessages(e.Type, e.Delta.Type, e.Block.Type)
	}
	if len(e.Choices) == 0 {
		if len(e.Usage) > 0 {
			return KindUsage
		}
		return KindOther
	}
	switch c := e.Choices[0]; {
	case c.FinishReason != "":
		return KindFinish
	case len(c.Delta.ToolCalls) > 0 && c.Delta.ToolCalls[0].ID != "":
		return KindTool
	case len(c.Delta.ToolCalls) > 0:
		return KindArgs
	case c.Delta.Content != "" || c.Delta.Refusal != "" || c.Text != "":
		return KindText
	case c.Delta.Reasoning != "" || c.Delta.ReasoningContent != "":
		return KindThinking
	case c.Delta.Role != "":
		return KindStart
	}
	return KindOther
}

func classifyMessages(event, delta, block string) Kind {
	switch event {
	case "message_start":
		return KindStart
	case "content_block_start":
		if block == "tool_use" {
			return KindTool
		}
		return KindOpen
	case "content_block_delta":
		switch delta {
		case "text_delta":
			return KindText
		case "thinking_delta":
			return KindThinking
		case "signature_delta":
			return KindSignature
		case "input_json_delta":
			return KindArgs
		}
	case "content_block_stop":
		return KindClose
	case "message_delta":
		return KindFinish
	case "message_stop":
		return KindEnd
	case "ping":
		return KindPing
	}
	return KindOther
}
