package relay

import (
	"bytes"
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/turn"
)

// provision is what the provider of the current target holds of the turn (WIRE 2.1): a
// generation to attach to, which is then the same attempt on another connection; or
// points in the stream from which the same request goes on.
type provision struct {
	// grip is that of a turn that was taken over, until its stream tells.
	grip dialect.Grip
	// lost: the generation is not held any more, or not for us. astray: no point is
	// of use any more.
	lost, astray bool
	// left is what the log says of a turn that was taken over, until the attached
	// stream has said as much: the log stays as it is so long, and is what the turn
	// goes on from if nothing comes of it.
	left *turn.Snapshot
	// attached counts the attempts for which nothing was paid again.
	attached int
	// same is what the client has of a generation that is to be told from its start.
	same *same
	// again is what a stream that goes on from a point says again first.
	again []byte
	// reworded: the first attempt's body is not the one to send again.
	reworded bool
}

// grip is how the generation of the current attempt is reached.
func (s *Stream) grip() dialect.Grip {
	if _, ok := s.d.(dialect.Holder); !ok || s.holds.lost {
		return dialect.Grip{}
	}
	if s.hop.track != nil {
		if g := s.hop.track.Grip(); g.Held() || s.hop.grasped {
			return g
		}
	}
	return s.holds.grip
}

// grasp notes the generation that the attempt is, as soon as its stream tells. Its
// name goes to the log at once: it is worth more than any text.
func (s *Stream) grasp() {
	if g := s.hop.track.Grip(); g.Held() {
		s.hop.grasped = true
		s.holds.grip = dialect.Grip{}
		s.touch(len(g.ID))
		s.said.Held, s.flush = g.ID, true
	}
}

// ungrasp forgets it: what comes is another generation.
func (s *Stream) ungrasp() {
	s.holds.grip, s.holds.lost = dialect.Grip{}, false
	if s.said.Held != "" {
		s.said.Held = ""
		s.touch(1)
	}
}

// behind is what was said behind the newest point in the stream; see
// [dialect.Checkpointer].
func (s *Stream) behind() (text []byte, ok bool) {
	c, can := s.d.(dialect.Checkpointer)
	if !can || s.holds.astray || !s.visible && !s.contentful() {
		return nil, false
	}
	said := s.said
	if s.holding && s.calls() {
		if whole, _ := s.said.Calls(); whole > 0 {
			return nil, false
		}
		said.Blocks = append([]turn.Block(nil), s.said.Blocks[:s.shown.blocks]...)
		if b := said.Last(); b != nil {
			b.Cut(s.shown.text)
		}
	}
	return c.Behind(&said)
}

// manner is the best way to go on that is left.
func (s *Stream) manner() turn.Manner {
	if _, ok := s.behind(); ok || s.grip().Held() {
		return turn.Provider
	}
	if len(s.manners) > 0 {
		return s.manners[0]
	}
	return turn.NoManner
}

// resume goes on with what the provider holds. A generation goes on as if nothing had
// happened: what is held here stays so. A point in the stream may lie before what is
// held, but for calls.
func (s *Stream) resume(p planner.Plan) {
	if s.grip().Held() {
		s.wait(p, reattach)
		return
	}
	if s.holding && !s.calls() {
		if s.release(); !s.visible {
			s.show()
			s.healing = true
		}
		s.lastNew = s.now
	}
	s.retreat()
	s.holds.again, _ = s.behind()
	s.wait(p, joinText)
}

// attach opens an attempt that attaches to the generation.
func (s *Stream) attach() {
	e := s.d.(dialect.Holder).Attach(s.grip())
	s.holds.attached++
	s.open(&Attempt{Method: e.Method, Below: e.Below, Query: e.Query})
}

// attached begins to read such an attempt: its decoder goes on, if it has begun.
func (s *Stream) attached() {
	h := &s.hop
	if h.track == nil {
		how := pass
		if s.holds.same != nil {
			how = joinSame
		}
		h.start(s.d, s.d.NewDecoder(s.req), how, s.cfg.MaxEvent)
		h.watch(s.d, s.req)
		h.same, h.whole = s.holds.same, true
		return
	}
	h.rescan(s.d, s.cfg.MaxEvent)
	h.known, h.early, h.any, h.counted, h.fresh = false, nil, false, false, false
	h.elsewhere = true
	h.track.Attached()
}

// watch finds out what the attempt's decoder can tell beyond deltas.
func (h *hop) watch(d dialect.Dialect, r *dialect.Request) {
	if _, ok := d.(dialect.Holder); ok {
		h.track, _ = h.dec.(dialect.Tracker)
	}
	if r.Veiled {
		h.veil, _ = h.dec.(dialect.Veiler)
	}
	if h.mode == pass && h.track == nil && h.veil == nil {
		h.short, _ = h.dec.(dialect.Repeater)
	}
}

// disowned reports whether an attempt died because the provider does not hold what it
// was asked for, or not for us. free: it said so at once, and generated nothing.
func (s *Stream) disowned(c interrupt.Cause) (yes, free bool) {
	switch {
	case c.Kind == interrupt.Permanent:
		yes, free = s.phase == refused, true
	case c.Kind == interrupt.EmptyAnswer, c.Kind == interrupt.Malformed:
		yes, free = !s.hop.fresh, true
	case c.Kind == interrupt.SeamFailed:
		yes = true
	}
	if !yes {
		return false, false
	}
	if s.plan.how == reattach {
		s.holds.lost = true
	} else {
		s.holds.astray = true
	}
	return true, free
}

// letGo gives up what the provider holds. Nobody will read the rest of it, and it
// does not end with its connection.
func (s *Stream) letGo() {
	if g := s.grip(); g.Held() && !s.said.Finished() {
		if e, ok := s.d.(dialect.Holder).Cancel(s.req, g); ok {
			s.fx.Abandon = &Attempt{N: s.attempt, Method: e.Method, Below: e.Below, Query: e.Query, Target: s.target}
		}
	}
	s.holds.lost, s.holds.astray = true, true
	if s.said.Held != "" {
		s.said.Held = ""
		s.touch(1)
	}
}

// abandons reports whether a plan gives up what the provider holds. A refusal does
// not: the caller's retry finds it.
func abandons(p planner.Plan) bool {
	switch p.Kind {
	case planner.Resume, planner.Refuse:
		return false
	case planner.Finish:
		return p.End != turn.Unfinished
	default:
		return true
	}
}

// caughtUp reports whether the log of a turn that was taken over may be written
// again.
func (s *Stream) caughtUp() bool {
	if s.holds.left == nil {
		return true
	}
	left, all := s.holds.left.Blocks, len(s.said.Blocks) >= len(s.holds.left.Blocks)
	for i := range left[:min(len(left), len(s.said.Blocks))] {
		a, b := &left[i], &s.said.Blocks[i]
		n := min(len(a.Text), len(b.Text))
		if a.Kind != b.Kind || a.Withdrawn || !bytes.Equal(a.Text[:n], b.Text[:n]) {
			s.disinherit()
			return true
		}
		all = all && n == len(a.Text) && (b.Closed || !a.Closed)
	}
	if all {
		s.holds.left = nil
	}
	return all
}

// disinherit has the log begin anew with what was said here.
func (s *Stream) disinherit() {
	if s.holds.left != nil {
		s.holds.left = nil
		s.mark.Recede(&turn.Snapshot{})
		s.touch(1)
	}
}

// unveil sends the client's own request, if the provider refused it for what was
// asked of it in the client's name. The client never asked, and does not hear of it.
func (s *Stream) unveil(c interrupt.Cause) bool {
	if !s.req.Veiled || c.Kind != interrupt.Permanent || !strings.Contains(strings.ToLower(c.Message+c.Code+c.Type), "background") {
		return false
	}
	bare := *s.req
	bare.Veiled = false
	s.req = &bare
	if s.plain == nil {
		s.plain = s.d.Repair(s.req.Body)
	}
	if b, ok := s.d.(dialect.Backgrounder); ok {
		s.plain = b.Foreground(s.plain)
	}
	s.holds.reworded = true
	s.note(Note{Kind: NoteDemoted, Manner: turn.Provider, Cause: c})
	s.cancel()
	s.open(s.asIs(nil))
	return true
}
