package openairesponses

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

var _ dialect.Upgrader = Dialect{}

// Upgrade implements [dialect.Upgrader]. A response in the background has an answer before it is made, which no stream
// tells.
func (Dialect) Upgrade(_ *dialect.Request, body []byte) (stream []byte, why string) {
	w := jsonwalk.Members(body)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch name := string(plainKey(key)); {
		case jsonwalk.IsNull(val), string(val) == "false":
		case name == "background", name == "stream_options":
			return nil, name
		}
	}
	stream = jsonwalk.SetMember(nil, body, "stream", []byte("true"))
	if stream == nil {
		return nil, "request"
	}
	return stream, ""
}

// StreamPath implements [dialect.Upgrader]: the body says it.
func (Dialect) StreamPath(path string) string { return path }

// NewFold implements [dialect.Upgrader].
func (Dialect) NewFold() dialect.Fold { return new(fold) }

// fold takes the response of the terminal event, which is the ordinary answer.
type fold struct{ whole []byte }

// Size implements [dialect.Fold].
func (f *fold) Size() int { return len(f.whole) }

// Add implements [dialect.Fold].
func (f *fold) Add(e sse.Event) {
	if jsonwalk.KindOf(e.Data) != jsonwalk.KindObject || !bytes.Contains(e.Data, []byte(`"response"`)) {
		return
	}
	switch text(jsonwalk.Get(e.Data, "type")) {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		f.whole = append(f.whole[:0], jsonwalk.Get(e.Data, "response")...)
	}
}

// Whole implements [dialect.Fold].
func (f *fold) Whole(dst []byte) (answer []byte, ok bool) {
	return append(dst, f.whole...), len(f.whole) > 0
}
