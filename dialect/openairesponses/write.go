package openairesponses

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Emit renders a complete call, whole and closed, as the provider would have. Anything else renders nothing.
func (Dialect) Emit(dst []byte, _ *dialect.Request, said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[n]
	if !b.IsCall() || !b.Complete() {
		return dst
	}
	w := wire{dst: dst, said: said}
	summed := b.Stage&whole != 0
	b.Stage = 0
	w.itemAdded(n, w.opened(n))
	if streams(b) {
		if args := arguments(b); len(args) > 0 {
			w.delta(n, args)
		}
		w.told(n)
	}
	item := b.Raw
	if !summed {
		item = w.itemOf(n, "completed")
	}
	w.itemDone(n, item)
	return w.dst
}

// streams reports whether the input of a call travels in events of its own.
func streams(b *turn.Block) bool {
	typ, ok := jsonwalk.String(jsonwalk.Get(b.Raw, "type"))
	return !ok || spelled(typ)
}

// CloseBlock renders what is missing of the end of block n, and of its item if the other parts have theirs. An
// unfinished call stays open, since its end would make it runnable; so does an item that runs at the provider, since
// nobody knows what became of it. Open reasoning gets the mark.
func (d Dialect) CloseBlock(dst []byte, said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[n]
	w := wire{dst: dst, said: said}
	switch {
	case b.IsCall():
		if b.Complete() {
			w.closeCall(n)
		}
	case b.Kind == turn.Reasoning && !b.Closed:
		return d.DropReasoning(dst, said, n)
	case b.Kind == turn.Prose, b.Kind == turn.Refusal:
		w.closePart(n)
		w.closeMessage(n)
	case foreign(b):
		w.closeMessage(n) // what nobody knows gets no end of ours
	}
	return w.dst
}

func (w *wire) closeCall(n int) {
	b := &w.said.Blocks[n]
	if streams(b) {
		w.told(n)
	}
	if b.Stage&whole == 0 {
		w.itemDone(n, w.itemOf(n, "completed"))
	}
}

// closePart renders the end of part n, if it is one.
func (w *wire) closePart(n int) {
	if w.real(n) {
		w.partAdded(n)
		w.told(n)
		w.shut(n)
	}
}

// closeMessage renders the end of the item of part n, unless another part is still open or it has its end.
func (w *wire) closeMessage(n int) {
	for _, m := range parts(w.said, n) {
		if m != n && !w.said.Blocks[m].Closed {
			return
		}
	}
	if f := first(w.said, n); f == n || stage(&w.said.Blocks[f])&whole == 0 {
		if stage(&w.said.Blocks[f])&whole == 0 {
			w.itemDone(n, w.itemOf(n, "completed"))
		}
	}
}

// DropReasoning closes the open reasoning item of block n under the mark. Nothing is rendered for any other block, or for
// a further part of that item.
func (Dialect) DropReasoning(dst []byte, said *turn.Snapshot, n int) []byte {
	w := wire{dst: dst, said: said}
	if b := &said.Blocks[n]; b.Kind == turn.Reasoning && !b.Closed {
		w.drop(n)
	}
	return w.dst
}

// drop closes the reasoning item of block n under the mark, and withdraws all of its parts.
func (w *wire) drop(n int) {
	f := first(w.said, n)
	if w.said.Blocks[f].Withdrawn {
		return
	}
	all := parts(w.said, n)
	for _, m := range all {
		w.closePart(m)
	}
	w.itemDone(n, jsonwalk.SetMember(nil, w.itemOf(n, "completed"), "encrypted_content", quote(turn.DropMark)))
	for _, m := range all {
		b := &w.said.Blocks[m]
		b.Closed, b.Withdrawn = true, true
		b.Signature = append(b.Signature[:0], turn.DropMark...)
	}
}

// dropDangling drops reasoning items whose parts all ended and which did not: relay takes a closed block for done.
func (w *wire) dropDangling() {
	for n := range w.said.Blocks {
		b := &w.said.Blocks[n]
		if b.Kind != turn.Reasoning || b.Withdrawn || !b.Closed || w.said.Blocks[first(w.said, n)].Stage&whole != 0 {
			continue
		}
		open := false
		for _, m := range parts(w.said, n) {
			open = open || !w.said.Blocks[m].Closed
		}
		if !open {
			w.drop(n)
		}
	}
}

// Heartbeat is a comment line and no blank line, which some decoders would dispatch as an empty event (FIELD-REPORTS
// B5). A client that counts only events as life gets `keepalive` under the last number, as OpenAI sends it (WIRE 1.2,
// 3.5): the number is not used up, for it stands for nothing.
func (Dialect) Heartbeat(dst []byte, req *dialect.Request, said *turn.Snapshot) []byte {
	if req == nil || !req.Keepalive {
		return sse.AppendComment(dst, " keep-alive")
	}
	return sse.Append(dst, "keepalive", object([]field{{"type", quote("keepalive")}, {"sequence_number", decimal(said.Seq)}}))
}

// Retract renders the announcements of mode "events" (DESIGN §5). Strict SDKs report an unknown event type, which is
// why the mode is asked for by the caller.
func (Dialect) Retract(dst []byte, said *turn.Snapshot, n int, reason string) []byte {
	w := wire{dst: dst, said: said}
	if n < 0 {
		data := append(w.begin("stream_reset"), `,"reason":`...)
		w.end("stream_reset", append(data, quote(reason)...))
		return w.dst
	}
	b := &said.Blocks[n]
	data := append(append(w.begin("tool_call_cancel"), `,"id":`...), quote(b.ID)...)
	data = append(append(data, `,"name":`...), quote(b.Name)...)
	data = append(append(data, `,"reason":`...), quote(reason)...)
	w.end("tool_call_cancel", data)
	return w.dst
}
