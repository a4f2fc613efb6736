package relay

import (
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/splice"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// guarded lets an event of an asked continuation wait while its text may turn out
// to end in the sentinel, which never reaches the client.
func (s *Stream) guarded(e sse.Event, ds []turn.Delta) {
	h := &s.hop
	if h.guard == nil {
		s.splice(e, ds)
		return
	}
	if !h.cleared(ds, &s.scratch) {
		s.speaks(ds)
		h.queue = append(h.queue, own(e, ds))
		return
	}
	queue := h.queue
	h.queue = nil
	n := s.attempt
	for i := range queue {
		s.splice(queue[i].e, queue[i].ds)
		if s.attempt != n || s.phase == finished {
			return
		}
	}
	s.splice(e, ds)
}

// speaks sets the byte clock for text that waits: a continuation that stalls before
// its join is decided is as silent as one that stalls after it.
func (s *Stream) speaks(ds []turn.Delta) {
	for i := range ds {
		if ds[i].Kind == turn.Text && s.hop.prose(ds[i].Block) {
			s.watch.Progress(s.now)
			s.watch.Phase(interrupt.Speaking)
		}
	}
}

// cleared shows the guard an event's text, and reports whether all text so far
// may be decided about.
func (h *hop) cleared(ds []turn.Delta, buf *[]byte) bool {
	clear := true
	for i := range ds {
		d := &ds[i]
		switch {
		case d.Kind == turn.Text && h.prose(d.Block):
			*buf = jsonwalk.Unescape((*buf)[:0], d.Text)
			h.heard += len(*buf)
			keep, said := h.guard.Push(*buf)
			if clear = said || keep == h.heard; said && h.limit < 0 {
				h.limit = keep
			}
		case d.Kind == turn.Open, d.Kind == turn.Finish, d.Kind == turn.Terminal:
			h.guard.End()
			clear = true
		}
	}
	return clear
}

// prose reports whether a block of the attempt is answer text.
func (h *hop) prose(block int) bool {
	return block >= 0 && block < len(h.kinds) && h.kinds[block] == turn.Prose
}

// probe shows the seam what an event says, before any of it is admitted.
func (s *Stream) probe(ds []turn.Delta) splice.Verdict {
	h := &s.hop
	v := splice.Verdict{State: splice.Holding}
	for i := range ds {
		d := &ds[i]
		switch d.Kind {
		case turn.Text:
			if !h.prose(d.Block) || len(d.Text) == 0 {
				continue
			}
			s.scratch = jsonwalk.Unescape(s.scratch[:0], d.Text)
			v = h.say(s.scratch)
		case turn.Open:
			switch {
			case d.Of == turn.Prose, d.Of == turn.Reasoning, d.Of == turn.Redacted:
			default:
				v = h.turned()
			}
		case turn.Finish, turn.Terminal:
			if v = h.over(); v.State == splice.Failed && v.Reason == splice.Blank && v.Overlap > 0 {
				// It repeated the anchor and ended by itself: as good as
				// the sentinel, and as good as an empty prefill.
				v = h.repeated()
			}
			if v.State == splice.Failed && d.Kind == turn.Finish && d.Why == turn.Filtered {
				// The provider's word on the turn, with or without new text:
				// asking again would only be told the same.
				v = splice.Verdict{State: splice.Joined, Kind: splice.Empty, Skip: len(h.plain)}
			}
		case turn.Skip, turn.Head, turn.Sign, turn.Extra, turn.Close, turn.Count, turn.Pulse, turn.Fault, turn.Opaque:
		}
		if v.State != splice.Holding {
			return v
		}
	}
	return v
}

// say shows the seam decoded text of the continuation. A join is decided when the
// seam is, and no stop sequence may still straddle it.
func (h *hop) say(p []byte) splice.Verdict {
	h.plain = append(h.plain, p...)
	if h.verdict.State != splice.Joined {
		h.verdict = h.seam.Push(p)
		if h.verdict.State != splice.Joined {
			return h.verdict
		}
		p = h.plain[h.verdict.Skip:]
	}
	if h.stops == nil {
		return h.verdict
	}
	_, hit, ok := h.stops.Push(p)
	return h.settled(hit, ok)
}

// over tells the seam that the continuation's text has ended.
func (h *hop) over() splice.Verdict {
	if h.verdict.State != splice.Joined {
		if h.verdict = h.seam.End(); h.verdict.State != splice.Joined {
			return h.verdict
		}
		h.behind()
	}
	return h.stopped()
}

// turned tells the seam that the turn goes on with something other than text. No
// new text is no failure then, and neither is a bare repetition of the anchor.
func (h *hop) turned() splice.Verdict {
	if len(h.plain) == 0 {
		return splice.Verdict{State: splice.Joined, Kind: splice.Empty}
	}
	v := h.over()
	if v.State == splice.Failed && v.Reason == splice.Blank {
		return h.repeated()
	}
	return v
}

// repeated is the verdict on a continuation that has no new words, where none are
// needed. White space behind a repeated anchor is new all the same, unless it would
// be a block of its own, which nobody takes back in a later request.
func (h *hop) repeated() splice.Verdict {
	h.verdict.State, h.verdict.Reason = splice.Joined, ""
	if h.joint < 0 {
		h.verdict.Skip = len(h.plain)
	}
	h.behind()
	return h.stopped()
}

// behind shows the stops what was said behind a seam that was decided at its end.
func (h *hop) behind() {
	if h.stops != nil {
		h.stops.Push(h.plain[min(h.verdict.Skip, len(h.plain)):])
	}
}

// stopped is the verdict of a seam behind which no more text comes.
func (h *hop) stopped() splice.Verdict {
	if h.stops == nil {
		return h.verdict
	}
	_, hit, _ := h.stops.End()
	return h.settled(hit, true)
}

func (h *hop) settled(hit string, ok bool) splice.Verdict {
	if !ok {
		return splice.Verdict{State: splice.Holding}
	}
	h.stop = hit
	return h.verdict
}
