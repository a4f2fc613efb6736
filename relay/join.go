package relay

import (
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/splice"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// join takes one event of an attempt whose client already has a message.
func (s *Stream) join(e sse.Event, ds []turn.Delta) {
	h := &s.hop
	for i := range ds {
		if ds[i].Kind == turn.Open {
			h.kinds = append(h.kinds, ds[i].Of)
		}
	}
	if h.seam == nil {
		s.guarded(e, ds)
		return
	}
	v := s.probe(ds)
	switch v.State {
	case splice.Holding:
		s.speaks(ds)
		h.queue = append(h.queue, own(e, ds))
		return
	case splice.Failed:
		s.note(Note{Kind: NoteSeam, Reason: v.Reason, Held: len(h.plain), Manner: s.plan.manner})
		s.interrupted(interrupt.Cause{Kind: interrupt.SeamFailed, Type: v.Reason, Message: "the continuation did not go on from what was said"})
		return
	case splice.Joined:
	}
	s.note(Note{Kind: NoteSeam, Reason: v.Kind.String(), Joined: true, Held: len(h.plain), Skipped: v.Skip, Manner: s.plan.manner})
	again := turn.Measure(h.plain[:v.Skip])
	h.seat.Answer, h.seat.Block = h.seat.Answer.Minus(again), h.seat.Block.Minus(again)
	h.seam, h.skip, h.plain = nil, v.Skip, nil
	// Nothing is missing, and no open text could take it: no block is opened for
	// the word that says so.
	h.mute = v.Kind.Base() == splice.Sentinel && h.joint < 0
	queue := h.queue
	h.queue = nil
	if h.stop != "" {
		s.finishLocally(turn.Stopped, h.stop, "stop_sequence_at_seam")
		return
	}
	n := s.attempt
	for i := range queue {
		s.guarded(queue[i].e, queue[i].ds)
		if s.attempt != n || s.phase == finished {
			return
		}
	}
	s.guarded(e, ds)
}

// splice edits an event of a later attempt so that it becomes part of the
// client's message, and admits it.
func (s *Stream) splice(e sse.Event, ds []turn.Delta) {
	h := &s.hop
	next := len(s.said.Blocks)
	index := s.said.NextIndex(s.traits.IndexCallsOnly)
	cut := noCut
	for i := range ds {
		d := &ds[i]
		switch d.Kind {
		case turn.Head:
			if s.said.Head != nil {
				d.Kind = turn.Skip
			}
		case turn.Open:
			if h.same != nil {
				settled, wrong := h.same.opens(s, d)
				if wrong {
					cut = cutAstray
				}
				if settled {
					break
				}
			}
			s.placeBlock(d, &next, &index)
		case turn.Text:
			prose := h.prose(d.Block)
			if h.same != nil && h.same.text(s, d) {
				cut = cutAstray
				break
			}
			if d.Kind == turn.Skip {
				break
			}
			if s.locate(d) && prose {
				cut = s.trim(d)
			}
		case turn.Sign, turn.Extra, turn.Close:
			if h.same != nil && h.same.past(d.Block) {
				d.Kind = turn.Skip
				break
			}
			switch prose := h.prose(d.Block); {
			case !s.locate(d) || !prose:
			case d.Kind == turn.Extra && !d.Sum:
				d.Joint = h.jointOf(d.Block)
			case d.Kind != turn.Sign && h.skip > 0:
				d.Kind = turn.Skip // the end of a text that is said again is none of the one that goes on
			}
		case turn.Count:
			d.Usage = s.tokens.merge(d.Usage)
		case turn.Finish:
			if len(h.again) > 0 || h.same != nil && !h.same.whole() {
				s.strayed()
				return
			}
			if !s.fitsSchema() {
				s.mismatch()
				return
			}
		case turn.Opaque:
			switch {
			case d.Block >= 0:
				s.locate(d)
			case h.same != nil && !h.fresh:
				d.Kind = turn.Skip
			}
		case turn.Skip, turn.Terminal, turn.Pulse, turn.Fault:
		}
		if cut != noCut {
			for j := i + 1; j < len(ds); j++ {
				ds[j].Kind = turn.Skip
			}
			break
		}
	}
	if cut == cutAstray {
		s.strayed()
		return
	}
	if cut == cutInvalid {
		s.interrupted(interrupt.Cause{Kind: interrupt.SeamFailed, Type: "invalid_document", Message: "the continuation does not complete the JSON document"})
		return
	}
	s.closeBefore(ds)
	s.admit(e, ds, true)
	if cut == cutDocument && s.phase == reading {
		if s.fitsSchema() {
			s.finishLocally(turn.Stopped, "", "document_end")
		} else {
			s.mismatch()
		}
	}
}

// placeBlock decides where a block of this attempt stands in the client's
// message.
func (s *Stream) placeBlock(d *turn.Delta, next, index *int) {
	h := &s.hop
	to := -1
	switch {
	case d.Part && (len(h.place) == 0 || h.place[len(h.place)-1] < 0):
	case h.mode == joinSame:
		to = *next
	case d.Of == turn.Reasoning || d.Of == turn.Redacted:
		switch n := len(s.said.Blocks) - 1; {
		case h.mode == joinText && s.plan.manner != turn.Provider:
			// Reasoning of a continuation belongs to another prompt; the
			// client must not get it (WIRE 2.2).
		case s.reasoned():
			// The client has whole, signed reasoning of this turn. A second
			// one beside it makes a history that no provider takes back
			// (FIELD-REPORTS D1).
		case d.Of == turn.Reasoning && n >= 0 && s.goesOn(&s.said.Blocks[n]):
			h.place = append(h.place, n)
			d.Kind = turn.Skip
			return
		default:
			to = *next
		}
	case d.Of == turn.Prose && h.mute:
	case d.Of == turn.Prose && h.joint >= 0 && (!h.jointUsed || h.skip > 0) && !s.said.Blocks[h.joint].Closed:
		h.jointUsed = true
		h.place = append(h.place, h.joint)
		d.Kind = turn.Skip
		if len(d.Text) > 0 {
			// Text inside the opening goes on as a delta.
			d.Kind, d.Block = turn.Text, h.joint
		}
		return
	default:
		to = *next
	}
	h.place = append(h.place, to)
	if to < 0 {
		d.Kind = turn.Skip
		return
	}
	d.Block = to
	*next++
	if d.Part {
		// It stands in the item of the block before it, which this very event
		// may have opened.
		d.Index = *index - 1
		if n := h.place[len(h.place)-2]; n < len(s.said.Blocks) {
			d.Index = s.said.Blocks[n].Index
		}
		return
	}
	if !s.traits.IndexCallsOnly || d.Of == turn.Call || d.Of == turn.CustomCall {
		d.Index = *index
		*index++
	}
}

// reasoned reports whether the client has a whole signed reasoning block.
func (s *Stream) reasoned() bool {
	if !s.traits.SignedReasoning {
		return false
	}
	for i := range s.said.Blocks {
		if b := &s.said.Blocks[i]; b.Live() && b.Closed && (b.Kind == turn.Reasoning && len(b.Signature) > 0 || b.Kind == turn.Redacted) {
			return true
		}
	}
	return false
}

// goesOn reports whether a restart's reasoning continues reasoning block b: it is
// open and unsigned dialects let it simply go on; or nothing of it was shown.
func (s *Stream) goesOn(b *turn.Block) bool {
	if b.Kind != turn.Reasoning || b.Closed || b.Withdrawn {
		return false
	}
	return !s.traits.SignedReasoning || len(b.Text) == 0 && !s.traits.BoundReasoning
}

// locate maps the delta's block to said; a delta of a suppressed block is taken
// out.
func (s *Stream) locate(d *turn.Delta) bool {
	h := &s.hop
	if d.Block < 0 || d.Block >= len(h.place) || h.place[d.Block] < 0 {
		d.Kind = turn.Skip
		return false
	}
	d.Block = h.place[d.Block]
	return true
}

// jointOf tells an extra of a block of said where the attempt's text joined it.
func (h *hop) jointOf(block int) *turn.Joint {
	if h.seat == (turn.Joint{}) {
		return nil
	}
	j := h.seat
	if j.Repeats = h.skip > 0; block != h.joint {
		j.Block, j.Had = turn.Extent{}, 0
	}
	return &j
}

// closeBefore closes what is open on the client's wire before a new block opens
// or the turn finishes, in dialects that close blocks.
func (s *Stream) closeBefore(ds []turn.Delta) {
	for i := range ds {
		if k := ds[i].Kind; k == turn.Open && !ds[i].Part || k == turn.Finish {
			s.closeOpen()
			return
		}
	}
}

// closeOpen closes what is open and finished on the client's wire.
func (s *Stream) closeOpen() {
	if s.traits.IndexCallsOnly {
		return
	}
	for i := range s.said.Blocks {
		b := &s.said.Blocks[i]
		if b.Closed || b.Withdrawn || b.IsCall() && !b.Complete() {
			continue
		}
		s.scratch = s.d.CloseBlock(s.scratch[:0], &s.said, i)
		s.emit(s.scratch)
		b.Closed = true
		if b.Kind == turn.Reasoning && s.traits.SignedReasoning {
			// Closed under the mark: it is worth nothing to anybody.
			b.Withdrawn = true
			b.Signature = append(b.Signature[:0], turn.DropMark...)
		}
	}
}
