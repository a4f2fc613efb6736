package faultinject

import (
	"fmt"
	"sort"
	"strings"
)

// errorKind is one failure in the vocabulary of each provider.
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

// errorShapes are the ways servers say it: raw is Gemini's, flat, alone and
// failed are Responses', the others Chat's. A dialect that does not know one
// says it in its own way.
var errorShapes = []string{"frame", "named", "done", "chunk", "finish", "resource", "groq", "raw", "flat", "alone", "failed"}

// Next implements Fault.
func (f InBand) Next(p Position, chunk []byte) Action {
	return f.At.cut(p, chunk, Step{Write: f.event(p, chunk)}, Step{End: EndPolite})
}

func (f InBand) event(p Position, chunk []byte) []byte {
	var k errorKind
	for _, e := range errorKinds {
		if e.name == f.Kind {
			k = e
		}
	}
	return p.Dialect.speaker().inBand(f, k, p, chunk)
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
