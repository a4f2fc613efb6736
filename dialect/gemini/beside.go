package gemini

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// note notes what stands beside the parts of a candidate, as an object of its members,
// for whoever is told the turn again. What comes with every chunk as it came before is
// noted once.
func (d *Decoder) note(l *lane, c *candidate, raw, data []byte) {
	n := l.last
	if n < 0 {
		n = d.flow(l, turn.Prose)
	}
	x := turn.Delta{Kind: turn.Extra, Choice: l.index, Block: n, Raw: data}
	if beside := besides(raw, c.finish != nil); !bytes.Equal(beside, l.noted) {
		l.noted = beside
		d.kept.Keep(&x, beside)
	}
	d.put(x)
}

// besides is an object of those members of a candidate that stand beside its parts; all
// tells whether of those that say nothing of the text, too, which come with the end.
func besides(raw []byte, all bool) []byte {
	out := []byte{'{'}
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if isExtra(key) && filled(val) || all && isRemark(key) && !jsonwalk.IsNull(val) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(append(append(out, '"'), key...), `":`...), val...)
		}
	}
	return append(out, '}')
}

// isRemark reports whether a candidate's member is about it as a whole and no extra of
// its text.
func isRemark(key []byte) bool {
	switch string(key) {
	case "content", "index", "finishReason", "continuationToken":
		return false
	}
	return !isExtra(key)
}

// notes renders what was noted of a block, a chunk for each.
func notes(dst []byte, said *turn.Snapshot, id *identity, b *turn.Block) []byte {
	for _, n := range dialect.Noted(b.Notes, nil) {
		c := id.chunk(b.Choice, textPart(nil), "", nil)
		list := jsonwalk.Get(c, "candidates")
		with := list[1 : len(list)-1]
		w := jsonwalk.Members(n)
		for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
			with = jsonwalk.SetMember(nil, with, string(key), val)
		}
		with = append(append([]byte{'['}, with...), ']')
		dst = frame(dst, said, nil, jsonwalk.SetMember(nil, c, "candidates", with))
	}
	return dst
}
