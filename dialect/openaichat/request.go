package openaichat

import (
	"errors"
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// Why a request is relayed unprotected.
var (
	ErrRequest  = errors.New("request is not a json object")
	ErrMessages = errors.New("request has no messages array")
)

// Parse implements dialect.Dialect. Members it does not know, and known ones of a
// kind it does not expect, are the provider's to judge.
func (Dialect) Parse(body []byte) (*dialect.Request, error) {
	r := &dialect.Request{Body: body, N: 1}
	var messages []byte
	w := jsonwalk.Members(body)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if jsonwalk.IsNull(val) {
			continue
		}
		if string(key) == "messages" {
			messages = val
			continue
		}
		ReadMember(r, string(key), val)
	}
	if w.Err() != nil {
		return nil, ErrRequest
	}
	if jsonwalk.KindOf(messages) != jsonwalk.KindArray {
		return nil, ErrMessages
	}
	r.Prefill, _ = trailingAssistant(jsonwalk.Last(messages))
	return r, nil
}

// ReadMember reads a member that chat shares with the legacy completions, or has
// alone; val is not null.
func ReadMember(r *dialect.Request, key string, val []byte) {
	switch key {
	case "model":
		r.Model = plain(val)
	case "stream":
		r.Stream, _ = jsonwalk.Bool(val)
	case "n":
		if n, ok := jsonwalk.Int(val); ok && n > 1 {
			r.N = int(n)
		}
	case "logprobs":
		yes, _ := jsonwalk.Bool(val)
		r.Logprobs = r.Logprobs || yes
	case "top_logprobs":
		n, _ := jsonwalk.Int(val)
		r.Logprobs = r.Logprobs || n > 0
	case "max_tokens", "max_completion_tokens":
		if n, ok := jsonwalk.Int(val); ok && n > 0 && (r.MaxTokens == 0 || n < r.MaxTokens) {
			r.MaxTokens = n
		}
	case "stop":
		readStops(r, val)
	case "stream_options":
		r.IncludeUsage, _ = jsonwalk.Bool(jsonwalk.Get(val, "include_usage"))
	case "tools":
		readTools(r, val)
	case "functions": // the call form of 2023
		r.Tools = r.Tools || filled(val)
	case "tool_choice":
		r.ForcedTool = r.ForcedTool || forcesTool(val)
	case "function_call":
		r.ForcedTool = r.ForcedTool || jsonwalk.KindOf(val) == jsonwalk.KindObject
	case "response_format":
		readFormat(r, val)
	case "guided_json": // vLLM
		r.Structured, r.Schema = true, val
	case "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "grammar", "regex", "ebnf":
		// vLLM, llama.cpp, SGLang: a grammar starts over on every request (WIRE 2.3).
		r.Unsplicable = key
	case "modalities":
		e := jsonwalk.Elements(val)
		for m, ok := e.Next(); ok; m, ok = e.Next() {
			if string(m) == `"audio"` {
				r.Unsplicable = "audio"
			}
		}
	case "audio":
		r.Unsplicable = "audio"
	}
}

func readStops(r *dialect.Request, val []byte) {
	if body, ok := jsonwalk.String(val); ok {
		r.Stops = appendStop(r.Stops, body)
		return
	}
	e := jsonwalk.Elements(val)
	for s, ok := e.Next(); ok; s, ok = e.Next() {
		if body, ok := jsonwalk.String(s); ok {
			r.Stops = appendStop(r.Stops, body)
		}
	}
}

func appendStop(stops []string, body []byte) []string {
	if len(body) == 0 {
		return stops
	}
	return append(stops, string(jsonwalk.Unescape(nil, body)))
}

// readTools: tools of the types function and custom are the caller's; any other
// type runs at the provider (Groq's code_interpreter, an MCP server …). Searching
// has no effects, and neither has web_search_options.
func readTools(r *dialect.Request, val []byte) {
	e := jsonwalk.Elements(val)
	for tool, ok := e.Next(); ok; tool, ok = e.Next() {
		switch typ := plain(jsonwalk.Get(tool, "type")); {
		case typ == "", typ == "function", typ == "custom":
			r.Tools = true
		case strings.Contains(typ, "search"), strings.Contains(typ, "fetch"):
		default:
			r.HostedTools = append(r.HostedTools, typ)
		}
	}
}

func forcesTool(val []byte) bool {
	switch string(val) {
	case `"required"`, `"any"`: // Mistral says any
		return true
	}
	if jsonwalk.KindOf(val) != jsonwalk.KindObject {
		return false
	}
	if string(jsonwalk.Get(val, "type")) == `"allowed_tools"` {
		return string(jsonwalk.Get(val, "allowed_tools", "mode")) == `"required"`
	}
	return true
}

func readFormat(r *dialect.Request, val []byte) {
	switch typ := plain(jsonwalk.Get(val, "type")); typ {
	case "", "text":
	case "json_object":
		r.Structured = true
		r.Schema = jsonwalk.Get(val, "schema") // Together, Fireworks, llama.cpp
	case "json_schema":
		r.Structured = true
		r.Schema = jsonwalk.Get(val, "json_schema", "schema")
	default: // a grammar of some kind
		r.Unsplicable = "response_format " + typ
	}
}
