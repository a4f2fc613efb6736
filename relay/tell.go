package relay

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

// tell renders what the client lacks of the turn, in order, up to what cannot be
// told yet. act lets calls out; without it their turn ends the telling, and what is
// returned is that one waits.
func (f *Follower) tell(act bool) (waits bool) {
	for i := range f.src.Blocks {
		b := &f.src.Blocks[i]
		switch at := f.place[i]; {
		case at >= 0:
			f.grow(b, at)
		case at == nothing, b.Withdrawn:
		case !f.tellable(i):
			return false
		case b.IsCall() && !act:
			return true
		default:
			f.closeBefore(i)
			f.place[i] = len(f.said.Blocks)
			if f.retell(b, -1, 0); f.place[i] == len(f.said.Blocks) {
				f.place[i] = nothing
			}
		}
	}
	return false
}

// tellable reports whether a block that the client does not have may be begun.
func (f *Follower) tellable(i int) bool {
	b := &f.src.Blocks[i]
	switch {
	case f.src.Finished():
		return true // the provider's own answer, valid or not
	case b.IsCall():
		return b.Complete()
	case f.grows(b):
		return len(b.Text) > 0 || b.Closed
	}
	return b.Closed
}

// nothing is the place of a block that says nothing a client could be told.
const nothing = -2

// grows reports whether a block is told as it comes.
func (f *Follower) grows(b *turn.Block) bool {
	switch b.Kind {
	case turn.Prose, turn.Refusal:
		return true
	case turn.Reasoning:
		return !f.traits.SignedReasoning
	default:
		return false
	}
}

// grow tells what is new of a block that the client has.
func (f *Follower) grow(b *turn.Block, at int) {
	has := &f.said.Blocks[at]
	switch {
	case has.Closed && f.traits.IndexCallsOnly && len(b.Notes) > len(has.Notes):
		f.annotate(b, at)
	case has.Closed:
	case b.Withdrawn:
		if !has.Withdrawn {
			f.out = f.d.DropReasoning(f.out, &f.said, at)
			has.Withdrawn, has.Closed = true, true
		}
	case len(b.Text) > len(has.Text) || len(b.Notes) > len(has.Notes):
		f.retell(b, at, len(has.Text))
	}
}

// annotate tells what came beside a block that is closed, on a wire whose extras do not
// name their block.
func (f *Follower) annotate(b *turn.Block, at int) {
	aside := turn.Block{Kind: turn.Prose, Choice: b.Choice, Notes: b.Notes}
	f.retell(&aside, at, 0)
	noted(b, &f.said.Blocks[at])
}

// notesBehind are the notes of b behind those that has holds: a client is told of each
// once, however often its text grows.
func notesBehind(b, has *turn.Block) []byte {
	if has == nil {
		return b.Notes
	}
	if len(b.Notes) <= len(has.Notes) {
		return nil
	}
	return bytes.TrimPrefix(b.Notes[len(has.Notes):], []byte{','})
}

// closeBefore closes what the client has open before block i begins. A text's close
// waits until then, since a text that an interruption follows can still go on.
func (f *Follower) closeBefore(i int) {
	for j := range i {
		at := f.place[j]
		if at < 0 || !f.src.Blocks[j].Closed || f.said.Blocks[at].Closed {
			continue
		}
		f.out = f.d.CloseBlock(f.out, &f.said, at)
		_ = f.said.Fold(turn.Delta{Kind: turn.Close, Block: at})
	}
}

// retell renders b from byte from of its text on, as part of the client's message.
// The dialect speaks it as a provider would, and then rewrites that as it rewrites
// a later attempt's events: at is the block's ordinal in said, or -1 if it begins
// here.
func (f *Follower) retell(b *turn.Block, at, from int) {
	part := *b
	part.Text = b.Text[from:]
	var has *turn.Block
	if at >= 0 {
		has = &f.said.Blocks[at]
	}
	part.Notes = notesBehind(b, has)
	if f.grows(b) {
		part.Closed = false
	}
	alone := turn.Snapshot{Head: f.src.Head, Blocks: []turn.Block{part}}
	scan := dialect.NewScanner(f.d, 0)
	scan.Push(f.d.Replay(nil, f.req, &alone))
	dec := f.d.NewDecoder(f.req)
	for {
		e, ok := scan.Next()
		if !ok {
			break
		}
		if e.Data == nil {
			continue
		}
		ds, err := dec.Decode(nil, e)
		if err != nil {
			continue // our own words
		}
		if f.said.Head == nil {
			f.said.Head = bytes.Clone(f.src.Head)
			if hasHead(ds) && !says(ds) {
				f.out = append(f.out, e.Raw...)
				for i := range ds {
					f.said.Seq = max(f.said.Seq, ds[i].Seq)
				}
				continue
			}
			f.said.Head = nil
		}
		f.own(ds, b, &at)
		e.Data = bytes.Clone(e.Data)
		f.out = append(f.out, oneLine(f.d, f.d.Rewrite(nil, f.req, e, ds, &f.said))...)
		for i := range ds {
			_ = f.said.Fold(ds[i])
		}
	}
	if at >= 0 {
		noted(b, &f.said.Blocks[at])
	}
}

// noted has the client's block hold the notes that no event of its dialect told alone:
// its end does.
func noted(b, has *turn.Block) {
	if len(has.Notes) < len(b.Notes) {
		has.Notes, has.Extras = bytes.Clone(b.Notes), b.Extras
	}
}

// own makes the deltas of a retold block those of the client's message.
func (f *Follower) own(ds []turn.Delta, b *turn.Block, at *int) {
	for i := range ds {
		switch d := &ds[i]; d.Kind {
		case turn.Open:
			if *at >= 0 {
				d.Kind = turn.Skip
				continue
			}
			*at = len(f.said.Blocks)
			d.Block, d.Index = *at, f.said.NextIndex(f.traits.IndexCallsOnly)
			if f.traits.IndexCallsOnly && !b.IsCall() {
				d.Index = b.Index
			}
		case turn.Text, turn.Sign, turn.Extra, turn.Close:
			d.Block = *at
		case turn.Head:
			if f.said.Head != nil {
				d.Kind = turn.Skip
			}
		case turn.Skip:
		case turn.Pulse:
			if !f.traits.IndexCallsOnly { // there it says nothing, and it may stand between what does (gemini)
				d.Kind = turn.Skip
			}
		default:
			d.Kind = turn.Skip
		}
	}
}

func hasHead(ds []turn.Delta) bool {
	for i := range ds {
		if ds[i].Kind == turn.Head {
			return true
		}
	}
	return false
}

// says reports whether an event holds a block or a part of one.
func says(ds []turn.Delta) bool {
	for i := range ds {
		switch ds[i].Kind {
		case turn.Open, turn.Text, turn.Sign, turn.Extra, turn.Close:
			return true
		default:
		}
	}
	return false
}

// finished reports whether the turn's end may be told: what may follow the finish,
// a late usage record, is there or will not come.
func (f *Follower) finished() bool {
	if !f.src.Finished() {
		return false
	}
	if f.graceAt.IsZero() {
		f.graceAt = f.now.Add(f.cfg.Grace)
	}
	return f.src.Terminated || f.over || !f.now.Before(f.graceAt)
}

func (f *Follower) finish() {
	if f.said.Head == nil {
		f.said.Head = bytes.Clone(f.src.Head)
		f.out = f.d.Replay(f.out, f.req, &f.said)
	}
	f.closeBefore(len(f.src.Blocks))
	f.said.Ends, f.said.Usage = f.src.Ends, f.src.Usage
	e := f.src.End()
	f.out = f.d.Finish(f.out, f.req, &f.said, dialect.Ending{Why: e.Why, Reason: e.Reason, Usage: f.src.Usage})
	f.sum.Usage = f.src.Usage
}
