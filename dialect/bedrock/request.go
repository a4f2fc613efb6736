package bedrock

import (
	"errors"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// Why a request is relayed unprotected.
var (
	ErrRequest  = errors.New("converse request: not a json object")
	ErrMessages = errors.New("converse request: no messages array") // a stored prompt (its ARN as the model) has none
)

// Parse implements [dialect.Dialect]. Model and Stream stand in the path, see ParseAt; here the request counts as one
// that streams. It reads what recovery needs and checks nothing else.
func (Converse) Parse(body []byte) (*dialect.Request, error) {
	r := &dialect.Request{Body: body, N: 1, Stream: true, IncludeUsage: true}
	var messages []byte
	w := jsonwalk.Checked(body)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch {
		case jsonwalk.KeyIs(k, "messages"):
			messages = v
		case jsonwalk.KeyIs(k, "inferenceConfig"):
			r.MaxTokens, _ = jsonwalk.Int(jsonwalk.Get(v, "maxTokens"))
			for _, s := range jsonwalk.All(jsonwalk.Get(v, "stopSequences")) {
				if word := plain(s); word != "" {
					r.Stops = append(r.Stops, word)
				}
			}
		case jsonwalk.KeyIs(k, "toolConfig"):
			readTools(r, v)
		case jsonwalk.KeyIs(k, "outputConfig"):
			readFormat(r, jsonwalk.Get(v, "textFormat"))
		case jsonwalk.KeyIs(k, "additionalModelRequestFields"):
			readModelFields(r, v)
		}
	}
	if w.Err() != nil {
		return nil, ErrRequest
	}
	if jsonwalk.KindOf(messages) != jsonwalk.KindArray {
		return nil, ErrMessages
	}
	r.Prefill = trailingText(jsonwalk.Last(messages))
	return r, nil
}

// readTools: a toolSpec is the caller's to run. A systemTool runs at AWS; grounding only searches, whatever else there
// is, or will be, may have effects.
func readTools(r *dialect.Request, config []byte) {
	for _, tool := range jsonwalk.All(jsonwalk.Get(config, "tools")) {
		if jsonwalk.Get(tool, "toolSpec") != nil {
			r.Tools = true
		}
		if name := plain(jsonwalk.Get(tool, "systemTool", "name")); name != "" && name != "nova_grounding" {
			r.HostedTools = append(r.HostedTools, name)
		}
	}
	choice := jsonwalk.Get(config, "toolChoice")
	r.ForcedTool = jsonwalk.Get(choice, "any") != nil || jsonwalk.Get(choice, "tool") != nil
}

// readFormat reads outputConfig.textFormat, whose schema is a JSON document in a string.
func readFormat(r *dialect.Request, format []byte) {
	if plain(jsonwalk.Get(format, "type")) != "json_schema" {
		return
	}
	r.Structured = true
	r.Schema = []byte(plain(jsonwalk.Get(format, "structure", "jsonSchema", "schema")))
	if !jsonwalk.Valid(r.Schema) {
		r.Schema = []byte("{}")
	}
}

// readModelFields reads what is passed on to the model as its own wire spells it; these are Anthropic's members.
func readModelFields(r *dialect.Request, fields []byte) {
	typ := plain(jsonwalk.Get(fields, "thinking", "type"))
	r.Thinking = typ == "enabled" || typ == "adaptive"
	for _, tool := range jsonwalk.All(jsonwalk.Get(fields, "tools")) {
		r.Tools = r.Tools || plain(jsonwalk.Get(tool, "name")) != ""
	}
	for _, format := range [][]byte{jsonwalk.Get(fields, "output_format"), jsonwalk.Get(fields, "output_config", "format")} {
		if plain(jsonwalk.Get(format, "type")) == "json_schema" {
			r.Structured, r.Schema = true, jsonwalk.Get(format, "schema")
		}
	}
}

// trailingText is the text that ends the caller's own trailing assistant message.
func trailingText(last []byte) (out []byte) {
	if plain(jsonwalk.Get(last, "role")) != "assistant" {
		return nil
	}
	for _, block := range jsonwalk.All(jsonwalk.Get(last, "content")) {
		body, isText := jsonwalk.String(jsonwalk.Get(block, "text"))
		if !isText {
			out = nil
			continue
		}
		out = jsonwalk.Unescape(out, body)
	}
	return out
}
