package interactions

import (
	"errors"
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Why a request is relayed unprotected.
var (
	ErrRequest = errors.New("request is not a json object")
	ErrInput   = errors.New("request has no input")
)

// Parse implements dialect.Dialect. An interaction that the provider keeps (the
// default), that runs in the background or belongs to an agent can be resumed by
// its id and in no other way; the id that the caller holds must stay one that the
// provider knows.
func (Dialect) Parse(body []byte) (*dialect.Request, error) {
	r := &dialect.Request{Body: body, N: 1, IncludeUsage: true}
	var input, mime, format []byte
	kept, held := true, ""
	w := jsonwalk.Members(body)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if jsonwalk.IsNull(val) {
			continue
		}
		switch string(key) {
		case "input":
			input = val
		case "model":
			r.Model = plain(val)
		case "stream":
			r.Stream, _ = jsonwalk.Bool(val)
		case "store":
			kept, _ = jsonwalk.Bool(val)
		case "background":
			if yes, _ := jsonwalk.Bool(val); yes {
				held = "background"
			}
		case "agent", "continuation_token":
			held = string(key)
		case "generation_config":
			readConfig(r, val)
		case "tools":
			readTools(r, val)
		case "response_mime_type":
			mime = val
		case "response_format":
			format = val
		case "response_modalities":
			e := jsonwalk.Elements(val)
			for m, ok := e.Next(); ok; m, ok = e.Next() {
				if name := plain(m); name != "text" {
					held = "response_modalities " + name
				}
			}
		}
	}
	if w.Err() != nil {
		return nil, ErrRequest
	}
	if input == nil && held == "" {
		return nil, ErrInput
	}
	if readFormat(r, format); format == nil && plain(mime) == "application/json" {
		r.Structured, r.Schema = true, []byte("{}")
	}
	r.Kept = kept || held == "background"
	if r.Unsplicable = held; held == "" && kept {
		r.Unsplicable = "stored interaction"
	}
	if s := jsonwalk.Last(input); typeOf(s) == "model_output" {
		r.Prefill = textOf(jsonwalk.Get(s, "content"))
	}
	return r, nil
}

func readConfig(r *dialect.Request, config []byte) {
	w := jsonwalk.Members(config)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "max_output_tokens":
			if n, ok := jsonwalk.Int(val); ok && n > 0 {
				r.MaxTokens = n
			}
		case "stop_sequences":
			e := jsonwalk.Elements(val)
			for s, ok := e.Next(); ok; s, ok = e.Next() {
				if word := plain(s); word != "" {
					r.Stops = append(r.Stops, word)
				}
			}
		case "thinking_level":
			r.Thinking = true
		case "tool_choice":
			r.ForcedTool = string(val) == `"any"` || string(jsonwalk.Get(val, "allowed_tools", "mode")) == `"any"`
		}
	}
}

// readTools: functions are the caller's; searching and reading have no effects;
// whatever else there is runs at the provider and may have some.
func readTools(r *dialect.Request, val []byte) {
	e := jsonwalk.Elements(val)
	for tool, ok := e.Next(); ok; tool, ok = e.Next() {
		switch typ := typeOf(tool); typ {
		case "function", "computer_use":
			r.Tools = true
		case "google_search", "google_maps", "url_context", "file_search", "retrieval":
		default:
			r.HostedTools = append(r.HostedTools, typ)
		}
	}
}

// readFormat reads response_format: one format, a list of them, or (the older
// preview) a bare schema.
func readFormat(r *dialect.Request, val []byte) {
	e := jsonwalk.Elements(val)
	for f, ok := e.Next(); ok; f, ok = e.Next() {
		readFormat(r, f)
	}
	if jsonwalk.KindOf(val) != jsonwalk.KindObject {
		return
	}
	schema, mime := jsonwalk.Get(val, "schema"), plain(jsonwalk.Get(val, "mime_type"))
	switch typ := typeOf(val); {
	case typ == "text" && (schema != nil || strings.Contains(mime, "json")):
		r.Structured = true
		if r.Schema = schema; schema == nil {
			r.Schema = []byte("{}")
		}
	case typ != "text" && typ != "image" && typ != "audio" && typ != "video":
		r.Structured, r.Schema = true, val
	}
}

func typeOf(obj []byte) string {
	if jsonwalk.KindOf(obj) != jsonwalk.KindObject {
		return ""
	}
	return plain(jsonwalk.Get(obj, "type"))
}

// textOf is the decoded text of a list of content.
func textOf(list []byte) (text []byte) {
	e := jsonwalk.Elements(list)
	for c, ok := e.Next(); ok; c, ok = e.Next() {
		if typeOf(c) == "text" {
			body, _ := jsonwalk.String(jsonwalk.Get(c, "text"))
			text = jsonwalk.Unescape(text, body)
		}
	}
	return text
}

// Repair implements dialect.Dialect: thought steps under the drop mark are taken out
// of the input.
func (Dialect) Repair(body []byte) []byte {
	if !jsonwalk.Has(body, turn.DropMark) {
		return body
	}
	input := jsonwalk.Get(body, "input")
	out := []byte{'['}
	dropped := false
	e := jsonwalk.Elements(input)
	for s, ok := e.Next(); ok; s, ok = e.Next() {
		signature := plain(jsonwalk.Get(s, "signature"))
		if typeOf(s) == "thought" && strings.HasSuffix(signature, turn.DropMark) {
			dropped = true
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, s...)
	}
	if e.Err() != nil || !dropped {
		return body
	}
	return jsonwalk.SetMember(nil, body, "input", append(out, ']'))
}
