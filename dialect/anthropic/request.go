package anthropic

import (
	"errors"
	"slices"
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// Parse implements [dialect.Dialect]. It reads what recovery needs and checks nothing else: a request that the provider
// will refuse is the provider's to refuse.
func (Dialect) Parse(body []byte) (*dialect.Request, error) {
	r, err := Read(body)
	if err == nil && r.Model == "" {
		return nil, errors.New("messages request: no model")
	}
	return r, err
}

// Read is Parse for hosts whose requests name the model elsewhere: Bedrock, in the path.
func Read(body []byte) (*dialect.Request, error) {
	r := &dialect.Request{Body: body, N: 1, IncludeUsage: true}
	var messages []byte
	w := jsonwalk.Checked(body)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch string(plainKey(k)) {
		case "model":
			r.Model = text(v)
		case "stream":
			r.Stream, _ = jsonwalk.Bool(v)
		case "max_tokens":
			r.MaxTokens, _ = jsonwalk.Int(v)
		case "stop_sequences":
			r.Stops = texts(v)
		case "thinking":
			typ := text(jsonwalk.Get(v, "type"))
			r.Thinking = typ == "enabled" || typ == "adaptive"
		case "tools":
			readTools(r, v)
		case "mcp_servers":
			readServers(r, v)
		case "tool_choice":
			typ := text(jsonwalk.Get(v, "type"))
			r.ForcedTool = typ == "any" || typ == "tool"
		case "output_format":
			readFormat(r, v)
		case "output_config":
			readFormat(r, jsonwalk.Get(v, "format"))
		case "messages":
			messages = v
		}
	}
	switch {
	case w.Err() != nil:
		return nil, errors.New("messages request: not a json object")
	case jsonwalk.KindOf(messages) != jsonwalk.KindArray:
		return nil, errors.New("messages request: no messages array")
	}
	if last := jsonwalk.Last(messages); last != nil && text(jsonwalk.Get(last, "role")) == "assistant" {
		r.Prefill = trailingText(jsonwalk.Get(last, "content"))
	}
	return r, nil
}

// readTools sorts the declared tools by where they run. A tool with an input_schema, or without a type, is the caller's.
func readTools(r *dialect.Request, raw []byte) {
	es := jsonwalk.Elements(raw)
	for tool, ok := es.Next(); ok; tool, ok = es.Next() {
		typ, name := text(jsonwalk.Get(tool, "type")), text(jsonwalk.Get(tool, "name"))
		switch {
		case jsonwalk.Get(tool, "input_schema") != nil || clientTool(typ):
			r.Tools = true
		case effectless(typ):
			// Asking again searches again; nothing happens twice.
		case typ == "mcp_toolset":
			hosted(r, "mcp:"+text(jsonwalk.Get(tool, "mcp_server_name")))
		case name != "":
			hosted(r, name)
		default:
			hosted(r, typ)
		}
	}
}

// effectless reports whether a hosted tool of this type only reads: web search and
// fetch, and the search among the request's own tools. A turn that may have used one
// can be asked for again.
func effectless(typ string) bool {
	for _, p := range []string{"web_search_", "web_fetch_", "tool_search_tool_"} {
		if strings.HasPrefix(typ, p) {
			return true
		}
	}
	return false
}

// readServers adds the declared MCP servers.
func readServers(r *dialect.Request, raw []byte) {
	es := jsonwalk.Elements(raw)
	for server, ok := es.Next(); ok; server, ok = es.Next() {
		hosted(r, "mcp:"+text(jsonwalk.Get(server, "name")))
	}
}

// hosted notes a hosted tool once: a server is named in mcp_servers and again by its toolset.
func hosted(r *dialect.Request, name string) {
	if !slices.Contains(r.HostedTools, name) {
		r.HostedTools = append(r.HostedTools, name)
	}
}

func readFormat(r *dialect.Request, raw []byte) {
	if text(jsonwalk.Get(raw, "type")) != "json_schema" {
		return
	}
	r.Structured = true
	r.Schema = jsonwalk.Get(raw, "schema")
}

// trailingText is the text that ends a message's content: the string, or the text blocks behind the last other block.
func trailingText(content []byte) []byte {
	if body, ok := jsonwalk.String(content); ok {
		return jsonwalk.Unescape(nil, body)
	}
	var out []byte
	es := jsonwalk.Elements(content)
	for block, ok := es.Next(); ok; block, ok = es.Next() {
		if text(jsonwalk.Get(block, "type")) != "text" {
			out = nil
			continue
		}
		body, _ := jsonwalk.String(jsonwalk.Get(block, "text"))
		out = jsonwalk.Unescape(out, body)
	}
	return out
}

// text decodes a raw string value; "" for anything else.
func text(raw []byte) string {
	body, _ := jsonwalk.String(raw)
	return plain(body)
}

func texts(raw []byte) (out []string) {
	es := jsonwalk.Elements(raw)
	for v, ok := es.Next(); ok; v, ok = es.Next() {
		if body, isString := jsonwalk.String(v); isString {
			out = append(out, plain(body))
		}
	}
	return out
}
