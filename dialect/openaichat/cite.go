package openaichat

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// cite keeps what of an extra's annotations is for the client. Their ranges count code
// points of the answer (WIRE 1.1); hosts that know no place say 0 and 0. One that an
// attempt makes again, of text that it says again, the client has.
func (w *rewriter) cite(l *left, d *turn.Delta) {
	j := d.Joint
	for _, note := range jsonwalk.All(append(append([]byte{'['}, d.Raw...), ']')) {
		if j == nil {
			l.notes = append(l.notes, note)
			continue
		}
		kind, ok := jsonwalk.String(jsonwalk.Get(note, "type"))
		source := jsonwalk.Get(note, string(kind))
		moved, there := dialect.Moved(source, j.Answer.Chars, "start_index", "end_index")
		switch {
		case !ok || jsonwalk.KindOf(source) != jsonwalk.KindObject:
			l.notes = append(l.notes, note)
		case there && !w.cited(string(kind), moved, d):
			l.notes = append(l.notes, jsonwalk.SetMember(nil, note, string(kind), moved))
		}
	}
	d.Raw = bytes.Join(l.notes, []byte{','})
	d.Keep = len(l.notes) > 0
}

// cited reports whether the client has this annotation of text that it has.
func (w *rewriter) cited(kind string, source []byte, d *turn.Delta) bool {
	at, _ := dialect.Span(source, "start_index", "end_index")
	if at.To > int64(d.Joint.Said.Chars) {
		return false
	}
	for i := range w.said.Blocks {
		for _, n := range dialect.Noted(w.said.Blocks[i].Notes, nil) {
			was := jsonwalk.Get(n, kind)
			place, _ := dialect.Span(was, "start_index", "end_index")
			if place.Meets(at) && bytes.Equal(jsonwalk.Get(was, "url"), jsonwalk.Get(source, "url")) {
				return true
			}
		}
	}
	return false
}

func appendList(dst []byte, values [][]byte) []byte {
	return append(append(append(dst, '['), bytes.Join(values, []byte{','})...), ']')
}
