package faultinject

import (
	"encoding/json"
	"strings"
)

// responsesRequest is the part of a Responses request that decides the answer.
type responsesRequest struct {
	Model        string          `json:"model"`
	Stream       bool            `json:"stream"`
	Input        json.RawMessage `json:"input"`
	Instructions json.RawMessage `json:"instructions"`
	Previous     string          `json:"previous_response_id"`
	Conversation json.RawMessage `json:"conversation"`
	Prompt       json.RawMessage `json:"prompt"`
	Background   bool            `json:"background"`
	Store        *bool           `json:"store"`
	MaxOutput    *int            `json:"max_output_tokens"`
	Include      []string        `json:"include"`
	TopLogprobs  int             `json:"top_logprobs"`
	Tools        []responsesTool `json:"tools"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	Text         struct {
		Format struct {
			Type   string          `json:"type"`
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"text"`
	StreamOptions *struct {
		Obfuscation *bool `json:"include_obfuscation"`
	} `json:"stream_options"`
	Reasoning struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
}

type responsesTool struct {
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
	Tools      []responsesTool `json:"tools"` // of a namespace
}

// inputItem is one element of input.
type inputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Status    string          `json:"status"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Input     *string         `json:"input"`
	Output    json.RawMessage `json:"output"`
	Encrypted *string         `json:"encrypted_content"`
	Tools     []responsesTool `json:"tools"`
}

// said reports whether the model said the item, rather than the caller.
func (it inputItem) said() bool {
	switch it.Type {
	case "message":
		return it.Role == "assistant"
	case "function_call_output", "custom_tool_call_output", "item_reference", "additional_tools":
		return false
	}
	return !strings.HasSuffix(it.Type, "_output") && !strings.HasSuffix(it.Type, "_response")
}

func decodeResponses(body []byte) (responsesRequest, []inputItem, *Refusal) {
	var q responsesRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return q, nil, invalid("We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. %v)", err)
	}
	items, err := inputItems(q.Input)
	if err != nil {
		return q, nil, &Refusal{Status: 400, Type: "invalid_request_error", Code: "invalid_type", Param: "input",
			Message: "Invalid type for 'input': expected one of a string or array of input items."}
	}
	return q, items, nil
}

// inputItems reads input: a string is one message of the user's.
func inputItems(raw json.RawMessage) ([]inputItem, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '"' {
		return []inputItem{{Type: "message", Role: "user", Content: raw}}, nil
	}
	var items []inputItem
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, err
	}
	for i := range items {
		if items[i].Type == "" && items[i].Role != "" {
			items[i].Type = "message" // the short form
		}
	}
	return items, nil
}

// responsesPrompt understands a request. What it refers to is looked up on the
// shelf; what is not there is for the checks to refuse.
func responsesPrompt(k *shelf, body []byte) (Prompt, error) {
	q, items, r := decodeResponses(body)
	p := Prompt{Dialect: Responses, Model: q.Model, Stream: q.Stream, Body: body, Background: q.Background,
		Stores: q.Store == nil || *q.Store, JSONMode: q.Text.Format.Type == "json_object", Schema: q.Text.Format.Schema,
		ToolChoice: toolChoice(q.ToolChoice), System: partsText(q.Instructions), Logprobs: q.TopLogprobs > 0,
		Thinking: q.Reasoning.Effort != "" && q.Reasoning.Effort != "none"}
	if r != nil {
		return p, r
	}
	for _, name := range q.Include {
		p.Logprobs = p.Logprobs || name == "message.output_text.logprobs"
	}
	if q.MaxOutput != nil {
		p.MaxTokens = *q.MaxOutput
	}
	p.addTools(q.Tools)
	if was, ok := k.get(q.Previous); ok {
		p.Turns = append(p.Turns, was.turns...)
	}
	for _, it := range k.resolve(items) {
		p.addItem(it)
	}
	return p, nil
}

// addTools declares what can be called by its bare name: that is all outside of
// namespaces, and what is in the one called functions.
func (p *Prompt) addTools(tools []responsesTool) {
	for _, t := range tools {
		switch {
		case t.Type == "function" || t.Type == "custom":
			p.Tools = append(p.Tools, Tool{Name: t.Name, Schema: t.Parameters, Custom: t.Type == "custom"})
		case t.Type == "namespace" && t.Name == "functions":
			p.addTools(t.Tools)
		}
	}
}

// addItem puts an input item into the history. What the model said in one go
// is one turn.
func (p *Prompt) addItem(it inputItem) {
	if it.Type == "message" && (it.Role == "system" || it.Role == "developer") {
		p.System += partsText(it.Content)
		return
	}
	if it.Type == "additional_tools" {
		p.addTools(it.Tools)
		return
	}
	if !it.said() {
		t := Turn{Role: "user", Text: partsText(it.Content)}
		if it.Type != "message" {
			t = Turn{Role: "tool", Results: []Result{{ID: it.CallID, Text: partsText(it.Output)}}}
		}
		p.Turns = append(p.Turns, t)
		return
	}
	n := len(p.Turns)
	if n == 0 || p.Turns[n-1].Role != "assistant" {
		p.Turns = append(p.Turns, Turn{Role: "assistant"})
		n++
	}
	t := &p.Turns[n-1]
	t.Prefix = false
	switch it.Type {
	case "message":
		t.Text += partsText(it.Content)
		t.Prefix = it.Status == "in_progress"
	case "function_call", "custom_tool_call":
		k := Block{Kind: ToolBlock, ID: it.CallID, Name: it.Name}
		if it.Arguments != nil {
			k.Args = *it.Arguments
		}
		if it.Type == "custom_tool_call" {
			if k.Kind = CustomBlock; it.Input != nil {
				k.Args = *it.Input
			}
		}
		t.Calls = append(t.Calls, k)
	case "web_search_call":
		t.Searches++
	}
}
