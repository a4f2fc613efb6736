package openairesponses

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Fail renders the nested `error` event, which SDKs raise on, then response.failed, which Codex does (WIRE 1.2, 3.3;
// FIELD-REPORTS E2). Of a provider's own error the data is kept. Nothing is closed: an open item has no end.
//
// The second event says that the first was sent, so that nobody reads two failures.
func (Dialect) Fail(dst []byte, said *turn.Snapshot, f dialect.Failure) []byte {
	if said == nil {
		said = &turn.Snapshot{}
	}
	w := wire{dst: dst, said: said}
	own := sse.Event{Name: []byte("error"), Data: f.Raw}
	parsed, err := readFrame(own)
	switch {
	case err == nil && string(parsed.typ) == "response.failed":
		own.Name = parsed.typ
		w.edited(own, &parsed)
		return w.dst
	case err == nil && len(f.Raw) > 0 && jsonwalk.Valid(f.Raw):
		w.edited(own, &parsed)
	default:
		data := append(w.begin("error"), `,"error":`...)
		w.end("error", append(data, errorObject(f)...))
	}
	if said.Head == nil {
		return w.dst
	}
	data := append(w.begin("response.failed"), `,"error_sent":true,"response":`...)
	w.end("response.failed", append(data, w.responseOf(nil,
		field{"status", quote("failed")},
		field{"error", object([]field{{"code", quote(codeOf(f))}, {"message", quote(explain(f))}})},
	)...))
	return w.dst
}

// ErrorBody is the protocol's error body and its status. A provider's own error goes out as it is.
func (Dialect) ErrorBody(f dialect.Failure) (status int, body []byte) {
	if status = f.Status; status == 0 {
		status = 502
	}
	if e := jsonwalk.Get(f.Raw, "error"); jsonwalk.KindOf(e) == jsonwalk.KindObject {
		return status, object([]field{{"error", e}})
	}
	return status, object([]field{{"error", errorObject(f)}})
}

func errorObject(f dialect.Failure) []byte {
	typ := f.Type
	if typ == "" {
		typ = "server_error"
	}
	return object([]field{
		{"type", quote(typ)}, {"code", quote(codeOf(f))}, {"message", quote(explain(f))}, {"param", []byte("null")},
	})
}

func codeOf(f dialect.Failure) string {
	switch {
	case f.Code != "":
		return f.Code
	case f.Type != "":
		return f.Type
	}
	return "server_error"
}

// explain says what happened and why it was not healed (FIELD-REPORTS E6), behind the provider's own words.
func explain(f dialect.Failure) string {
	msg := f.Message
	if msg == "" {
		msg = "the provider's stream was interrupted"
	}
	switch {
	case f.Cause != "" && f.Reason != "":
		return msg + " (cause: " + f.Cause + ", not recovered: " + f.Reason + ")"
	case f.Cause != "":
		return msg + " (cause: " + f.Cause + ")"
	case f.Reason != "":
		return msg + " (not recovered: " + f.Reason + ")"
	}
	return msg
}
