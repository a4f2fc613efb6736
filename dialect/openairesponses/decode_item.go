package openairesponses

import (
	"slices"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// itemAdded opens an item, and whatever its opening already says.
func (d *decoder) itemAdded(dst []turn.Delta, f *frame) ([]turn.Delta, error) {
	if f.item == nil {
		return dst, ErrItem
	}
	o, err := readItem(f.item)
	if err != nil {
		return dst, err
	}
	dst, it := d.openItem(dst, f, &o)
	return d.contents(dst, it, &o), nil
}

// openItem opens an item with its first block. The encrypted_content of an opening is partial and stays on the wire: it
// is nobody's signature (FIELD-REPORTS D7).
func (d *decoder) openItem(dst []turn.Delta, f *frame, o *opening) ([]turn.Delta, *wireItem) {
	index, ok := wireIndex(f.output)
	if !ok {
		if n := len(d.items); n > 0 {
			index = d.items[n-1].index + 1
		}
	}
	n := d.blocks
	d.blocks++
	d.calls = d.calls || o.kind == turn.Call || o.kind == turn.CustomCall
	d.items = append(d.items, wireItem{index: index, kind: o.kind, parts: []wirePart{{block: n, kind: o.kind}}})
	open := turn.Delta{Kind: turn.Open, Of: o.kind, Block: n, Index: index, ID: o.id, Name: o.name, Stage: added}
	if o.kind != turn.Reasoning {
		open.Raw = o.raw
	}
	return append(dst, open), &d.items[len(d.items)-1]
}

// contents says what an item holds in itself and no event has said: all of it, for a host that streams whole items.
func (d *decoder) contents(dst []turn.Delta, it *wireItem, o *opening) []turn.Delta {
	switch it.kind {
	case turn.Call, turn.CustomCall:
		if p := &it.parts[0]; spelled(o.typ) && !p.spoke && len(o.full) > 0 {
			p.spoke = true
			dst = append(dst, turn.Delta{Kind: turn.Text, Block: p.block, Text: o.full})
		}
	case turn.Prose, turn.Reasoning:
		dst = d.parts(dst, it, o.summary)
		dst = d.parts(dst, it, o.content)
	}
	return dst
}

func (d *decoder) parts(dst []turn.Delta, it *wireItem, raw []byte) []turn.Delta {
	es := jsonwalk.Elements(raw)
	for i := 0; ; i++ {
		v, ok := es.Next()
		if !ok {
			return dst
		}
		c, known := readPart(v)
		if !known && it.kind == turn.Prose {
			dst, _ = d.claimForeign(dst, it, v, i)
			continue
		}
		if !known || !siblings(c.kind, it.kind) || len(c.text) == 0 && len(it.parts) > i {
			continue
		}
		var p *wirePart
		if dst, p = d.claim(dst, it, c.kind, c.inner, i); !p.spoke && len(c.text) > 0 {
			dst = p.say(dst, c.text)
		}
	}
}

// claim returns the part at an index of an item, opening a block for one that has none.
func (d *decoder) claim(dst []turn.Delta, it *wireItem, kind turn.BlockKind, deep bool, index int) ([]turn.Delta, *wirePart) {
	for i := range it.parts {
		if p := &it.parts[i]; p.claimed && p.kind == kind && p.inner == deep && p.index == index {
			return dst, p
		}
	}
	p := wirePart{kind: kind, inner: deep, index: index, claimed: true}
	if first := &it.parts[0]; !first.claimed && first.kind == kind && !it.partsKnown() {
		p.block = first.block
		*first = p
		if deep {
			dst = append(dst, turn.Delta{Kind: turn.Text, Block: p.block, Stage: inner})
		}
		return dst, first
	}
	p.block = d.blocks
	d.blocks++
	it.parts = append(it.parts, p)
	open := turn.Delta{Kind: turn.Open, Of: kind, Block: p.block, Index: it.index, Stage: added, Part: siblings(kind, it.kind)}
	if deep {
		open.Stage |= inner
	}
	return append(dst, open), &it.parts[len(it.parts)-1]
}

// partsKnown reports whether a part of a known type stands behind the first block.
func (it *wireItem) partsKnown() bool {
	return slices.ContainsFunc(it.parts[1:], func(p wirePart) bool { return p.kind != turn.Unknown })
}

// claimForeign is claim for a part of a type unknown here.
func (d *decoder) claimForeign(dst []turn.Delta, it *wireItem, raw []byte, index int) ([]turn.Delta, *wirePart) {
	had := len(dst)
	dst, p := d.claim(dst, it, turn.Unknown, false, index)
	if len(dst) > had {
		open := &dst[had]
		open.Name, _ = jsonwalk.String(jsonwalk.Get(raw, "type"))
		open.Stage |= alien
		open.Part = true
	}
	return dst, p
}

func (p *wirePart) say(dst []turn.Delta, body []byte) []turn.Delta {
	p.spoke = true
	return append(dst, turn.Delta{Kind: turn.Text, Block: p.block, Text: body, Stage: part})
}

// locate returns the part that an event is about. Hosts may leave out the events that open items and parts.
func (d *decoder) locate(dst []turn.Delta, f *frame, kind turn.BlockKind, deep bool) ([]turn.Delta, *wirePart, error) {
	it := d.find(f)
	if it == nil {
		id, _ := jsonwalk.String(f.itemID)
		dst, it = d.openItem(dst, f, &opening{kind: kind, id: id})
	}
	if !siblings(kind, it.kind) {
		return dst, nil, ErrDeltaKind
	}
	dst, p := d.claim(dst, it, kind, deep, f.partIndex())
	return dst, p, nil
}

// delta decodes the event that most of a stream consists of.
func (d *decoder) delta(dst []turn.Delta, f *frame, kind turn.BlockKind, deep bool) ([]turn.Delta, error) {
	dst, p, err := d.locate(dst, f, kind, deep)
	if err != nil {
		return dst, err
	}
	if body, _ := jsonwalk.String(f.delta); len(body) > 0 {
		return p.say(dst, body), nil
	}
	return dst, nil
}

// told is a done event that repeats a part's text, and the end of the part.
func (d *decoder) told(dst []turn.Delta, f *frame, kind turn.BlockKind, deep bool) ([]turn.Delta, error) {
	dst, p, err := d.locate(dst, f, kind, deep)
	if err != nil {
		return dst, err
	}
	if body, _ := jsonwalk.String(f.full); !p.spoke && len(body) > 0 {
		dst = p.say(dst, body)
	}
	return append(dst, p.mark(told)), nil
}

// mark notes an event in a part's life that says nothing new.
func (p *wirePart) mark(bit uint8) turn.Delta {
	if bit == part {
		return turn.Delta{Kind: turn.Text, Block: p.block, Stage: bit}
	}
	p.ended = true
	return turn.Delta{Kind: turn.Close, Block: p.block, Stage: bit}
}

func (d *decoder) part(dst []turn.Delta, f *frame, data []byte, bit uint8) ([]turn.Delta, error) {
	c, known := readPart(f.part)
	if !known {
		return d.foreign(dst, f, data, bit), nil
	}
	if string(f.typ) == "response.reasoning_part.added" || string(f.typ) == "response.reasoning_part.done" {
		c.kind, c.inner = turn.Reasoning, true
	}
	dst, p, err := d.locate(dst, f, c.kind, c.inner)
	if err != nil {
		return dst, err
	}
	if !p.spoke && len(c.text) > 0 {
		dst = p.say(dst, c.text)
	}
	return append(dst, p.mark(bit)), nil
}

// foreign is an event that opens or closes a part of a type unknown here. In a message it is a block, since no
// continuation can be told of it; reasoning goes into none anyway.
func (d *decoder) foreign(dst []turn.Delta, f *frame, data []byte, bit uint8) []turn.Delta {
	it := d.find(f)
	if it == nil || it.kind != turn.Prose || jsonwalk.KindOf(f.part) != jsonwalk.KindObject {
		return d.other(dst, f, data)
	}
	dst, p := d.claimForeign(dst, it, f.part, f.partIndex())
	if p.ended {
		return append(dst, turn.Delta{Kind: turn.Opaque, Block: p.block, Raw: data})
	}
	dst = append(dst, turn.Delta{Kind: turn.Extra, Block: p.block, Raw: f.part, Keep: bit == shut, Stage: part | bit})
	if bit == shut {
		dst = append(dst, p.mark(0))
	}
	return dst
}

func (d *decoder) annotate(dst []turn.Delta, f *frame) ([]turn.Delta, error) {
	dst, p, err := d.locate(dst, f, turn.Prose, false)
	if err != nil {
		return dst, err
	}
	return append(dst, turn.Delta{Kind: turn.Extra, Block: p.block, Raw: f.annotation, Keep: f.annotation != nil}), nil
}

// call returns the call that an event is about.
func (d *decoder) call(dst []turn.Delta, f *frame) ([]turn.Delta, *wirePart, error) {
	it := d.find(f)
	if it == nil {
		return dst, nil, ErrItem
	}
	if it.kind != turn.Call && it.kind != turn.CustomCall {
		return dst, nil, ErrDeltaKind
	}
	return dst, &it.parts[0], nil
}

func (d *decoder) argue(dst []turn.Delta, f *frame) ([]turn.Delta, error) {
	dst, p, err := d.call(dst, f)
	if err != nil {
		return dst, err
	}
	body, ok := jsonwalk.String(f.delta)
	if !ok && jsonwalk.KindOf(f.delta) == jsonwalk.KindObject {
		// Some hosts send arguments as the object itself (FIELD-REPORTS C13); as text they are the same arguments.
		body = jsonwalk.Escape(nil, f.delta)
	}
	if len(body) == 0 {
		return dst, nil
	}
	p.spoke = true
	return append(dst, turn.Delta{Kind: turn.Text, Block: p.block, Text: body}), nil
}

func (d *decoder) argued(dst []turn.Delta, f *frame) ([]turn.Delta, error) {
	dst, p, err := d.call(dst, f)
	if err != nil {
		return dst, err
	}
	if body, _ := jsonwalk.String(f.full); !p.spoke && len(body) > 0 {
		p.spoke = true
		dst = append(dst, turn.Delta{Kind: turn.Text, Block: p.block, Text: body})
	}
	return append(dst, p.mark(told)), nil
}

// itemDone closes an item. One whose end was seen before brings the sum of it separately, since it is closed already.
func (d *decoder) itemDone(dst []turn.Delta, f *frame) ([]turn.Delta, error) {
	if f.item == nil {
		return dst, ErrItem
	}
	o, err := readItem(f.item)
	if err != nil {
		return dst, err
	}
	it := d.find(f)
	if it == nil || it.done && (it.kind != o.kind || f.output == nil) {
		dst, it = d.openItem(dst, f, &o)
	}
	if it.done {
		return dst, nil
	}
	it.done = true
	dst = d.contents(dst, it, &o)
	sum := it.parts[0].ended
	for i := range it.parts {
		end := turn.Delta{Kind: turn.Close, Block: it.parts[i].block}
		if i == 0 && !sum {
			end.Raw, end.Stage = o.raw, whole
		}
		dst = append(dst, end)
	}
	first := it.parts[0].block
	if it.kind == turn.Reasoning && len(o.signature) > 0 {
		dst = append(dst, turn.Delta{Kind: turn.Sign, Block: first, Text: o.signature})
	}
	if sum {
		dst = append(dst, turn.Delta{Kind: turn.Extra, Block: first, Raw: o.raw, Stage: whole, Sum: true})
	}
	return dst, nil
}
