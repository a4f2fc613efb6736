package openairesponses

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Replay renders response.created as the provider sent it, and the items behind it, numbered from there. It puts parts
// back into their items: whoever left blocks out of said has counted an index for each of them.
func (Dialect) Replay(dst []byte, _ *dialect.Request, said *turn.Snapshot) []byte {
	f, err := readFrame(sse.Event{Data: said.Head})
	if err != nil {
		return dst
	}
	w := wire{dst: sse.Append(dst, plain(f.typ), said.Head), said: said}
	said.Seq = number(f.seq)
	index := -1
	for n := range said.Blocks {
		b := &said.Blocks[n]
		switch {
		case n > 0 && foreign(b), n > 0 && furtherPart(b) && (foreign(&said.Blocks[n-1]) || siblings(said.Blocks[n-1].Kind, b.Kind)):
		default:
			index++
		}
		b.Index = index
	}
	for n := range said.Blocks {
		if first(said, n) == n && said.Blocks[n].Live() {
			w.replay(n)
		}
	}
	return w.dst
}

// furtherPart reports whether a block opened inside an item that was there already: it has no opening of its own.
func furtherPart(b *turn.Block) bool { return isPart(b.Kind) && len(b.Raw) == 0 && b.ID == "" }

// replay renders the item that begins with block n, as far as it goes.
func (w *wire) replay(n int) {
	b := &w.said.Blocks[n]
	summed, closed := b.Stage&whole != 0, true
	blocks := parts(w.said, n)
	wasReal := make([]bool, len(blocks))
	for i, m := range blocks {
		wasReal[i] = w.real(m)
		closed = closed && w.said.Blocks[m].Closed
	}
	for _, m := range blocks {
		w.said.Blocks[m].Stage &= inner | alien
	}
	w.itemAdded(n, w.opened(n))
	for i, m := range blocks {
		p := &w.said.Blocks[m]
		switch {
		case foreign(p):
			w.foreignPart(m)
			continue
		case isPart(p.Kind) && wasReal[i]:
			w.partAdded(m)
		case !p.IsCall() || !streams(p):
			continue
		}
		if len(p.Text) > 0 {
			w.delta(m, p.Text)
		}
		if p.Closed {
			w.told(m)
			if isPart(p.Kind) {
				w.shut(m)
			}
		}
	}
	switch {
	case b.Kind == turn.Reasoning && !summed:
		w.drop(n)
	case !closed:
	case summed && jsonwalk.KindOf(b.Raw) == jsonwalk.KindObject:
		w.itemDone(n, b.Raw)
	case isPart(b.Kind), b.IsCall() && b.Complete():
		w.itemDone(n, w.itemOf(n, "completed"))
	}
}

// foreignPart renders a part of a type unknown here, whole. One that did not come to its end is nothing to tell.
func (w *wire) foreignPart(n int) {
	b := &w.said.Blocks[n]
	if len(b.Notes) == 0 {
		return
	}
	for _, e := range [...]struct {
		typ string
		bit uint8
	}{{"response.content_part.added", part}, {"response.content_part.done", shut}} {
		data := append(w.address(w.begin(e.typ), n), `,"part":`...)
		w.mark(n, e.bit)
		w.end(e.typ, append(data, b.Notes...))
	}
}
