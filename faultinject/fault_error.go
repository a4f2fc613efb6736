package faultinject

import (
	"fmt"
	"sort"
	"strings"
)

// errorKind is one failure in the vocabulary of both dialects.
type errorKind struct {
	name     string
	status   int
	messages string // Anthropic's error.type
	chat     string // OpenAI's error.type
	code     string // OpenAI's error.code
	text     string
}

// errorKinds lists what providers report inside a 200 stream or by status
// (WIRE 1.1, 1.3). The first row of a status gives that status its words.
var errorKinds = []errorKind{
	{"overloaded", 529, "overloaded_error", "server_error", "overloaded", "Overloaded"},
	{"api", 500, "api_error", "server_error", "server_error", "Internal server error"},
	{"timeout", 504, "timeout_error", "server_error", "timeout", "Request timed out"},
	{"unavailable", 503, "overloaded_error", "server_error", "service_unavailable", "The server is overloaded or not ready yet."},
	{"rate-limit", 429, "rate_limit_error", "rate_limit_error", "rate_limit_exceeded", "This request would exceed your rate limit. Please try again later."},
	{"quota", 429, "rate_limit_error", "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."},
	{"invalid", 400, "invalid_request_error", "invalid_request_error", "", "The request is not valid."},
	{"context", 400, "invalid_request_error", "invalid_request_error", "context_length_exceeded", "prompt is too long: 210000 tokens > 200000 maximum"},
	{"policy", 400, "invalid_request_error", "invalid_request_error", "content_policy_violation", "Output blocked by content filtering policy"},
	{"auth", 401, "authentication_error", "invalid_request_error", "invalid_api_key", "invalid x-api-key"},
	{"billing", 402, "billing_error", "insufficient_quota", "billing_not_active", "Your credit balance is too low."},
	{"permission", 403, "permission_error", "invalid_request_error", "permission_denied", "Your API key does not have permission to use the specified resource."},
	{"not-found", 404, "not_found_error", "invalid_request_error", "model_not_found", "The model does not exist."},
	{"too-large", 413, "request_too_large", "invalid_request_error", "", "Request exceeds the maximum size"},
}

// InBand sends an error inside the 200 stream and ends it (FIELD-REPORTS E1).
type InBand struct {
	At    At
	Kind  string // name of an errorKind
	Shape string // one of errorShapes; empty is the dialect's first-party form
}

// errorShapes are the ways Chat servers say it; Messages has only one.
var errorShapes = []string{"frame", "named", "done", "chunk", "finish", "resource", "groq"}

// Next implements Fault.
func (f InBand) Next(p Position, chunk []byte) Action {
	return f.At.cut(p, chunk, Step{Write: f.event(p)}, Step{End: EndPolite})
}

func (f InBand) event(p Position) []byte {
	var k errorKind
	for _, e := range errorKinds {
		if e.name == f.Kind {
			k = e
		}
	}
	if p.Dialect == Messages {
		return frame(Variant{}, "error", fmt.Sprintf(`{"type":"error","error":{"type":%s,"message":%s},"request_id":%s}`, quote(k.messages), quote(k.text), quote("req_"+p.ID)))
	}
	object := fmt.Sprintf(`{"message":%s,"type":%s,"param":null,"code":%s}`, quote(k.text), quote(k.chat), orNull(k.code))
	head := fmt.Sprintf(`{"id":%s,"object":"chat.completion.chunk","created":1770853433,"model":%s,`, quote(p.ID), quote(p.Model))
	finish := func(reason, native, more string) []byte {
		return frame(Variant{}, "", fmt.Sprintf(`%s"choices":[{"index":0,"delta":{},"finish_reason":%s%s}]%s}`, head, reason, native, more))
	}
	switch f.Shape {
	case "named": // some servers name the event
		return frame(Variant{}, "error", `{"error":`+object+`}`)
	case "done": // vLLM, SGLang: then [DONE] in a 200 stream
		return append(frame(Variant{}, "", `{"error":`+object+`}`), frame(Variant{}, "", "[DONE]")...)
	case "chunk": // OpenRouter: an ordinary chunk with a top-level error, then [DONE]
		return append(finish("null", `,"native_finish_reason":null`, fmt.Sprintf(`,"error":{"code":%d,"message":%s}`, k.status, quote(k.text))), frame(Variant{}, "", "[DONE]")...)
	case "finish": // a failure behind a finish (FIELD-REPORTS E3)
		return append(finish(`"error"`, `,"native_finish_reason":"network_error"`, ""), frame(Variant{}, "", "[DONE]")...)
	case "resource": // DeepSeek
		return append(finish(`"insufficient_system_resource"`, "", ""), frame(Variant{}, "", "[DONE]")...)
	case "groq": // Groq: named event, the status inside
		return frame(Variant{}, "error", fmt.Sprintf(`{"error":{"message":%s,"type":%s,"code":%s,"status_code":%d}}`, quote(k.text), quote(k.chat), orNull(k.code), k.status))
	default:
		return frame(Variant{}, "", `{"error":`+object+`}`)
	}
}

// parseInBand reads "error [KIND] [as SHAPE] [where]".
func parseInBand(w *words) (Fault, error) {
	f := InBand{Kind: "overloaded"}
	var names []string
	for _, k := range errorKinds {
		names = append(names, k.name)
		if w.take(k.name) {
			f.Kind = k.name
		}
	}
	sort.Strings(names)
	if w.take("as") {
		for _, s := range errorShapes {
			if w.take(s) {
				f.Shape = s
			}
		}
		if f.Shape == "" {
			return nil, w.wrong("error as", strings.Join(errorShapes, ", "))
		}
	}
	if word := w.peek(); word != "" && !placeWord(word) {
		return nil, fmt.Errorf("unknown error kind %q: use one of %s", word, strings.Join(names, ", "))
	}
	var err error
	f.At, err = w.atBody()
	return f, err
}
