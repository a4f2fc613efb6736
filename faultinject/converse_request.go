package faultinject

import (
	"encoding/json"
	"fmt"
	"strings"
)

// converseRequest is the body of Converse and ConverseStream.
type converseRequest struct {
	call bedrockCall

	Messages        []converseMessage
	System          []converseBlock
	InferenceConfig struct {
		MaxTokens     *int
		StopSequences []string
	}
	ToolConfig *struct {
		Tools []struct {
			ToolSpec *struct {
				Name        string
				InputSchema struct{ JSON json.RawMessage }
			}
		}
		ToolChoice struct {
			Auto, Any json.RawMessage
			Tool      struct{ Name string }
		}
	}
	OutputConfig struct {
		TextFormat struct {
			Structure struct {
				JSONSchema struct{ Schema string }
			}
		}
	}
	// Additional is what goes to the model as its own wire spells it.
	Additional map[string]json.RawMessage `json:"additionalModelRequestFields"`
}

type converseMessage struct {
	Role    string
	Content []json.RawMessage
}

// converseBlock is a union; what it knows no more of than the name is raw.
type converseBlock struct {
	Text       *string
	ToolUse    *converseUse
	ToolResult *struct {
		ToolUseID string
		Content   []struct {
			Text string
			JSON json.RawMessage
		}
	}
	ReasoningContent *struct {
		ReasoningText   *struct{ Text, Signature string }
		RedactedContent []byte
	}
}

type converseUse struct {
	ToolUseID, Name string
	Input           json.RawMessage
}

// converseBlocks are the members of the union ContentBlock (API reference).
var converseBlocks = map[string]bool{
	"text": true, "image": true, "document": true, "video": true, "audio": true, "toolUse": true, "toolResult": true, "guardContent": true,
	"cachePoint": true, "reasoningContent": true, "citationsContent": true, "searchResult": true,
}

func readConverse(call bedrockCall, body []byte) (converseRequest, error) {
	r := converseRequest{call: call}
	err := json.Unmarshal(body, &r)
	return r, err
}

// blocks reads the content of a message.
func (m converseMessage) blocks() ([]converseBlock, error) {
	out := make([]converseBlock, len(m.Content))
	for i, raw := range m.Content {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, fmt.Errorf("content.%d: %w", i, err)
		}
	}
	return out, nil
}

// request is the same request as the model behind Converse reads it: Messages,
// whoever's model it is.
func (r converseRequest) request() wireRequest {
	w := wireRequest{Model: r.call.model, Stream: r.call.streams(), StopSeqs: r.InferenceConfig.StopSequences, MaxTokens: r.InferenceConfig.MaxTokens}
	if w.MaxTokens == nil {
		most := 32000 // the model's own
		w.MaxTokens = &most
	}
	var system strings.Builder
	for _, b := range r.System {
		if b.Text != nil {
			system.WriteString(*b.Text)
		}
	}
	w.System = json.RawMessage(quote(system.String()))
	for _, m := range r.Messages {
		w.Messages = append(w.Messages, m.message())
	}
	if c := r.ToolConfig; c != nil {
		for _, t := range c.Tools {
			if t.ToolSpec != nil {
				w.Tools = append(w.Tools, wireTool{Name: t.ToolSpec.Name, InputSchema: t.ToolSpec.InputSchema.JSON})
			}
		}
		switch {
		case c.ToolChoice.Tool.Name != "":
			w.ToolChoice = json.RawMessage(`{"type":"tool","name":` + quote(c.ToolChoice.Tool.Name) + `}`)
		case c.ToolChoice.Any != nil:
			w.ToolChoice = json.RawMessage(`{"type":"any"}`)
		}
	}
	if schema := r.OutputConfig.TextFormat.Structure.JSONSchema.Schema; schema != "" {
		w.OutputConfig.Format.Schema = json.RawMessage(schema)
	}
	// What cannot be read the model leaves alone, or the check refuses it.
	_ = json.Unmarshal(r.Additional["thinking"], &w.Thinking)
	_ = json.Unmarshal(r.Additional["output_config"], &w.OutputConfig)
	return w
}

// message is m in the spelling of Messages. What has no such part is left out.
func (m converseMessage) message() wireMessage {
	var parts []string
	blocks, err := m.blocks()
	if err != nil {
		blocks = nil
	}
	for _, b := range blocks {
		switch {
		case b.Text != nil:
			parts = append(parts, `{"type":"text","text":`+quote(*b.Text)+`}`)
		case b.ToolUse != nil:
			parts = append(parts, fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, quote(b.ToolUse.ToolUseID), quote(b.ToolUse.Name), rawOrNull(b.ToolUse.Input)))
		case b.ToolResult != nil:
			var said strings.Builder
			for _, c := range b.ToolResult.Content {
				said.WriteString(c.Text + string(c.JSON))
			}
			parts = append(parts, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%s,"content":%s}`, quote(b.ToolResult.ToolUseID), quote(said.String())))
		case b.ReasoningContent != nil && b.ReasoningContent.ReasoningText != nil:
			t := b.ReasoningContent.ReasoningText
			parts = append(parts, `{"type":"thinking","thinking":`+quote(t.Text)+`,"signature":`+quote(t.Signature)+`}`)
		case b.ReasoningContent != nil:
			parts = append(parts, `{"type":"redacted_thinking","data":`+quote(string(b.ReasoningContent.RedactedContent))+`}`)
		}
	}
	return wireMessage{Role: m.Role, Content: json.RawMessage("[" + strings.Join(parts, ",") + "]")}
}

func rawOrNull(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "null"
	}
	return string(raw)
}
