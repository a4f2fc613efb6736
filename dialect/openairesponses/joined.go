package openairesponses

import (
	"bytes"
	"slices"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// joined is the item of an output_item.done event as the client's: under the id it has there, with its parts joined. An
// item that no other attempt had a part in keeps its bytes.
func (r *rewriter) joined(n int) []byte {
	item := r.f.item
	b := &r.said.Blocks[first(r.said, n)]
	if own := jsonwalk.Get(item, "id"); !bytes.Equal(own, itemID(r.said, n)) && (b.Kind != turn.Reasoning || own == nil) {
		// Reasoning keeps the id that its encrypted_content was made for.
		item = jsonwalk.SetMember(nil, item, "id", itemID(r.said, n))
	}
	if !isPart(b.Kind) || b.Kind == turn.Reasoning {
		return slices.Clone(item)
	}
	content, changed := r.joinedRow(n, jsonwalk.All(jsonwalk.Get(item, "content")))
	if !changed {
		return slices.Clone(item)
	}
	return jsonwalk.SetMember(nil, item, "content", list(content))
}

// joinedRow puts a message's parts together: the event tells the last ones, said has all, in the order of the
// client's wire.
func (r *rewriter) joinedRow(n int, own [][]byte) (out [][]byte, changed bool) {
	var blocks []int
	for _, m := range parts(r.said, n) {
		if r.real(m) || foreign(&r.said.Blocks[m]) {
			blocks = append(blocks, m)
		}
	}
	rest := slices.Clone(own)
	for k := len(blocks) - 1; k >= 0; k-- {
		b := &r.said.Blocks[blocks[k]]
		var mine []byte
		for i := len(rest) - 1; i >= 0 && mine == nil; i-- {
			if _, known := readPart(rest[i]); known != foreign(b) {
				mine = rest[i]
				rest = slices.Delete(rest, i, i+1)
			}
		}
		if part := r.joinedWith(mine, blocks[k]); part != nil {
			out = append(out, part)
		}
	}
	slices.Reverse(rest)
	out = append(out, rest...)
	slices.Reverse(out)
	return out, !slices.EqualFunc(out, own, bytes.Equal)
}

// joinedWith is block n as a part, in the bytes of the event's own part where that tells all of it.
func (r *rewriter) joinedWith(own []byte, n int) []byte {
	b, all := &r.said.Blocks[n], r.wire.text(n)
	switch c, _ := readPart(own); {
	case own == nil && foreign(b) && len(b.Notes) == 0:
		return nil // it never got an end
	case own == nil:
		return partOf(b, all, b.Notes)
	case foreign(b):
		return own
	case bytes.Equal(c.text, all) && (len(b.Notes) == 0 || bytes.Equal(jsonwalk.Get(own, "annotations"), list([][]byte{b.Notes}))):
		return own
	}
	return joinedPart(own, b, all)
}

// joinedPart is a part of a later attempt with all of its text, and with the annotations of all of it.
func joinedPart(raw []byte, b *turn.Block, all []byte) []byte {
	c, _ := readPart(raw)
	member := "text"
	if b.Kind == turn.Refusal {
		member = "refusal"
	}
	out := jsonwalk.SetMember(nil, raw, member, quoted(all))
	if notes := jsonwalk.Get(raw, "annotations"); notes != nil {
		if len(b.Notes) > 0 {
			notes = list([][]byte{b.Notes})
		} else if by := runes(all) - runes(c.text); by != 0 {
			var own [][]byte
			for _, note := range jsonwalk.All(notes) {
				if note, ok := shifted(note, by); ok {
					own = append(own, note)
				}
			}
			notes = list(own)
		}
		out = jsonwalk.SetMember(nil, out, "annotations", notes)
	}
	if !bytes.Equal(c.text, all) && filled(jsonwalk.Get(raw, "logprobs")) {
		out = jsonwalk.SetMember(nil, out, "logprobs", []byte("[]")) // they told of another text
	}
	return out
}

// cited is an annotation of a later attempt as one of b's text. ok is false for one that the client has, or whose text it
// does not have in b: an attempt that repeats what was said cites it again.
func cited(annotation []byte, b *turn.Block, j *turn.Joint) (moved []byte, ok bool) {
	if j == nil {
		return annotation, true
	}
	if moved, ok = shifted(annotation, j.Block.Chars); !ok {
		return nil, false
	}
	at := span(moved)
	known := at.To <= int64(j.Before(b).Chars) &&
		slices.ContainsFunc(dialect.Noted(b.Notes, moved, "type", "url", "file_id", "container_id"), func(n []byte) bool { return span(n).Meets(at) })
	return moved, !known
}

// span is the range of an annotation's text in code points; files are cited at a point.
func span(annotation []byte) dialect.Range {
	if at, ok := dialect.Span(annotation, "index", "index"); ok {
		return at
	}
	at, _ := dialect.Span(annotation, "start_index", "end_index")
	return at
}

// shifted moves an annotation's place in the text by some code points. The index of a cited file is the place for its
// mark, and nothing else.
func shifted(annotation []byte, by int) (moved []byte, ok bool) {
	if moved, ok = dialect.Moved(annotation, by, "start_index", "end_index"); !ok {
		return nil, false
	}
	return dialect.Moved(moved, by, "index", "index")
}
