package openairesponses

import (
	"bytes"
	"strconv"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// wire renders events of one message. It keeps said.Seq and the stages of said's blocks, which no fold tells it about.
type wire struct {
	dst  []byte
	said *turn.Snapshot
	// more is text of this event that is not yet folded.
	more []turn.Delta
}

// numbered reports whether the client's events have numbers.
func numbered(said *turn.Snapshot) bool {
	return said.Seq > 0 || said.Head == nil || jsonwalk.Get(said.Head, "sequence_number") != nil
}

// begin starts the data of an event of our own.
func (w *wire) begin(typ string) []byte {
	data := append([]byte(`{"type":"`), typ...)
	data = append(data, '"')
	if numbered(w.said) {
		w.said.Seq++
		data = append(data, `,"sequence_number":`...)
		data = strconv.AppendInt(data, w.said.Seq, 10)
	}
	return data
}

func (w *wire) end(typ string, data []byte) { w.dst = sse.Append(w.dst, typ, append(data, '}')) }

// edited renders an event of a later attempt with some of its values replaced.
func (w *wire) edited(e sse.Event, f *frame, patches ...jsonwalk.Patch) {
	name := string(e.Name)
	if name == "" {
		name = plain(f.typ)
	}
	if bytes.ContainsAny([]byte(name), "\r\n") {
		return
	}
	var n []byte
	if numbered(w.said) {
		w.said.Seq++
		n = strconv.AppendInt(nil, w.said.Seq, 10)
	}
	if n != nil && f.seq != nil {
		patches = append(patches, patch(e.Data, f.seq, n))
	}
	data := jsonwalk.ApplySorted(e.Data, patches)
	switch {
	case n != nil && f.seq == nil:
		data = jsonwalk.SetMember(nil, data, "sequence_number", n)
	case n == nil && f.seq != nil:
		data = jsonwalk.DeleteMember(nil, data, "sequence_number")
	}
	w.dst = sse.Append(w.dst, name, data)
}

// text is the whole text of block n, that of this event included.
func (w *wire) text(n int) []byte {
	body := w.said.Blocks[n].Text
	for i := range w.more {
		if d := &w.more[i]; d.Kind == turn.Text && d.Block == n && len(d.Text) > 0 {
			body = append(body[:len(body):len(body)], d.Text...)
		}
	}
	return body
}

// first returns the first block of the item that block n belongs to.
func first(said *turn.Snapshot, n int) int {
	for m := range said.Blocks[:n] {
		if said.Blocks[m].Index == said.Blocks[n].Index {
			return m
		}
	}
	return n
}

// parts lists the blocks of the item that block n belongs to.
func parts(said *turn.Snapshot, n int) (blocks []int) {
	for m := range said.Blocks {
		if said.Blocks[m].Index == said.Blocks[n].Index {
			blocks = append(blocks, m)
		}
	}
	return blocks
}

// real reports whether block n is a part on the client's wire, not only the room that was made for one.
func (w *wire) real(n int) bool {
	return stage(&w.said.Blocks[n])&part != 0 || len(w.text(n)) > 0
}

// place returns the index of part n in its own row.
func (w *wire) place(n int) (at int) {
	b := &w.said.Blocks[n]
	for m := range w.said.Blocks[:n] {
		if o := &w.said.Blocks[m]; o.Index == b.Index && o.Stage&inner == b.Stage&inner && w.real(m) {
			at++
		}
	}
	return at
}

// itemID is the id of the item that block n belongs to, as a value.
func itemID(said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[first(said, n)]
	if raw := jsonwalk.Get(b.Raw, "id"); jsonwalk.KindOf(raw) == jsonwalk.KindString {
		return raw
	}
	return ownID(said, b)
}

// ownID is the id of an item whose opening holds none.
func ownID(said *turn.Snapshot, b *turn.Block) []byte {
	if b.ID != "" && !b.IsCall() {
		return quote(b.ID)
	}
	return quote(newID(said, b))
}

// newID makes an id for an item that came without one: the same each time it is asked for.
func newID(said *turn.Snapshot, b *turn.Block) string {
	prefix := "item_"
	switch b.Kind {
	case turn.Prose, turn.Refusal:
		prefix = "msg_"
	case turn.Reasoning:
		prefix = "rs_"
	case turn.Call:
		prefix = "fc_"
	case turn.CustomCall:
		prefix = "ctc_"
	}
	id := text(jsonwalk.Get(said.Head, "response", "id"))
	id = string(bytes.TrimPrefix([]byte(id), []byte("resp_")))
	return prefix + id + "_" + strconv.Itoa(b.Index)
}

// address appends where block n is: its item, and its place in it.
func (w *wire) address(data []byte, n int) []byte {
	b := &w.said.Blocks[n]
	data = append(append(data, `,"item_id":`...), itemID(w.said, n)...)
	data = append(data, `,"output_index":`...)
	data = strconv.AppendInt(data, int64(b.Index), 10)
	if isPart(b.Kind) || foreign(b) {
		data = append(data, `,"`+placeMember(b)+`":`...)
		data = strconv.AppendInt(data, int64(w.place(n)), 10)
	}
	return data
}

func placeMember(b *turn.Block) string {
	if b.Kind == turn.Reasoning && b.Stage&inner == 0 {
		return "summary_index"
	}
	return "content_index"
}

// addressed are the patches that put an event of a later attempt at block n.
func (w *wire) addressed(e sse.Event, f *frame, n int) (ps []jsonwalk.Patch) {
	b := &w.said.Blocks[n]
	if f.output != nil {
		ps = append(ps, patch(e.Data, f.output, strconv.AppendInt(nil, int64(b.Index), 10)))
	}
	if f.itemID != nil {
		ps = append(ps, patch(e.Data, f.itemID, itemID(w.said, n)))
	}
	at := f.content
	if placeMember(b) == "summary_index" {
		at = f.summary
	}
	if at != nil && (isPart(b.Kind) || foreign(b)) {
		ps = append(ps, patch(e.Data, at, strconv.AppendInt(nil, int64(w.place(n)), 10)))
	}
	return ps
}

// names are the events of a kind of block: what carries its text, what repeats it, and the member it is repeated in.
func names(b *turn.Block) (delta, full, member string) {
	switch b.Kind {
	case turn.Refusal:
		return "response.refusal.delta", "response.refusal.done", "refusal"
	case turn.Reasoning:
		if b.Stage&inner != 0 {
			return "response.reasoning_text.delta", "response.reasoning_text.done", "text"
		}
		return "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "text"
	case turn.Call:
		return "response.function_call_arguments.delta", "response.function_call_arguments.done", "arguments"
	case turn.CustomCall:
		return "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", "input"
	}
	return "response.output_text.delta", "response.output_text.done", "text"
}

// mark notes that block n has come as far as bits. What it had before it was opened again does not count, and neither
// does what its item had then.
func (w *wire) mark(n int, bits uint8) {
	b := &w.said.Blocks[n]
	if b.Stage = stage(b) | bits; isPart(b.Kind) && bits&told != 0 {
		w.said.Blocks[first(w.said, n)].Stage &^= whole
	}
}

// itemAdded renders the opening of the item that block n begins.
func (w *wire) itemAdded(n int, item []byte) {
	w.mark(n, added)
	data := append(w.begin("response.output_item.added"), `,"output_index":`...)
	data = strconv.AppendInt(data, int64(w.said.Blocks[n].Index), 10)
	w.end("response.output_item.added", append(append(data, `,"item":`...), item...))
}

// partAdded renders the opening of part n, if the client does not have it.
func (w *wire) partAdded(n int) {
	b := &w.said.Blocks[n]
	if stage(b)&part != 0 {
		return
	}
	typ := "response.content_part.added"
	if placeMember(b) == "summary_index" {
		typ = "response.reasoning_summary_part.added"
	}
	data := append(w.address(w.begin(typ), n), `,"part":`...)
	w.mark(n, part)
	w.end(typ, append(data, partOf(b, nil, nil)...))
}

// delta renders text of block n.
func (w *wire) delta(n int, body []byte) {
	typ, _, _ := names(&w.said.Blocks[n])
	data := append(w.address(w.begin(typ), n), `,"delta":`...)
	data = append(data, quoted(body)...)
	if w.said.Blocks[n].Kind == turn.Prose {
		data = append(data, `,"logprobs":[]`...)
	}
	w.end(typ, data)
}

// told renders the repetition of block n's text, if the client does not have it.
func (w *wire) told(n int) {
	b := &w.said.Blocks[n]
	if stage(b)&told != 0 {
		return
	}
	w.mark(n, told)
	_, typ, member := names(b)
	data := append(w.address(w.begin(typ), n), `,"`+member+`":`...)
	data = append(data, quoted(w.text(n))...)
	switch b.Kind {
	case turn.Prose:
		data = append(data, `,"logprobs":[]`...)
	case turn.Call:
		data = append(append(data, `,"name":`...), quote(b.Name)...)
	}
	w.end(typ, data)
}

// shut renders the end of part n, if the client does not have it.
func (w *wire) shut(n int) {
	b := &w.said.Blocks[n]
	if stage(b)&shut != 0 {
		return
	}
	w.mark(n, shut)
	typ := "response.content_part.done"
	if placeMember(b) == "summary_index" {
		typ = "response.reasoning_summary_part.done"
	}
	data := append(w.address(w.begin(typ), n), `,"part":`...)
	w.end(typ, append(data, partOf(b, w.text(n), b.Notes)...))
}

// itemDone renders the end of the item that block n belongs to, and keeps the item as what its provider made of it.
func (w *wire) itemDone(n int, item []byte) {
	f := first(w.said, n)
	b := &w.said.Blocks[f]
	w.mark(f, whole)
	b.Raw = item
	data := append(w.begin("response.output_item.done"), `,"output_index":`...)
	data = strconv.AppendInt(data, int64(b.Index), 10)
	w.end("response.output_item.done", append(append(data, `,"item":`...), item...))
}
