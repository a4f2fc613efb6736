package openaichat

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/turn"
)

// lane is what is open in one choice. Chat says neither where a block begins nor
// where it ends, so the lane decides:
//
//	text, reasoning, refusal   open with their first character, close when the
//	                           choice says something of another kind
//	a call                     see call.go
//	everything                 closes at a finish that is not a failure
type lane struct {
	index    int // choices[].index
	open     int // ordinal of the flowing block, -1: none
	kind     turn.BlockKind
	name     []byte // static
	last     int    // ordinal of the last text, -1: none
	thought  int    // ordinal of the last reasoning block, -1: none
	finished bool
	calls    []call
	waiting  []beside // what nothing is there for yet that it could stand beside
}

// wait keeps what stands beside no text until there is one.
func (l *lane) wait(bs []beside) {
	for _, b := range bs {
		l.waiting = append(l.waiting, beside{b.at, bytes.Clone(b.member), bytes.Clone(b.value)})
	}
}

// lane returns the lane of a choice. The pointer is good until the next call.
func (d *Decoder) lane(index int) *lane {
	for i := range d.lanes {
		if d.lanes[i].index == index {
			return &d.lanes[i]
		}
	}
	d.lanes = append(d.lanes, lane{index: index, open: -1, last: -1, thought: -1})
	return &d.lanes[len(d.lanes)-1]
}

// say adds text to the flowing block of that kind.
func (d *Decoder) say(l *lane, kind turn.BlockKind, name, body []byte) {
	if len(body) > 0 {
		d.put(turn.Delta{Kind: turn.Text, Choice: l.index, Block: d.flow(l, kind, name), Text: body})
	}
}

// flow returns the flowing block of that kind, opening it if something else was
// being said.
func (d *Decoder) flow(l *lane, kind turn.BlockKind, name []byte) int {
	if l.open >= 0 && l.kind == kind && (kind != turn.Unknown || string(l.name) == string(name)) {
		return l.open
	}
	d.still(l)
	d.leave(l, func(c *call) bool { return c.left() || c.said == 0 })
	l.open, l.last, l.kind, l.name = d.blocks, d.blocks, kind, name
	if kind == turn.Reasoning {
		l.thought = d.blocks
	}
	d.blocks++
	d.put(turn.Delta{Kind: turn.Open, Of: kind, Choice: l.index, Block: l.open, Name: name})
	return l.open
}

// still closes the flowing block.
func (d *Decoder) still(l *lane) {
	if l.open >= 0 {
		d.put(turn.Delta{Kind: turn.Close, Choice: l.index, Block: l.open})
		l.open = -1
	}
}

// shut closes whatever is open in the lane.
func (d *Decoder) shut(l *lane) {
	d.still(l)
	d.leave(l, func(*call) bool { return true })
}

// leave closes those of the lane's calls.
func (d *Decoder) leave(l *lane, which func(*call) bool) {
	for i := range l.calls {
		if c := &l.calls[i]; which(c) {
			d.hangUp(l, c)
		}
	}
}

func (d *Decoder) hangUp(l *lane, c *call) {
	if !c.closed {
		c.closed = true
		d.put(turn.Delta{Kind: turn.Close, Choice: l.index, Block: c.block})
	}
}
