package gemini

import (
	"bytes"
	"slices"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Decoder decodes one attempt.
type Decoder struct {
	choices    int
	identified bool
	id         []byte // responseId of the attempt, raw
	resumed    bool   // id is the first attempt's
	blocks     int
	calls      int // calls opened so far: the index of the next
	lanes      []lane
	out        []turn.Delta
	gap        int // boundaries between groups that no delta has followed yet
	kept       dialect.Keeping
	lost       error // a chunk broke off after it had changed the lanes
}

// lane is what is open in one candidate. Text and thoughts open with their first
// character and close when something else is said; everything closes at a finish.
type lane struct {
	index    int
	open     int // ordinal of the flowing block, -1: none
	last     int // ordinal of the last block that says something, -1: none
	kind     turn.BlockKind
	called   bool // a client-side call was said
	finished bool
	call     *streamed // a call whose arguments are still arriving
	noted    []byte    // what stood beside the parts when it was noted last
}

// Decode implements dialect.Decoder. In one chunk the order is: head, then for
// each candidate its parts and behind them what belongs to the candidate, then
// usage, then an error. A pulse stands between two parts of one chunk, and between
// the last of them and the rest, so that rewriting finds what is left of each; it
// says nothing to anybody else.
func (d *Decoder) Decode(dst []turn.Delta, e sse.Event) ([]turn.Delta, error) {
	d.out, d.gap = dst, 0
	err := d.decode(e)
	out := d.out
	d.out = nil
	if err != nil {
		if len(out) > len(dst) {
			d.lost = err
		}
		return dst, err
	}
	return out, nil
}

// put appends a delta that belongs to a group.
func (d *Decoder) put(x turn.Delta) {
	for ; d.gap > 0; d.gap-- {
		d.out = append(d.out, turn.Delta{Kind: turn.Pulse})
	}
	d.out = append(d.out, x)
}

func (d *Decoder) decode(e sse.Event) error {
	if e.Comment() {
		// Flex shedding appends an error to the stream as it would have sent it
		// as a body: no frame, over several lines (WIRE 1.4).
		if c, err := readChunk(bytes.TrimSpace(e.Stray())); err == nil && c.fault != nil {
			d.out = append(d.out, turn.Delta{Kind: turn.Fault, Fault: readFault(c.fault)})
		}
		return nil
	}
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0, data[0] == ':', string(data) == "[DONE]":
		d.out = append(d.out, turn.Delta{Kind: turn.Pulse})
		return nil
	case data[0] != '{':
		if !jsonwalk.Valid(data) {
			return ErrNotJSON
		}
		d.out = append(d.out, turn.Delta{Kind: turn.Opaque, Block: -1, Raw: data})
		return nil
	}
	if d.lost != nil {
		return d.lost
	}
	c, err := readChunk(data)
	if err != nil {
		return err
	}
	return d.chunk(&c, e, data)
}

func (d *Decoder) chunk(c *chunk, e sse.Event, data []byte) error {
	was := len(d.out)
	if !d.identified && c.identifies() {
		if d.identified = true; !d.resumed {
			d.id = bytes.Clone(c.id)
		}
		d.out = append(d.out, turn.Delta{Kind: turn.Head, Raw: headOf(data, e.Raw)})
	}
	if c.candidates != nil {
		es := jsonwalk.Elements(c.candidates)
		for raw, ok := es.Next(); ok; raw, ok = es.Next() {
			if err := d.candidate(raw, data, c.fault != nil); err != nil {
				return err
			}
		}
		if es.Err() != nil {
			return ErrMalformed
		}
	}
	d.blocked(c.feedback)
	if u, ok := readUsage(c.usage); ok {
		d.out = append(d.out, turn.Delta{Kind: turn.Count, Usage: u})
	}
	switch {
	case c.fault != nil:
		d.out = append(d.out, turn.Delta{Kind: turn.Fault, Fault: readFault(c.fault), Raw: data})
	case c.strange:
		d.out = append(d.out, turn.Delta{Kind: turn.Opaque, Block: -1, Raw: data})
	case len(d.out) == was:
		d.out = append(d.out, turn.Delta{Kind: turn.Pulse})
	}
	d.identify(was, data, e.Raw)
	return nil
}

// identify makes a chunk that says something the head of a message whose host gives
// it no identity. An empty chunk, as our heartbeat is, is nobody's head.
func (d *Decoder) identify(was int, data, raw []byte) {
	if d.identified || len(d.out) == was {
		return
	}
	for _, x := range d.out[was:] {
		switch x.Kind {
		case turn.Pulse, turn.Count, turn.Fault, turn.Opaque:
		default:
			d.identified = true
			d.out = slices.Insert(d.out, was, turn.Delta{Kind: turn.Head, Raw: headOf(data, raw)})
			return
		}
	}
}

// candidate reads one candidate. A failure in the chunk takes the meaning from its
// finish reason.
func (d *Decoder) candidate(raw, data []byte, failed bool) error {
	c, err := readCandidate(raw)
	if err != nil {
		return err
	}
	l := d.lane(c.index)
	if c.parts != nil {
		es := jsonwalk.Elements(c.parts)
		for p, ok := es.Next(); ok; p, ok = es.Next() {
			if err := d.part(l, p, data); err != nil {
				return err
			}
			d.gap++
		}
		if es.Err() != nil {
			return ErrMalformed
		}
	}
	if c.extra || c.remarks && c.finish != nil && l.last >= 0 && !failed {
		d.note(l, &c, raw, data)
	}
	if c.token != nil {
		d.mark(l, c.token)
	}
	if c.finish != nil && !l.finished && !failed {
		l.finished = true
		d.hangUp(l, string(c.finish) == "STOP")
		d.still(l)
		d.put(turn.Delta{Kind: turn.Finish, Choice: l.index, Why: finishWhy(c.finish, l.called), Text: c.finish})
	}
	d.gap++
	return nil
}

func (d *Decoder) part(l *lane, raw, data []byte) error {
	p, err := readPart(raw)
	if err != nil {
		return err
	}
	switch p.kind {
	case inert:
	case answer:
		d.say(l, turn.Prose, p.text)
		if p.signature != nil {
			d.seal(l, &p, raw)
		}
	case thought:
		d.say(l, turn.Reasoning, p.text)
		if p.signature != nil {
			n := d.flow(l, turn.Reasoning)
			d.put(turn.Delta{Kind: turn.Sign, Choice: l.index, Block: n, Text: p.signature})
			d.still(l)
		}
	case calling:
		return d.ring(l, &p, raw, data)
	case hostedCall, hostedDone, foreign:
		d.item(l, &p, raw)
	}
	return nil
}

// seal gives the signature of an answer part a block of its own, without text. It
// stays where it stood, and when an interruption takes back what came with it, it
// goes too.
func (d *Decoder) seal(l *lane, p *part, raw []byte) {
	if len(p.text) > 0 {
		b := append([]byte(`{"text":"","thoughtSignature":"`), p.signature...)
		raw = append(b, `"}`...)
	}
	d.whole(l, turn.Delta{Of: turn.Prose, Raw: raw})
}

// mark notes a checkpoint of the provider's generation, in its place among the
// blocks: what stands behind it is what a resumed stream says again. The token is
// good for the request it was issued for, which the responseId tells.
func (d *Decoder) mark(l *lane, token []byte) {
	b := append([]byte(`{"continuationToken":`), token...)
	if d.id != nil {
		b = append(append(b, `,"responseId":`...), d.id...)
	}
	last := l.last
	d.whole(l, turn.Delta{Of: turn.Prose, Raw: append(b, '}')})
	l.last = last // nothing is said in it that anything could stand beside
}

// item is a part that is whole and neither text nor a call of the caller's.
func (d *Decoder) item(l *lane, p *part, raw []byte) {
	id, name := p.ident()
	of := turn.Unknown
	switch p.kind {
	case hostedCall:
		of = turn.Hosted
	case hostedDone:
		of = turn.HostedResult
	}
	d.whole(l, turn.Delta{Of: of, ID: id, Name: name, Raw: raw})
}

// whole opens and closes a block.
func (d *Decoder) whole(l *lane, x turn.Delta) {
	n := d.begin(l, x)
	d.put(turn.Delta{Kind: turn.Close, Choice: l.index, Block: n})
}

// begin opens a block behind whatever was flowing.
func (d *Decoder) begin(l *lane, x turn.Delta) int {
	d.still(l)
	x.Kind, x.Choice, x.Block = turn.Open, l.index, d.blocks
	l.last = d.blocks
	d.blocks++
	d.put(x)
	return x.Block
}

// say adds text to the flowing block of that kind.
func (d *Decoder) say(l *lane, kind turn.BlockKind, body []byte) {
	if len(body) > 0 {
		d.put(turn.Delta{Kind: turn.Text, Choice: l.index, Block: d.flow(l, kind), Text: body})
	}
}

// flow returns the flowing block of that kind, opening it if something else was
// being said.
func (d *Decoder) flow(l *lane, kind turn.BlockKind) int {
	if l.open < 0 || l.kind != kind {
		n := d.begin(l, turn.Delta{Of: kind})
		l.open, l.kind = n, kind
	}
	return l.open
}

// still closes the flowing block.
func (d *Decoder) still(l *lane) {
	if l.open >= 0 {
		d.put(turn.Delta{Kind: turn.Close, Choice: l.index, Block: l.open})
		l.open = -1
	}
}

// lane returns the lane of a candidate. The pointer is good until the next call.
func (d *Decoder) lane(index int) *lane {
	for i := range d.lanes {
		if d.lanes[i].index == index {
			return &d.lanes[i]
		}
	}
	d.lanes = append(d.lanes, lane{index: index, open: -1, last: -1})
	return &d.lanes[len(d.lanes)-1]
}

// blocked reads promptFeedback: a blocked prompt has no candidates, so that the
// reason is the end of all that were asked for.
func (d *Decoder) blocked(feedback []byte) {
	reason := blockReason(feedback)
	if reason == nil {
		return
	}
	for i := range d.choices {
		if l := d.lane(i); !l.finished {
			l.finished = true
			d.still(l)
			d.put(turn.Delta{Kind: turn.Finish, Choice: i, Why: turn.Filtered, Text: reason})
		}
	}
}

// blockReason is why a prompt was blocked; nil: it was not.
func blockReason(feedback []byte) []byte {
	reason, ok := jsonwalk.String(jsonwalk.Get(feedback, "blockReason"))
	if !ok || len(reason) == 0 || string(reason) == "BLOCK_REASON_UNSPECIFIED" {
		return nil
	}
	return reason
}
