package faultinject

import (
	"encoding/json"
	"strings"
)

// interactionRequest is the body of POST /v1beta/interactions.
type interactionRequest struct {
	Model             string
	Agent             string
	Input             json.RawMessage
	SystemInstruction string `json:"system_instruction"`
	Stream            bool
	Store             *bool
	Background        bool
	Previous          string `json:"previous_interaction_id"`
	Tools             []struct {
		Type, Name string
		Parameters json.RawMessage
	}
	GenerationConfig struct {
		MaxOutputTokens int             `json:"max_output_tokens"`
		StopSequences   []string        `json:"stop_sequences"`
		ThinkingLevel   string          `json:"thinking_level"`
		ToolChoice      json.RawMessage `json:"tool_choice"`
	} `json:"generation_config"`
	ResponseFormat   json.RawMessage `json:"response_format"`
	ResponseMimeType string          `json:"response_mime_type"`
}

// kept reports whether the provider holds on to the interaction: unless it is
// told not to.
func (r interactionRequest) kept() bool { return r.Store == nil || *r.Store }

// interactionStep is one step of the input, or of what was said before.
type interactionStep struct {
	Type      string
	Content   json.RawMessage // of user_input and model_output
	Signature string
	Summary   json.RawMessage
	ID        string
	CallID    string `json:"call_id"`
	Name      string
	Arguments json.RawMessage
	Result    json.RawMessage

	raw json.RawMessage
}

// contentText is the text of a list of content.
func contentText(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var list []struct{ Type, Text string }
	if json.Unmarshal(raw, &list) != nil {
		return ""
	}
	var b strings.Builder
	for _, c := range list {
		if c.Type == "text" {
			b.WriteString(c.Text)
		}
	}
	return b.String()
}

// inputSteps reads an input: text, a piece of content, a list of it, or steps.
func inputSteps(raw json.RawMessage) ([]interactionStep, bool) {
	user := func(content string) ([]interactionStep, bool) {
		s := interactionStep{Type: "user_input", Content: json.RawMessage(content)}
		s.raw = json.RawMessage(`{"type":"user_input","content":` + content + `}`)
		return []interactionStep{s}, true
	}
	switch {
	case len(raw) == 0:
		return nil, false
	case raw[0] == '"':
		return user(`[{"type":"text","text":` + string(raw) + `}]`)
	case raw[0] == '{':
		raw = append(append(json.RawMessage{'['}, raw...), ']')
	}
	var raws []json.RawMessage
	if json.Unmarshal(raw, &raws) != nil {
		return nil, false
	}
	var steps []interactionStep
	for _, one := range raws {
		s := interactionStep{raw: one}
		if json.Unmarshal(one, &s) != nil {
			return nil, false
		}
		if _, known := interactionSteps[s.Type]; !known && contentTypes[s.Type] {
			return user(string(raw))
		}
		steps = append(steps, s)
	}
	return steps, true
}

var contentTypes = map[string]bool{"text": true, "image": true, "audio": true, "video": true, "document": true, "file": true}

// readInteraction understands a request. before is what an earlier interaction
// holds of the conversation.
func readInteraction(req interactionRequest, before []Turn) Prompt {
	p := Prompt{Dialect: Interactions, Model: req.Model, Stream: req.Stream, System: req.SystemInstruction, N: 1,
		MaxTokens: req.GenerationConfig.MaxOutputTokens, Stops: req.GenerationConfig.StopSequences,
		Thinking: req.GenerationConfig.ThinkingLevel != "", Stores: req.kept(), Background: req.Background,
		Turns: append([]Turn(nil), before...)}
	if p.Model == "" {
		p.Model = req.Agent
	}
	p.Schema, p.JSONMode = interactionSchema(req.ResponseFormat), req.ResponseMimeType == "application/json"
	for _, t := range req.Tools {
		if t.Type == "function" {
			p.Tools = append(p.Tools, Tool{Name: t.Name, Schema: t.Parameters})
		}
	}
	steps, _ := inputSteps(req.Input)
	for _, s := range steps {
		p.addStep(s)
	}
	return p
}

// interactionSchema is the schema of a response format, or of the first of a
// list that has one.
func interactionSchema(raw json.RawMessage) []byte {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for _, one := range list {
			if s := interactionSchema(one); s != nil {
				return s
			}
		}
		return nil
	}
	var f struct{ Schema json.RawMessage }
	if json.Unmarshal(raw, &f) != nil || len(f.Schema) == 0 {
		return nil
	}
	return f.Schema
}

// addStep puts a step into the conversation: steps of one side in a row are one
// turn.
func (p *Prompt) addStep(s interactionStep) {
	role := "user"
	if s.Type != "user_input" && s.Type != "function_result" {
		role = "assistant"
	}
	if n := len(p.Turns); n == 0 || p.Turns[n-1].Role != role {
		p.Turns = append(p.Turns, Turn{Role: role})
	}
	t := &p.Turns[len(p.Turns)-1]
	switch s.Type {
	case "user_input", "model_output":
		t.Text += contentText(s.Content)
	case "code_execution_result":
		t.Searches++
	case "function_call":
		t.Calls = append(t.Calls, Block{Kind: ToolBlock, ID: s.ID, Name: s.Name, Args: string(s.Arguments)})
	case "function_result":
		t.Results = append(t.Results, Result{ID: s.CallID, Text: resultText(s.Result)})
	}
}

// resultText is what a tool answered: text, content, or anything.
func resultText(raw json.RawMessage) string {
	if text := contentText(raw); text != "" {
		return text
	}
	return responseText(raw)
}
