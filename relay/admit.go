package relay

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// extent is how much of said the client has: whole blocks, and of the last one
// so much text, and whether it saw the block's end.
type extent struct {
	blocks, text int
	closed       bool
	seq          int64
}

func (s *Stream) extent() extent {
	x := extent{blocks: len(s.said.Blocks), seq: s.said.Seq}
	if b := s.said.Last(); b != nil {
		x.text, x.closed = len(b.Text), b.Closed
	}
	return x
}

// recede takes said back to x.
func (s *Stream) recede(x extent) {
	s.said.Truncate(x.blocks)
	s.said.Seq = x.seq
	if b := s.said.Last(); b != nil {
		b.Cut(x.text)
		b.Closed = x.closed
		if b.Kind == turn.Reasoning && !b.Closed {
			b.Signature = nil
		}
	}
	s.mark.Recede(&s.said)
}

// emit appends whole units for the client, behind what is held if anything is.
func (s *Stream) emit(b []byte) {
	if s.holding {
		s.held = append(s.held, b...)
		return
	}
	s.own()
	s.out = append(s.out, b...)
	if !s.gate && len(s.out) > maxWithheld {
		s.openGate(Head{Status: s.head.Status, Upstream: s.head.Header, Stream: true})
	}
}

// pass emits a unit as the provider sent it. Where a step lets out nothing but such
// units, one behind the other, they leave from the memory that they came in: most of a
// stream is never copied, and an idle one keeps no buffer for it.
func (s *Stream) pass(raw []byte) {
	n := len(s.lent)
	switch {
	case !s.gate || s.holding || s.pulse.open || len(raw) == 0:
	case len(s.out) == 0:
		s.lent, s.out = raw, raw[:len(raw):len(raw)]
		return
	case n > 0 && cap(s.lent) > n && &s.lent[:n+1][n] == &raw[0]:
		s.lent = s.lent[:n+len(raw)]
		s.out = s.lent[:len(s.lent):len(s.lent)]
		return
	}
	s.emit(raw)
}

// own has out in memory of its own, to be written to.
func (s *Stream) own() {
	if s.lent != nil {
		s.out, s.lent = bytes.Clone(s.out), nil
	}
}

// maxWithheld bounds what waits for the response head: a provider that only ever
// comments must not fill memory.
const maxWithheld = 1 << 20

// admit folds an event into the message and lets its bytes out: raw, or
// rewritten as part of the message that the client already has.
func (s *Stream) admit(e sse.Event, ds []turn.Delta, rewrite bool) {
	before := s.extent()
	b := e.Raw
	if rewrite {
		s.scratch = s.d.Rewrite(s.scratch[:0], s.req, e, ds, &s.said)
		b = oneLine(s.d, s.scratch)
	}
	saw := sight{out: before.blocks}
	if s.holding {
		saw.out = s.shown.blocks
	}
	for i := range ds {
		s.fold(&ds[i], &saw)
	}
	if s.tooLarge() {
		return
	}
	if saw.hold && !s.holding {
		s.holding, s.shown = true, before
	}
	if rewrite {
		s.emit(b)
	} else {
		s.pass(b)
	}
	if saw.count && (s.ends || saw.finish) {
		s.counted = true
	}
	switch {
	case s.finished(saw):
		// A real end releases everything held, verbatim, valid or not: it is
		// the provider's answer (DESIGN §1.3).
		s.release()
		s.seal()
	case s.holding && s.releasable():
		s.durable = s.durable || !s.cfg.Events && s.calls()
		s.release()
		saw.content = saw.content || s.visible || s.contentful()
	}
	if saw.content && !s.holding {
		s.show()
	}
	if saw.terminal && s.phase == closing {
		s.complete()
	}
}

// tooLarge gives a turn up that says too much, and reports whether it did.
func (s *Stream) tooLarge() bool {
	if s.size <= s.cfg.MaxTurn && len(s.said.Blocks) <= s.cfg.MaxBlocks && (!s.holding || len(s.held) <= s.cfg.MaxTurn) {
		return false
	}
	s.fail(interrupt.Cause{Kind: interrupt.Malformed, Type: "turn_too_large"}, "turn_too_large", false)
	return true
}

// finished reports whether the turn's semantic end is complete with this event.
// A host may answer fewer choices than were asked for; its end marker says so.
func (s *Stream) finished(saw sight) bool {
	if !s.said.Finished() {
		return saw.terminal && s.said.Head != nil
	}
	return saw.finish && len(s.said.Ends) >= s.req.N && !s.overHalfCall() || saw.terminal
}

// overHalfCall reports whether the turn's finish asks for a call that is not whole.
// That may be how the provider ends it, but a finish alone does not prove it: only
// with the end marker, or a polite end of the body, is it the provider's answer.
func (s *Stream) overHalfCall() bool {
	_, unfinished := s.said.Calls()
	return unfinished > 0 && s.said.End().Why != turn.Length
}

// sight is what one event brought.
type sight struct {
	content, hold, finish, count, terminal bool

	out int // blocks that were let out before it
}

// errUnwhole names a call that left as whole and goes on.
const errUnwhole = "call_goes_on"

// fold adds one delta to the message and tells the clocks about it.
func (s *Stream) fold(d *turn.Delta, saw *sight) {
	if err := s.said.Fold(*d); err != nil {
		// The provider broke its own order. Its bytes are still its answer;
		// only a splice is out of the question now.
		s.odd = err.Error()
		return
	}
	switch d.Kind {
	case turn.Open:
		s.watch.Progress(s.now)
		s.touch(len(d.ID) + len(d.Name) + len(d.Raw) + 8)
		s.size += len(d.ID) + len(d.Name) + len(d.Raw)
		b := &s.said.Blocks[d.Block]
		switch {
		case b.IsCall():
			if s.cfg.Events {
				saw.content = true
			} else {
				saw.hold = true
			}
		case b.Kind == turn.Hosted, b.Kind == turn.HostedResult, b.Kind == turn.Redacted, b.Kind == turn.Unknown:
			saw.content = true
		case len(b.Text) > 0:
			saw.content = true
		}
		s.pace(b)
	case turn.Text:
		if len(d.Text) == 0 {
			return
		}
		b := &s.said.Blocks[d.Block]
		switch {
		case !b.IsCall() || s.cfg.Events:
			saw.content = true
		case d.Block < saw.out && !b.Complete():
			// {"p":1} and then more of it: the client has what no end of ours may
			// make runnable.
			s.odd = errUnwhole
		}
		s.spoke(b, len(d.Text))
	case turn.Sign:
		s.watch.Progress(s.now)
		if !s.said.Blocks[d.Block].Closed {
			saw.hold = true
		}
	case turn.Extra:
		s.watch.Progress(s.now)
		saw.content = true
	case turn.Close:
		s.watch.Progress(s.now)
		s.touch(2)
		// The end of a text block waits for what comes next: if that is a
		// call which an interruption cuts, the text can go on in its block.
		b := &s.said.Blocks[d.Block]
		saw.hold = saw.hold || b.Kind == turn.Prose
		// In mode events a call was shown as it came; its close is what makes
		// the client act.
		s.durable = s.durable || s.cfg.Events && b.IsCall()
		s.watch.Phase(interrupt.Waiting)
	case turn.Count:
		s.touch(len(d.Usage.Raw))
		saw.count = true
	case turn.Finish:
		saw.finish = true
		s.touch(8)
	case turn.Terminal:
		saw.terminal = true
	case turn.Opaque:
		saw.content = true
	case turn.Head, turn.Skip, turn.Pulse, turn.Fault:
	}
}

// spoke tells the clocks about n bytes of text or arguments of b.
func (s *Stream) spoke(b *turn.Block, n int) {
	s.watch.Progress(s.now)
	s.watch.Said(n)
	s.touch(n)
	s.size += n
	s.pace(b)
}

// pace sets the byte clock by the kind of block that is being said.
func (s *Stream) pace(b *turn.Block) {
	switch b.Kind {
	case turn.Prose, turn.Refusal, turn.Call, turn.CustomCall:
		s.watch.Phase(interrupt.Speaking)
	case turn.Reasoning, turn.Redacted, turn.Hosted, turn.HostedResult, turn.Unknown:
		s.watch.Phase(interrupt.Quiet)
	}
}

// releasable reports whether nothing of what is held is unfinished.
func (s *Stream) releasable() bool {
	if b := s.said.Last(); b != nil && b.Kind == turn.Prose && b.Closed {
		return false
	}
	for i := max(0, s.shown.blocks-1); i < len(s.said.Blocks); i++ {
		b := &s.said.Blocks[i]
		switch {
		case b.Withdrawn:
		case b.IsCall() && i >= s.shown.blocks && !s.cfg.Events && !b.Complete():
			return false
		case b.Kind == turn.Reasoning && len(b.Signature) > 0 && !b.Closed:
			return false
		}
	}
	return true
}

// calls reports whether what is held holds a call.
func (s *Stream) calls() bool {
	for i := s.shown.blocks; i < len(s.said.Blocks); i++ {
		if s.said.Blocks[i].IsCall() {
			return true
		}
	}
	return false
}

// contentful reports whether any block holds something to see.
func (s *Stream) contentful() bool {
	for i := range s.said.Blocks {
		switch b := &s.said.Blocks[i]; b.Kind {
		case turn.Prose, turn.Reasoning, turn.Refusal:
			if len(b.Text) > 0 {
				return true
			}
		default:
			return true
		}
	}
	return false
}

func (s *Stream) release() {
	s.own()
	s.out = append(s.out, s.held...)
	s.held, s.holding = s.held[:0], false
	s.shown = extent{}
}

// show records that the client gets to see content now, and lets the head out.
func (s *Stream) show() {
	s.watch.Visible()
	if !s.visible {
		s.visible = true
		s.openGate(Head{Status: s.head.Status, Upstream: s.head.Header, Stream: true})
	}
	if !s.hop.fresh && !s.fx.Cancel {
		s.note(Note{Kind: NoteVisible})
	}
	s.hop.fresh, s.tries = true, 0
	if s.healing {
		s.healed()
	}
	s.lastNew = s.now
}

// healed notes that an interruption is over. New content earns a recovery back,
// so that a provider that keeps cutting but keeps going is carried through.
func (s *Stream) healed() {
	s.healing = false
	if s.earned < s.cfg.MaxEarned {
		s.earned++
		s.left = min(s.left+1, max(0, s.cfg.Recoveries))
	}
	s.note(Note{Kind: NoteHealed, Gap: s.now.Sub(s.lastNew)})
}

// seal marks the semantic end: from here nothing is an interruption.
func (s *Stream) seal() {
	if s.phase == closing {
		return
	}
	s.ends, s.durable = true, true
	s.fx.Turn = &s.said
	s.phase = closing
	s.watch.Phase(interrupt.Done)
	s.graceAt = s.now.Add(s.cfg.Grace)
	s.show()
}
