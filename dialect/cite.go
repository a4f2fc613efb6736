package dialect

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Range is a place in a text, in a dialect's units: without its end, or a point.
type Range struct{ From, To int64 }

// Span is the range that two members of an annotation name.
func Span(annotation []byte, from, to string) (r Range, ok bool) {
	r.From, _ = jsonwalk.Int(jsonwalk.Get(annotation, from)) // proto's JSON leaves a 0 out
	r.To, ok = jsonwalk.Int(jsonwalk.Get(annotation, to))
	return r, ok
}

// Meets reports whether both are the same place or have text in common.
func (r Range) Meets(o Range) bool { return r == o || r.From < o.To && o.From < r.To }

// Moved is an annotation whose place in the text is moved: the range of the members from
// and to, or the point that both name. A range without extent is none, hosts send 0 and
// 0 for a place that they do not know, and stays. ok is false for one that would lie
// before the text: the client's has no such place.
func Moved(annotation []byte, by int, from, to string) (moved []byte, ok bool) {
	r, known := Span(annotation, from, to)
	if by == 0 || !known || from != to && r.To <= r.From {
		return annotation, true
	}
	r.From, r.To = r.From+int64(by), r.To+int64(by)
	if r.To < 0 || from != to && r.To == 0 {
		return annotation, false
	}
	moved = jsonwalk.SetMember(nil, annotation, to, strconv.AppendInt(nil, r.To, 10))
	if from != to && (r.From > 0 || jsonwalk.Get(annotation, from) != nil) {
		moved = jsonwalk.SetMember(nil, moved, from, strconv.AppendInt(nil, max(0, r.From), 10))
	}
	return moved, true
}

// Noted returns those of notes (kept extras: raw values, a comma between two) that name
// the same source as note: that agree with it in all of those members, present or not. A
// note that has none of them names no source. Without members they are all of notes.
func Noted(notes, note []byte, source ...string) (same [][]byte) {
	named := len(source) == 0 || slices.ContainsFunc(source, func(m string) bool { return jsonwalk.Get(note, m) != nil })
	if len(notes) == 0 || !named {
		return nil
	}
	return slices.DeleteFunc(jsonwalk.All(slices.Concat([]byte{'['}, notes, []byte{']'})), func(n []byte) bool {
		return slices.ContainsFunc(source, func(m string) bool { return !bytes.Equal(jsonwalk.Get(n, m), jsonwalk.Get(note, m)) })
	})
}

// Again reports whether d is an extra that the client has: of a block that goes on, or of
// text that the attempt says again. It is for extras that name no place in the text.
func Again(d *turn.Delta, said *turn.Snapshot, source ...string) bool {
	if d.Joint == nil {
		return false
	}
	for n := range said.Blocks {
		b := &said.Blocks[n]
		about := n == d.Block && d.Joint.Had > 0 || d.Joint.Repeats
		if about && b.Live() && len(Noted(b.Notes, d.Raw, source...)) > 0 {
			return true
		}
	}
	return false
}
