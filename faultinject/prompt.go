package faultinject

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Prompt is a request as the model sees it, free of its dialect.
type Prompt struct {
	Dialect Dialect
	Model   string
	Stream  bool
	System  string
	Turns   []Turn
	Tools   []Tool

	ToolChoice string // "", auto, none, any, or the forced tool's name
	Schema     []byte // the JSON schema of a structured answer, nil without
	JSONMode   bool   // an object is asked for, without a schema
	MaxTokens  int    // 0 is none
	Stops      []string
	Thinking   bool

	IncludeUsage bool
	N            int
	Logprobs     bool

	// Responses.
	Body       []byte // the request, which a response repeats in part
	Background bool   // the answer is made whether or not the client stays
	Stores     bool   // the provider keeps it, so that later requests can name it

	// Vendor flags of Chat servers that can continue (WIRE 2.1).
	ContinueFinal bool
	AddGeneration *bool

	// Gemini.
	Array      bool // the stream is one JSON array
	StreamArgs bool // arguments of calls in pieces
	Checkpoint int  // bytes of the turn's text that a continuation token stands behind
}

// A Turn is one message of the history.
type Turn struct {
	Role    string
	Text    string // text parts, joined
	Calls   []Block
	Results []Result
	Prefix  bool // prefix:true or partial:true on the message itself, or status in_progress

	Searches int // what the provider ran itself, as far as it is over
}

// A Result is what a tool answered.
type Result struct{ ID, Text string }

// A Tool is one the caller declared.
type Tool struct {
	Name   string
	Schema json.RawMessage
	Custom bool // takes any text, not JSON
}

// wireRequest is the union of both dialects' request fields.
type wireRequest struct {
	Model      string          `json:"model"`
	Stream     bool            `json:"stream"`
	System     json.RawMessage `json:"system"`
	Messages   []wireMessage   `json:"messages"`
	Tools      []wireTool      `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	MaxTokens  *int            `json:"max_tokens"`
	MaxCompl   *int            `json:"max_completion_tokens"`
	Stop       json.RawMessage `json:"stop"`
	StopSeqs   []string        `json:"stop_sequences"`
	N          int             `json:"n"`
	Logprobs   bool            `json:"logprobs"`
	StreamOpts struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Thinking struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	} `json:"thinking"`
	ContextManagement struct {
		Edits []struct {
			Type string `json:"type"`
		} `json:"edits"`
	} `json:"context_management"`
	ResponseFormat struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	OutputFormat struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"output_format"`
	OutputConfig struct {
		Format struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
	ContinueFinal bool  `json:"continue_final_message"`
	AddGeneration *bool `json:"add_generation_prompt"`
	TemplateArgs  struct {
		EnableThinking *bool `json:"enable_thinking"`
	} `json:"chat_template_kwargs"`
}

type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []wireCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Prefix     *bool           `json:"prefix"`
	Partial    *bool           `json:"partial"`
}

type wireCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type wireTool struct {
	Name        string          `json:"name"`
	InputSchema json.RawMessage `json:"input_schema"`
	Function    struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// wirePart is one content part of a message.
type wirePart struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature *string         `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

// parts returns the content of a message as parts; a string is one text part.
func parts(raw json.RawMessage) ([]wirePart, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		return []wirePart{{Type: "text", Text: s}}, nil
	}
	var ps []wirePart
	if err := json.Unmarshal(raw, &ps); err != nil {
		return nil, err
	}
	return ps, nil
}

// partsText joins the text of content.
func partsText(raw json.RawMessage) string {
	ps, err := parts(raw)
	if err != nil {
		return string(raw)
	}
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.Text)
	}
	return b.String()
}

// promptOf reads the body of a Chat or a Messages request.
func promptOf(d Dialect, body []byte) (Prompt, error) {
	w, r := decodeRequest(body)
	if r != nil {
		return Prompt{Dialect: d, Model: w.Model}, r
	}
	return readPrompt(d, w)
}

// readPrompt understands a request that passed the provider's checks.
func readPrompt(d Dialect, w wireRequest) (Prompt, error) {
	p := Prompt{
		Dialect: d, Model: w.Model, Stream: w.Stream, System: partsText(w.System),
		Stops: w.StopSeqs, Thinking: w.Thinking.Type == "enabled" || w.Thinking.Type == "adaptive",
		IncludeUsage: w.StreamOpts.IncludeUsage, N: w.N, Logprobs: w.Logprobs,
		ContinueFinal: w.ContinueFinal, AddGeneration: w.AddGeneration,
		ToolChoice: toolChoice(w.ToolChoice), JSONMode: w.ResponseFormat.Type == "json_object",
	}
	for _, limit := range []*int{w.MaxTokens, w.MaxCompl} {
		if limit != nil {
			p.MaxTokens = *limit
		}
	}
	for _, schema := range []json.RawMessage{w.ResponseFormat.JSONSchema.Schema, w.OutputFormat.Schema, w.OutputConfig.Format.Schema} {
		if len(schema) > 0 {
			p.Schema = schema
		}
	}
	if len(w.Stop) > 0 {
		var one string
		if json.Unmarshal(w.Stop, &one) == nil {
			p.Stops = []string{one}
		} else if err := json.Unmarshal(w.Stop, &p.Stops); err != nil {
			return p, fmt.Errorf("stop: %w", err)
		}
	}
	for _, t := range w.Tools {
		tool := Tool{Name: t.Name, Schema: t.InputSchema}
		if t.Function.Name != "" {
			tool = Tool{Name: t.Function.Name, Schema: t.Function.Parameters}
		}
		if tool.Name != "" {
			p.Tools = append(p.Tools, tool)
		}
	}
	for i, m := range w.Messages {
		t, err := readTurn(m)
		if err != nil {
			return p, fmt.Errorf("messages.%d.content: %w", i, err)
		}
		if m.Role == "system" || m.Role == "developer" {
			p.System += t.Text
			continue
		}
		p.Turns = append(p.Turns, t)
	}
	return p, nil
}

func readTurn(m wireMessage) (Turn, error) {
	t := Turn{Role: m.Role, Prefix: m.Prefix != nil && *m.Prefix || m.Partial != nil && *m.Partial}
	ps, err := parts(m.Content)
	if err != nil {
		return t, err
	}
	for _, p := range ps {
		switch p.Type {
		case "text":
			t.Text += p.Text
		case "tool_use":
			t.Calls = append(t.Calls, Block{Kind: ToolBlock, ID: p.ID, Name: p.Name, Args: string(p.Input)})
		case "tool_result":
			t.Results = append(t.Results, Result{ID: p.ToolUseID, Text: partsText(p.Content)})
		}
	}
	for _, c := range m.ToolCalls {
		t.Calls = append(t.Calls, Block{Kind: ToolBlock, ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
	}
	if m.Role == "tool" {
		t.Results = []Result{{ID: m.ToolCallID, Text: t.Text}}
		t.Text = ""
	}
	return t, nil
}

// toolChoice folds both dialects' spellings.
func toolChoice(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		if s == "required" {
			return "any"
		}
		return s
	}
	var o struct {
		Type, Name string
		Function   struct{ Name string }
	}
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	switch {
	case o.Function.Name != "":
		return o.Function.Name
	case o.Name != "":
		return o.Name
	default:
		return o.Type
	}
}

// results returns the tool results that answer the latest calls: those after
// the last turn of the assistant.
func (p Prompt) results() []Result {
	var rs []Result
	for i := len(p.Turns) - 1; i >= 0 && p.Turns[i].Role != "assistant"; i-- {
		rs = append(append([]Result(nil), p.Turns[i].Results...), rs...)
	}
	return rs
}

// question returns the text of the first user message.
func (p Prompt) question() string {
	for _, t := range p.Turns {
		if t.Role == "user" && t.Text != "" {
			return t.Text
		}
	}
	return ""
}
