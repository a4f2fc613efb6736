package interactions

import (
	"bytes"
	"slices"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// cite moves the annotations of a text to where they stand in the client's, and leaves
// out those that the client has or whose text it does not have in this step. Their
// ranges count bytes of UTF-8. It reports whether any is left.
func (w *rewriter) cite(d *turn.Delta) bool {
	if d.Joint == nil {
		return true
	}
	var left [][]byte
	for _, note := range dialect.Noted(d.Raw, nil) {
		moved, ok := dialect.Moved(note, d.Joint.Block.Bytes, "start_index", "end_index")
		if ok && !w.cited(moved, d) {
			left = append(left, moved)
		}
	}
	d.Raw = bytes.Join(left, []byte{','})
	if raw := jsonwalk.Get(w.f.delta, "annotations"); raw != nil {
		w.patch(raw, slices.Concat([]byte{'['}, d.Raw, []byte{']'}))
	}
	return len(left) > 0
}

// cited reports whether the client has this annotation of text that it has.
func (w *rewriter) cited(note []byte, d *turn.Delta) bool {
	if d.Block >= len(w.said.Blocks) {
		return false
	}
	b, at := &w.said.Blocks[d.Block], span(note)
	return at.To <= int64(d.Joint.Before(b).Bytes) &&
		slices.ContainsFunc(dialect.Noted(b.Notes, note, "type", "url", "source", "document_uri", "file_name", "place_id"), func(n []byte) bool { return span(n).Meets(at) })
}

func span(note []byte) dialect.Range {
	at, _ := dialect.Span(note, "start_index", "end_index")
	return at
}
