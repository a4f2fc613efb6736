package openairesponses

import (
	"errors"
	"slices"
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// Why a request is relayed unprotected.
var (
	ErrRequest = errors.New("responses request: not a json object")
	ErrInput   = errors.New("responses request: input is neither text nor a list")
)

// logprobsOf is the value of include that asks for per-token data.
const logprobsOf = "message.output_text.logprobs"

// Parse implements [dialect.Dialect]. Members it does not know, and known ones of a kind it does not expect, are the
// provider's to judge. A model may be missing: a stored prompt can name one.
func (Dialect) Parse(body []byte) (*dialect.Request, error) {
	r := &dialect.Request{Body: body, N: 1, IncludeUsage: true}
	w := jsonwalk.Checked(body)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		if jsonwalk.IsNull(v) {
			continue
		}
		if string(k) == "input" && jsonwalk.KindOf(v) != jsonwalk.KindString && jsonwalk.KindOf(v) != jsonwalk.KindArray {
			return nil, ErrInput
		}
		readMember(r, string(plainKey(k)), v)
	}
	if w.Err() != nil {
		return nil, ErrRequest
	}
	return r, nil
}

func readMember(r *dialect.Request, key string, val []byte) {
	switch key {
	case "model":
		r.Model = text(val)
	case "stream":
		r.Stream, _ = jsonwalk.Bool(val)
	case "input":
		readItems(r, val)
	case "max_output_tokens":
		if n, ok := jsonwalk.Int(val); ok && n > 0 {
			r.MaxTokens = n
		}
	case "include":
		es := jsonwalk.Elements(val)
		for v, ok := es.Next(); ok; v, ok = es.Next() {
			r.Logprobs = r.Logprobs || text(v) == logprobsOf
		}
	case "top_logprobs":
		n, _ := jsonwalk.Int(val)
		r.Logprobs = r.Logprobs || n > 0
	case "reasoning":
		effort := text(jsonwalk.Get(val, "effort"))
		r.Thinking = effort != "" && effort != "none"
	case "tools":
		readTools(r, val)
	case "tool_choice":
		r.ForcedTool = forces(val)
	case "text":
		readFormat(r, jsonwalk.Get(val, "format"))
	case "conversation":
		// What a continuation says would be committed to the conversation (DESIGN §3).
		r.Unsplicable, r.Committed = "conversation", true
	}
}

// readTools sorts the declared tools by where they run, as kindOf sorts their calls.
func readTools(r *dialect.Request, val []byte) {
	es := jsonwalk.Elements(val)
	for tool, ok := es.Next(); ok; tool, ok = es.Next() {
		switch typ := text(jsonwalk.Get(tool, "type")); typ {
		case "", "function", "custom", "namespace", "local_shell", "apply_patch", "computer", "computer_use_preview":
			r.Tools = true
		case "shell":
			if container(jsonwalk.Get(tool, "environment")) {
				hosted(r, typ)
			} else {
				r.Tools = true
			}
		case "mcp":
			hosted(r, "mcp:"+text(jsonwalk.Get(tool, "server_label")))
		default:
			// Searching has no effects: asking again searches again, and nothing happens twice.
			if !strings.HasPrefix(typ, "web_search") && typ != "file_search" && typ != "tool_search" {
				hosted(r, typ)
			}
		}
	}
}

func hosted(r *dialect.Request, name string) {
	if !slices.Contains(r.HostedTools, name) {
		r.HostedTools = append(r.HostedTools, name)
	}
}

func forces(val []byte) bool {
	if jsonwalk.KindOf(val) != jsonwalk.KindObject {
		return string(val) == `"required"`
	}
	if text(jsonwalk.Get(val, "type")) == "allowed_tools" {
		return text(jsonwalk.Get(val, "mode")) == "required"
	}
	return true
}

func readFormat(r *dialect.Request, val []byte) {
	switch typ := text(jsonwalk.Get(val, "type")); typ {
	case "", "text":
	case "json_object":
		r.Structured = true
	case "json_schema":
		r.Structured = true
		r.Schema = jsonwalk.Get(val, "schema")
	default: // a grammar of some kind
		r.Unsplicable = "text.format " + typ
	}
}

// openText is the text of an input item that the caller left for the model to go on with: an assistant message in
// progress (vLLM, WIRE 2.1). Any other trailing assistant message is a turn of its own.
func openText(item []byte) []byte {
	if text(jsonwalk.Get(item, "role")) != "assistant" || text(jsonwalk.Get(item, "status")) != "in_progress" {
		return nil
	}
	content := jsonwalk.Get(item, "content")
	if body, ok := jsonwalk.String(content); ok {
		return jsonwalk.Unescape(nil, body)
	}
	var out []byte
	es := jsonwalk.Elements(content)
	for v, ok := es.Next(); ok; v, ok = es.Next() {
		body, _ := jsonwalk.String(jsonwalk.Get(v, "text"))
		out = jsonwalk.Unescape(out, body)
	}
	return out
}

// readItems finds the tools that items of the input declare: additional_tools, which is where Codex has all of its own,
// and what a tool search brought up; and what the last one leaves to go on with.
func readItems(r *dialect.Request, input []byte) {
	var last []byte
	es := jsonwalk.Elements(input)
	for item, ok := es.Next(); ok; item, ok = es.Next() {
		last = item
		switch text(jsonwalk.Get(item, "type")) {
		case "additional_tools", "tool_search_output":
			readTools(r, jsonwalk.Get(item, "tools"))
		}
	}
	r.Prefill = openText(last)
}
