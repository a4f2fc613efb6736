package openairesponses

import (
	"bytes"
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Rewrite renders event e of a later attempt. What the event itself carries keeps its bytes, but for its number, its
// place and the text that was cut; done events repeat the joined text; a terminal event gets the whole response. Events
// that open or close what the client has open or closed render as nothing, and so do response.created and its like.
//
// It places parts: relay counts an index per block, and a part stands in its item. It keeps said.Seq and stages of said.
func (Dialect) Rewrite(dst []byte, _ *dialect.Request, e sse.Event, ds []turn.Delta, said *turn.Snapshot) []byte {
	r := rewriter{wire: wire{dst: dst, said: said}, e: e, ds: ds, base: len(said.Blocks)}
	var err error
	switch r.f, err = readFrame(e); {
	case done(e.Data):
		r.marker()
	case err != nil || silent(e.Data):
	default:
		r.event()
	}
	r.settle()
	return r.dst
}

// rewriter is one call of Rewrite. Blocks that the event opens stand behind base of said.Blocks while it lasts.
type rewriter struct {
	wire
	e    sse.Event
	f    frame
	ds   []turn.Delta
	base int
	used bool // the event's own place for a text or an opening is taken
}

func (r *rewriter) marker() {
	for i := range r.ds {
		if r.ds[i].Kind == turn.Terminal {
			r.dst = append(r.dst, r.e.Raw...)
		}
	}
}

func (r *rewriter) event() {
	switch string(r.f.typ) {
	case "response.created", "response.in_progress", "response.queued":
	case "response.completed", "response.incomplete", "response.failed":
		r.terminal()
	case "keepalive", "ping":
		r.edited(r.e, &r.f)
	default:
		for i := range r.ds {
			r.delta(i)
			r.more = r.ds[:i+1]
		}
	}
}

// settle hands what became of new blocks to their deltas, and takes the blocks out again: relay folds them.
func (r *rewriter) settle() {
	n := r.base
	for i := range r.ds {
		d := &r.ds[i]
		if d.Kind == turn.Open && n < len(r.said.Blocks) && d.Block == n {
			b := &r.said.Blocks[n]
			if d.Stage, d.Index = b.Stage, b.Index; b.Stage&added != 0 && d.Raw == nil && len(d.ID) == 0 {
				d.ID = []byte(newID(r.said, b)) // an item of its own, so that it is not taken for a further part
			}
			n++
		}
		d.Seq = r.said.Seq
	}
	clear(r.said.Blocks[r.base:])
	r.said.Blocks = r.said.Blocks[:r.base]
}

func (r *rewriter) delta(i int) {
	d := &r.ds[i]
	if d.Kind == turn.Open {
		r.open(i)
		return
	}
	known := d.Block >= 0 && d.Block < len(r.said.Blocks)
	switch d.Kind {
	case turn.Text:
		if known {
			r.text(d)
		}
	case turn.Close:
		if known {
			r.close(d)
		}
	case turn.Extra:
		if known {
			r.extra(d)
		}
	case turn.Opaque:
		if known {
			r.edited(r.e, &r.f, r.addressed(r.e, &r.f, d.Block)...)
		} else {
			r.foreign()
		}
	case turn.Fault:
		r.edited(r.e, &r.f)
	case turn.Skip, turn.Head, turn.Open, turn.Sign, turn.Count, turn.Finish, turn.Terminal, turn.Pulse:
	}
}

// foreign renders an event that nobody here knows. One that has no number is not given one.
func (r *rewriter) foreign() {
	if r.f.seq != nil {
		r.edited(r.e, &r.f)
	} else if name := string(r.e.Name); !bytes.ContainsAny(r.e.Name, "\r\n") {
		r.dst = sse.Append(r.dst, name, r.e.Data)
	}
}

// open places a block that the client does not have yet.
func (r *rewriter) open(i int) {
	d := &r.ds[i]
	if d.Block != len(r.said.Blocks) {
		return
	}
	b := turn.Block{Kind: d.Of, Index: d.Index, ID: plain(d.ID), Name: plain(d.Name), Raw: d.Raw, Stage: d.Stage & (inner | alien)}
	if d.Part {
		r.said.Blocks = append(r.said.Blocks, b) // its own events follow
		return
	}
	prev := len(r.said.Blocks) - 1
	if d.Raw == nil && len(d.ID) == 0 && prev >= 0 && siblings(r.said.Blocks[prev].Kind, d.Of) &&
		r.said.Blocks[prev].Live() && !finished(r.said, prev) {
		b.Index = r.said.Blocks[prev].Index // a further part
		r.said.Blocks = append(r.said.Blocks, b)
		return
	}
	r.dropDangling()
	r.said.Blocks = append(r.said.Blocks, b)
	n := len(r.said.Blocks) - 1
	if string(r.f.typ) != "response.output_item.added" || r.used || r.f.output == nil {
		r.itemAdded(n, r.opened(n))
		return
	}
	r.used = true
	r.mark(n, added)
	ps := []jsonwalk.Patch{patch(r.e.Data, r.f.output, strconv.AppendInt(nil, int64(b.Index), 10))}
	for j := range r.ds[i+1:] {
		if t := &r.ds[i+1+j]; t.Kind == turn.Text && t.Block == n && len(t.Text) > 0 {
			ps = append(ps, patch(r.e.Data, r.f.item, r.opened(n))) // its text follows in events of its own
			break
		}
	}
	r.edited(r.e, &r.f, ps...)
}

// text renders new text, or one of the events around it that say nothing new.
func (r *rewriter) text(d *turn.Delta) {
	n := d.Block
	b := &r.said.Blocks[n]
	if len(d.Text) > 0 {
		if isPart(b.Kind) {
			r.partAdded(n)
		}
		r.words(d)
		return
	}
	switch d.Stage {
	case inner:
		r.mark(n, inner)
	case part:
		r.around(n, part)
	}
}

// words renders text in the event's own place, if it has one, else in an event of ours.
func (r *rewriter) words(d *turn.Delta) {
	typ, _, _ := names(&r.said.Blocks[d.Block])
	old, ok := jsonwalk.String(r.f.delta)
	if string(r.f.typ) != typ || r.used || !ok {
		r.wire.delta(d.Block, d.Text)
		return
	}
	r.used = true
	ps := r.addressed(r.e, &r.f, d.Block)
	if !bytes.Equal(old, d.Text) {
		ps = append(ps, patch(r.e.Data, r.f.delta, quoted(d.Text)))
		if jsonwalk.KindOf(r.f.logprobs) == jsonwalk.KindArray {
			ps = append(ps, patch(r.e.Data, r.f.logprobs, []byte("[]"))) // they told of another text
		}
	}
	r.edited(r.e, &r.f, ps...)
}

// repeat renders the done event of block n with all of its text.
func (r *rewriter) repeat(n int) {
	b := &r.said.Blocks[n]
	if stage(b)&told != 0 {
		return
	}
	_, typ, _ := names(b)
	old, ok := jsonwalk.String(r.f.full)
	if string(r.f.typ) != typ || !ok {
		r.told(n)
		return
	}
	ps := r.addressed(r.e, &r.f, n)
	if all := r.wire.text(n); !bytes.Equal(old, all) {
		ps = append(ps, patch(r.e.Data, r.f.full, quoted(all)))
		if jsonwalk.KindOf(r.f.logprobs) == jsonwalk.KindArray {
			ps = append(ps, patch(r.e.Data, r.f.logprobs, []byte("[]")))
		}
	}
	r.mark(n, told)
	r.edited(r.e, &r.f, ps...)
}

// around renders the event that opens or closes part n.
func (r *rewriter) around(n int, bit uint8) {
	b := &r.said.Blocks[n]
	if stage(b)&bit != 0 {
		return
	}
	c, ok := readPart(r.f.part)
	if !ok {
		if bit == part {
			r.partAdded(n)
		} else {
			r.shut(n)
		}
		return
	}
	ps := r.addressed(r.e, &r.f, n)
	var all []byte
	if bit == shut {
		all = r.wire.text(n)
	}
	if !bytes.Equal(c.text, all) || len(b.Notes) > 0 && bit == shut {
		ps = append(ps, patch(r.e.Data, r.f.part, joinedPart(r.f.part, b, all)))
	}
	r.mark(n, bit)
	r.edited(r.e, &r.f, ps...)
}

// close renders an event that closes a part or an item; output_item.done closes its parts without one.
func (r *rewriter) close(d *turn.Delta) {
	switch {
	case d.Stage&told != 0:
		r.repeat(d.Block)
	case d.Stage&shut != 0:
		r.around(d.Block, shut)
	case d.Stage&whole != 0:
		r.end(d)
	}
}

func (r *rewriter) extra(d *turn.Delta) {
	n := d.Block
	if d.Sum {
		r.end(d)
		return
	}
	ps := r.addressed(r.e, &r.f, n)
	if r.f.annotation != nil && d.Keep {
		ok := false
		if d.Raw, ok = cited(r.f.annotation, &r.said.Blocks[n], d.Joint); !ok {
			d.Kind = turn.Skip
			return
		}
		ps = append(ps, patch(r.e.Data, r.f.annotation, d.Raw))
		if r.f.place != nil {
			at := len(jsonwalk.All(list([][]byte{r.said.Blocks[n].Notes})))
			ps = append(ps, patch(r.e.Data, r.f.place, strconv.AppendInt(nil, int64(at), 10)))
		}
	}
	r.edited(r.e, &r.f, ps...)
}

// end renders output_item.done with the joined item, and keeps that as the item's sum.
func (r *rewriter) end(d *turn.Delta) {
	f := first(r.said, d.Block)
	b := &r.said.Blocks[f]
	if stage(b)&whole != 0 {
		d.Raw = bytes.Clone(r.said.Blocks[d.Block].Raw) // the client has the sum of it
		return
	}
	item := r.joined(d.Block)
	r.mark(f, whole)
	if f != d.Block {
		b.Raw = item
		item, d.Raw, d.Stage = b.Raw, bytes.Clone(r.said.Blocks[d.Block].Raw), d.Stage&^whole
	} else {
		d.Raw = item
	}
	ps := []jsonwalk.Patch{patch(r.e.Data, r.f.item, item)}
	if r.f.output != nil {
		ps = append(ps, patch(r.e.Data, r.f.output, strconv.AppendInt(nil, int64(b.Index), 10)))
	}
	r.edited(r.e, &r.f, ps...)
}

// terminal renders the one terminal event, with the response of all attempts.
func (r *rewriter) terminal() {
	count, finish := r.said.Usage, false
	for i := range r.ds {
		switch d := &r.ds[i]; d.Kind {
		case turn.Count:
			count = d.Usage
		case turn.Finish:
			finish = true
		}
	}
	if !finish || r.f.response == nil {
		return
	}
	r.dropDangling()
	r.endMessages()
	var set []field
	if usage := usageOf(jsonwalk.Get(r.f.response, "usage"), count); usage != nil {
		set = append(set, field{"usage", usage})
	}
	r.edited(r.e, &r.f, patch(r.e.Data, r.f.response, r.responseOf(r.f.response, set...)))
}

// endMessages ends the messages whose parts all ended and which did not: the item they came in has its end as another.
func (r *rewriter) endMessages() {
	for n := range r.said.Blocks {
		b := &r.said.Blocks[n]
		if first(r.said, n) == n && b.Live() && b.Closed && !finished(r.said, n) && (b.Kind == turn.Prose || b.Kind == turn.Refusal) {
			for _, m := range parts(r.said, n) {
				if isPart(r.said.Blocks[m].Kind) {
					r.closePart(m)
				}
			}
			r.closeMessage(n)
		}
	}
}
