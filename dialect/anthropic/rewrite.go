package anthropic

import (
	"bytes"
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Rewrite renders event e of a later attempt. What the event itself carries keeps its bytes, but for the block index and
// the text that was cut; a delta that the event has no place for (text of a start event whose block goes on in an older
// one) becomes an event of its own. message_start, empty deltas and everything skipped render as nothing; pings, unknown
// events and unknown members pass.
func (Dialect) Rewrite(dst []byte, _ *dialect.Request, e sse.Event, ds []turn.Delta, said *turn.Snapshot) []byte {
	f, err := readFrame(e.Data)
	if err != nil || silent(e.Data) {
		if string(e.Name) == "ping" {
			return append(dst, e.Raw...)
		}
		return dst
	}
	if f.typ == nil {
		f.typ = e.Name
	}
	r := rewriter{e: e, f: f, ds: ds, said: said}
	switch string(f.typ) {
	case "ping":
		return r.named(dst, e.Data)
	case "message_delta":
		return r.messageDelta(dst)
	}
	for i := range ds {
		dst = r.delta(dst, i)
	}
	return dst
}

// source is what makes two citations the same one: the passage of the document, whatever the cipher is by which the
// provider knows it. Citations name no place in the answer: they stand in the block whose text they are for, mostly
// before it.
var source = []string{
	"type", "cited_text", "url", "source", "file_id", "document_index", "search_result_index",
	"start_char_index", "start_page_number", "start_block_index",
}

// rewriter is one call of Rewrite.
type rewriter struct {
	e    sse.Event
	f    frame
	ds   []turn.Delta
	said *turn.Snapshot
	used bool // the event's own place for a delta is taken
}

// named renders data under the event's name; SDKs drop events without one (WIRE 3.2).
func (r *rewriter) named(dst, data []byte) []byte {
	name := string(r.e.Name)
	if name == "" {
		name = plain(r.f.typ)
	}
	if bytes.ContainsAny([]byte(name), "\r\n") {
		return dst
	}
	return sse.Append(dst, name, data)
}

// is reports whether the event is of a type and still has its one place.
func (r *rewriter) is(typ string) bool {
	return string(r.f.typ) == typ && r.f.index != nil && !r.used
}

func (r *rewriter) delta(dst []byte, i int) []byte {
	d := &r.ds[i]
	index, kind := r.place(d.Block)
	switch d.Kind {
	case turn.Open:
		return r.open(dst, i)
	case turn.Text, turn.Sign:
		if r.within(i) || len(d.Text) == 0 {
			return dst
		}
		if r.is("content_block_delta") {
			r.used = true
			return r.named(dst, r.reply(index, d.Text))
		}
		if d.Kind == turn.Sign {
			return blockDelta(dst, index, "signature_delta", "signature", d.Text)
		}
		typ, member := deltaType(kind)
		return blockDelta(dst, index, typ, member, d.Text)
	case turn.Extra:
		if d.Keep && dialect.Again(d, r.said, source...) {
			d.Kind = turn.Skip
			return dst
		}
		if r.is("content_block_delta") {
			r.used = true
			return r.named(dst, r.indexed(index))
		}
	case turn.Close:
		if r.is("content_block_stop") {
			r.used = true
			return r.named(dst, r.indexed(index))
		}
		return blockStop(dst, index)
	case turn.Terminal, turn.Fault:
		return r.named(dst, r.e.Data)
	case turn.Opaque:
		if r.f.index == nil || d.Block < 0 {
			return r.named(dst, r.e.Data)
		}
		return r.named(dst, r.indexed(index))
	case turn.Skip, turn.Head, turn.Pulse, turn.Count, turn.Finish:
	}
	return dst
}

// place returns the client's index and the kind of a block: one of said, or one that this very event opens.
func (r *rewriter) place(block int) (index int, kind turn.BlockKind) {
	for i := range r.ds {
		if d := &r.ds[i]; d.Kind == turn.Open && d.Block == block {
			return d.Index, d.Of
		}
	}
	if block >= 0 && block < len(r.said.Blocks) {
		b := &r.said.Blocks[block]
		return b.Index, b.Kind
	}
	return max(block, 0), turn.Prose
}

// within reports whether text i stands inside the opening of its block, so that open has rendered it.
func (r *rewriter) within(i int) bool {
	for j := i - 1; j >= 0; j-- {
		if d := &r.ds[j]; d.Kind == turn.Open && d.Block == r.ds[i].Block {
			return d.Raw != nil || string(r.f.typ) == "content_block_start"
		}
	}
	return false
}

func (r *rewriter) open(dst []byte, i int) []byte {
	d := &r.ds[i]
	if !r.is("content_block_start") || r.f.block == nil {
		raw := d.Raw
		if raw == nil {
			raw = openingOf(&turn.Block{Kind: d.Of, ID: plain(d.ID), Name: plain(d.Name)})
		}
		return blockStart(dst, d.Index, raw)
	}
	r.used = true
	block := r.f.block
	if d.Of == turn.Prose || d.Of == turn.Reasoning {
		_, member := deltaType(d.Of)
		block = r.withText(block, member, r.textOf(i, turn.Text))
		block = r.withText(block, "signature", r.textOf(i, turn.Sign))
	}
	patches := []jsonwalk.Patch{
		patch(r.e.Data, r.f.index, strconv.AppendInt(nil, int64(d.Index), 10)),
		patch(r.e.Data, r.f.block, block),
	}
	return r.named(dst, jsonwalk.ApplySorted(r.e.Data, patches))
}

// textOf joins what is left of the texts of kind k inside the opening i.
func (r *rewriter) textOf(i int, k turn.Kind) (body []byte) {
	for _, d := range r.ds[i+1:] {
		if d.Kind == k && d.Block == r.ds[i].Block {
			body = append(body, d.Text...)
		}
	}
	return body
}

// withText sets a member that is there and says something else.
func (r *rewriter) withText(block []byte, member string, body []byte) []byte {
	old, ok := jsonwalk.String(jsonwalk.Get(block, member))
	if !ok || bytes.Equal(old, body) {
		return block
	}
	return jsonwalk.SetMember(nil, block, member, append(append([]byte{'"'}, body...), '"'))
}

// reply is the event with another index and text.
func (r *rewriter) reply(index int, body []byte) []byte {
	p, err := readDelta(r.f.delta)
	if err != nil || p.value() == nil {
		return r.indexed(index)
	}
	return jsonwalk.ApplySorted(r.e.Data, []jsonwalk.Patch{
		patch(r.e.Data, r.f.index, strconv.AppendInt(nil, int64(index), 10)),
		patch(r.e.Data, p.value(), append(append([]byte{'"'}, body...), '"')),
	})
}

func (r *rewriter) indexed(index int) []byte {
	return jsonwalk.ApplySorted(r.e.Data, []jsonwalk.Patch{patch(r.e.Data, r.f.index, strconv.AppendInt(nil, int64(index), 10))})
}

func patch(data, value, with []byte) jsonwalk.Patch {
	at := jsonwalk.Offset(data, value)
	return jsonwalk.Patch{At: at, End: at + len(value), With: with}
}

// messageDelta renders the message's one message_delta: two would be joined or summed by some SDKs (WIRE 3.2), so a
// usage record without the finish is not rendered.
func (r *rewriter) messageDelta(dst []byte) []byte {
	var count turn.Usage
	finish := false
	for i := range r.ds {
		switch d := &r.ds[i]; d.Kind {
		case turn.Count:
			count = d.Usage
		case turn.Finish:
			finish = true
		}
	}
	if !finish {
		return dst
	}
	if !count.Known {
		count = r.said.Usage
	}
	usage := r.usage(count)
	if r.f.usage == nil {
		return r.named(dst, jsonwalk.SetMember(nil, r.e.Data, "usage", usage))
	}
	return r.named(dst, jsonwalk.ApplySorted(r.e.Data, []jsonwalk.Patch{patch(r.e.Data, r.f.usage, usage)}))
}

// usage is the event's usage record made the whole message's: the numbers are the merged ones, the prompt's are those of
// the first attempt's message_start. iterations lists this attempt alone, and one SDK sums it (WIRE 3.2), so it goes
// unless the client has seen one.
func (r *rewriter) usage(u turn.Usage) []byte {
	raw := r.f.usage
	if jsonwalk.KindOf(raw) != jsonwalk.KindObject {
		raw = []byte("{}")
	}
	first := jsonwalk.Get(r.said.Head, "message", "usage")
	if jsonwalk.Get(first, "iterations") == nil && jsonwalk.Get(r.said.Usage.Raw, "iterations") == nil {
		raw = jsonwalk.DeleteMember(nil, raw, "iterations")
	}
	for _, m := range [...]string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation"} {
		if v := jsonwalk.Get(first, m); v != nil && jsonwalk.Get(raw, m) != nil {
			raw = jsonwalk.SetMember(nil, raw, m, v)
		}
	}
	if !u.Known {
		return raw
	}
	if u.Input > 0 && jsonwalk.Get(raw, "input_tokens") != nil {
		raw = jsonwalk.SetMember(nil, raw, "input_tokens", strconv.AppendInt(nil, u.Input, 10))
	}
	return jsonwalk.SetMember(nil, raw, "output_tokens", strconv.AppendInt(nil, u.Output, 10))
}
