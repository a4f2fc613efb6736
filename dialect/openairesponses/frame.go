package openairesponses

import (
	"bytes"
	"math"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

// frame holds the top-level members of an event that matter, raw. typ is the escaped body of the type.
type frame struct {
	typ                      []byte
	seq                      []byte
	output, content, summary []byte // output_index, content_index, summary_index
	itemID                   []byte
	item, part, delta        []byte
	full                     []byte // what a done event repeats: text, arguments, input or refusal
	annotation, place        []byte // annotation, annotation_index
	logprobs                 []byte
	response, fault          []byte
	code, message            []byte // of a flat error
	repeats                  []byte // error_sent
}

// readFrame walks an event's data once.
func readFrame(e sse.Event) (frame, error) {
	var f frame
	w := jsonwalk.Members(e.Data)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch string(plainKey(k)) {
		case "type":
			f.typ, _ = jsonwalk.String(v)
		case "sequence_number":
			f.seq = v
		case "output_index":
			f.output = v
		case "content_index":
			f.content = v
		case "summary_index":
			f.summary = v
		case "item_id":
			f.itemID = v
		case "item":
			f.item = v
		case "part":
			f.part = v
		case "delta":
			f.delta = v
		case "text", "arguments", "input", "refusal":
			f.full = v
		case "annotation":
			f.annotation = v
		case "annotation_index":
			f.place = v
		case "logprobs":
			f.logprobs = v
		case "response":
			f.response = v
		case "error":
			f.fault = v
		case "code":
			f.code = v
		case "message":
			f.message = v
		case "error_sent":
			f.repeats = v
		}
	}
	if w.Err() != nil {
		return frame{}, ErrJSON
	}
	if f.typ == nil {
		f.typ = e.Name
	}
	return f, nil
}

// silent reports whether an event has no data to speak of: comments, empty data, and the `data: : keepalive` that some
// gateways send (FIELD-REPORTS B7).
func silent(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) == 0 || data[0] == ':'
}

// done reports whether the data is the end marker of the chat dialect, which some hosts send here, too.
func done(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

func wireIndex(raw []byte) (int, bool) {
	n, ok := jsonwalk.Int(raw)
	if !ok || n < 0 || n > math.MaxInt32 {
		return 0, false
	}
	return int(n), true
}

// number reads a sequence number; 0 for an event without one.
func number(raw []byte) int64 {
	n, ok := jsonwalk.Int(raw)
	if !ok || n < 0 || n > math.MaxInt32 {
		return 0
	}
	return n
}

// partIndex is the index of the part that an event is about, in its own row of parts.
func (f *frame) partIndex() int {
	raw := f.content
	if f.summary != nil {
		raw = f.summary
	}
	n, _ := wireIndex(raw)
	return n
}
