package gemini

import (
	"errors"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// Why a request is relayed unprotected.
var (
	ErrRequest  = errors.New("request is not a json object")
	ErrContents = errors.New("request has no contents array")
)

// is reports whether a key is a field's name. The wire is proto JSON, which takes
// the name in camelCase and as the proto spells it.
func is(key []byte, camel string) bool {
	at := 0
	for _, c := range []byte(camel) {
		if at < len(key) && key[at] == '_' {
			if at++; c < 'A' || c > 'Z' {
				return false
			}
			c += 'a' - 'A'
		}
		if at == len(key) || key[at] != c {
			return false
		}
		at++
	}
	return at == len(key)
}

// Parse implements dialect.Dialect. Model and Stream stand in the path, see
// ParseAt; here the request counts as one that streams. Members that are not known
// are the provider's to judge.
func (grammar) Parse(body []byte) (*dialect.Request, error) {
	r := &dialect.Request{Body: body, N: 1, Stream: true, IncludeUsage: true}
	var contents []byte
	w := jsonwalk.Members(body)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch {
		case jsonwalk.IsNull(val):
		case is(key, "contents"):
			contents = val
		case is(key, "generationConfig"):
			readConfig(r, val)
		case is(key, "tools"):
			readTools(r, val)
		case is(key, "toolConfig"):
			readChoice(r, val)
		case is(key, "continuationToken"):
			// The caller goes on from a checkpoint: what the answer begins
			// with is in none of our hands.
			r.Unsplicable = "continuationToken"
		}
	}
	if w.Err() != nil {
		return nil, ErrRequest
	}
	if jsonwalk.KindOf(contents) != jsonwalk.KindArray {
		return nil, ErrContents
	}
	r.Prefill = trailingModel(jsonwalk.Last(contents))
	return r, nil
}

func readConfig(r *dialect.Request, config []byte) {
	var mime string
	var open, strict []byte // responseSchema, responseJsonSchema
	w := jsonwalk.Members(config)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch {
		case jsonwalk.IsNull(val):
		case is(key, "candidateCount"):
			if n, ok := jsonwalk.Int(val); ok && n > 1 {
				r.N = int(n)
			}
		case is(key, "maxOutputTokens"):
			if n, ok := jsonwalk.Int(val); ok && n > 0 {
				r.MaxTokens = n
			}
		case is(key, "responseLogprobs"):
			yes, _ := jsonwalk.Bool(val)
			r.Logprobs = r.Logprobs || yes
		case is(key, "stopSequences"):
			r.Stops = readStops(val)
		case is(key, "responseMimeType"):
			mime = plain(val)
		case is(key, "responseSchema"):
			open = val
		case is(key, "responseJsonSchema"), string(key) == "_responseJsonSchema":
			strict = val
		case is(key, "responseModalities"):
			readModalities(r, val)
		case is(key, "thinkingConfig"):
			r.Thinking = string(jsonwalk.Get(val, "thinkingBudget")) != "0"
		}
	}
	switch {
	case mime == "text/x.enum":
		r.Unsplicable = "responseMimeType text/x.enum" // a grammar, and no JSON (WIRE 2.3)
	case strict != nil:
		r.Structured, r.Schema = true, strict
	case open != nil:
		r.Structured, r.Schema = true, jsonSchema(open)
	case mime == "application/json":
		r.Structured, r.Schema = true, anyJSON
	}
}

func readStops(val []byte) (stops []string) {
	e := jsonwalk.Elements(val)
	for s, ok := e.Next(); ok; s, ok = e.Next() {
		if word := plain(s); word != "" {
			stops = append(stops, word)
		}
	}
	return stops
}

// readModalities: pictures and speech are parts that cannot be continued.
func readModalities(r *dialect.Request, val []byte) {
	e := jsonwalk.Elements(val)
	for m, ok := e.Next(); ok; m, ok = e.Next() {
		switch name := plain(m); name {
		case "", "TEXT", "MODALITY_UNSPECIFIED":
		default:
			r.Unsplicable = "responseModalities " + name
		}
	}
}

// readTools: function declarations are the caller's to run, and so are the calls
// of computerUse, which is a set of declarations with a model behind it. Searching
// and reading have no effects; whatever else there is runs at the provider and may
// have some (code, MCP servers, a tool of a later year).
func readTools(r *dialect.Request, val []byte) {
	e := jsonwalk.Elements(val)
	for tool, ok := e.Next(); ok; tool, ok = e.Next() {
		w := jsonwalk.Members(tool)
		for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
			switch {
			case jsonwalk.IsNull(val):
			case is(key, "functionDeclarations"):
				r.Tools = r.Tools || filled(val)
			case is(key, "computerUse"):
				r.Tools = true
			case effectless(key):
			default:
				r.HostedTools = append(r.HostedTools, string(key))
			}
		}
	}
}

func effectless(key []byte) bool {
	for _, name := range [...]string{"googleSearch", "googleSearchRetrieval", "enterpriseWebSearch", "urlContext", "fileSearch",
		"googleMaps", "retrieval", "parallelAiSearch", "exaAiSearch"} {
		if is(key, name) {
			return true
		}
	}
	return false
}

func readChoice(r *dialect.Request, config []byte) {
	w := jsonwalk.Members(config)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if is(key, "functionCallingConfig") {
			r.ForcedTool = string(jsonwalk.Get(val, "mode")) == `"ANY"`
		}
	}
}

// trailingModel is the decoded text of a content that the model is to go on with:
// the text behind its last part of another kind. Content of anybody else is none.
func trailingModel(content []byte) (text []byte) {
	if string(jsonwalk.Get(content, "role")) != `"model"` {
		return nil
	}
	e := jsonwalk.Elements(jsonwalk.Get(content, "parts"))
	for raw, ok := e.Next(); ok; raw, ok = e.Next() {
		switch p, err := readPart(raw); {
		case err == nil && p.kind == answer:
			text = jsonwalk.Unescape(text, p.text)
		case err == nil && (p.kind == thought || p.kind == inert):
		default:
			text = nil
		}
	}
	return text
}
