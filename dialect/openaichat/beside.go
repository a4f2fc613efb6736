package openaichat

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// What stands beside the text of a block is noted as it came, for whoever is told the
// turn again. An annotation is noted as itself, an object; any other member as where it
// stood, its name and its value:
//
//	["delta","images",[…]]      ["choice","logprobs",{…}]      ["chunk","citations",[…]]
type beside struct {
	at     place
	member []byte // as the wire spells it
	value  []byte // raw
}

// place is the object that a member stands in.
type place string

const (
	inDelta  place = "delta"
	inChoice place = "choice"
	inChunk  place = "chunk"
)

// note puts an extra that is noted to a block.
func (d *Decoder) note(l *lane, block int, b beside) {
	raw := append([]byte(`["`), b.at...)
	raw = appendQuoted(append(raw, `",`...), b.member)
	raw = append(append(append(raw, ','), b.value...), ']')
	x := turn.Delta{Kind: turn.Extra, Choice: l.index, Block: block, Raw: raw}
	d.kept.Keep(&x, raw)
	d.put(x)
}

// readNote reads one of a block's notes.
func readNote(raw []byte) (b beside, annotation bool) {
	parts := jsonwalk.All(raw)
	if jsonwalk.KindOf(raw) != jsonwalk.KindArray || len(parts) != 3 {
		return beside{at: inDelta, member: nameAnnotations, value: appendList(nil, [][]byte{raw})}, true
	}
	at, _ := jsonwalk.String(parts[0])
	b.at, b.value = place(at), parts[2]
	b.member, _ = jsonwalk.String(parts[1])
	return b, false
}

// isBeside reports whether what is kept is a member, and not annotations.
func isBeside(raw []byte) bool { return len(raw) > 0 && raw[0] == '[' }

// besides renders what was noted of a block, a chunk for each. role says that the
// client is yet to learn who speaks.
func (w Wire) besides(dst []byte, head []byte, b *turn.Block, role bool) []byte {
	id := w.identify(head)
	for _, raw := range dialect.Noted(b.Notes, nil) {
		n, _ := readNote(raw)
		var delta []byte
		if role && !id.texts {
			delta = append(delta, `"role":"assistant"`...)
			role = false
		}
		if n.at == inDelta {
			if delta != nil {
				delta = append(delta, ',')
			}
			delta = appendMember(delta, string(n.member), n.value)
		}
		choices := id.choices(b.Choice, delta, nil, nil)
		if n.at == inDelta {
			choices = appendChoice(nil, b.Choice, delta, nil)
		}
		if n.at == inChoice {
			choice := jsonwalk.SetMember(nil, choices[1:len(choices)-1], string(n.member), n.value)
			choices = appendList(nil, [][]byte{choice})
		}
		if n.at != inChunk {
			dst = id.chunk(dst, choices, nil)
			continue
		}
		dst = id.chunkWith(dst, choices, n)
	}
	return dst
}

// cite notes what is said of a whole answer (the sources of Perplexity and xAI, which
// repeat the list in many chunks), once for each time that it changes, and only when
// there is an answer to attach it to.
func (d *Decoder) cite(c *chunk) {
	if len(c.beside) == 0 || len(d.lanes) == 0 {
		return
	}
	l := &d.lanes[0]
	if l.open < 0 || l.kind != turn.Prose {
		return
	}
	for _, b := range c.beside {
		if d.news(b) {
			d.note(l, l.open, b)
		}
	}
}

// news reports whether a member of the chunk is not what it was when it came last.
func (d *Decoder) news(b beside) bool {
	for i := range d.cited {
		if was := &d.cited[i]; bytes.Equal(was.member, b.member) {
			if bytes.Equal(was.value, b.value) {
				return false
			}
			was.value = bytes.Clone(b.value)
			return true
		}
	}
	d.cited = append(d.cited, beside{inChunk, bytes.Clone(b.member), bytes.Clone(b.value)})
	return true
}
