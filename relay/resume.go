package relay

import (
	"fmt"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/turn"
)

// Resume returns the stream of a request whose turn another process left
// unfinished (or finished, a moment ago): log is its checkpoint. The client gets
// what was said, replayed as one ordinary stream, then the live rest, with a fresh
// budget (DESIGN §8). An error means that the log cannot be read; the request is then
// a new one.
//
// The log goes on: what is persisted is to be appended at the end of it.
func Resume(c Config, d dialect.Dialect, req *dialect.Request, log []byte, now time.Time) (*Stream, *Effects, error) {
	s := newStream(c, d, req, now)
	said, err := s.mark.Replay(log)
	if err != nil {
		return nil, nil, fmt.Errorf("resume turn: %w", err)
	}
	s.offset, s.taken = s.mark.Size(), true
	s.begin(now)
	s.holds.grip = dialect.Grip{ID: said.Held}
	if s.grip().Held() && !said.Finished() {
		// The provider says it all again, as it said it to the client before.
		s.holds.left, s.healing = said, true
		s.goOn()
		return s, s.end(), nil
	}
	s.carryOn(said)
	return s, s.end(), nil
}

// carryOn shows a client what was said of a turn that was taken over, and goes on
// with it.
func (s *Stream) carryOn(said *turn.Snapshot) {
	s.holds.left = nil
	s.refold()
	s.holding, s.held, s.shown = false, s.held[:0], extent{}
	s.said = turn.Snapshot{Head: said.Head, Usage: said.Usage, Seq: 0}
	s.mark.Recede(&s.said)
	s.inherit(said)
	s.tokens.count(said.Usage)
	lost, again := untold(said)
	if lost && !again {
		s.fail(interrupt.Cause{Kind: interrupt.ConnectionReset, Message: ErrUntold.Error()}, "untold", false)
		return
	}
	if again || said.Head == nil || len(s.said.Blocks) == 0 && !said.Finished() {
		// Nothing that a client could be shown.
		s.said = turn.Snapshot{}
		s.mark.Recede(&s.said)
		s.out, s.plan = s.out[:0], pendingPlan{}
		s.startOver()
		return
	}
	s.openGate(Head{Status: 200, Stream: true})
	s.visible, s.healing = true, true
	s.out = s.d.Replay(s.out[:0], s.req, &s.said)
	s.touch(1)
	if said.Finished() {
		s.said.Ends = said.Ends
		s.replayed()
		return
	}
	s.goOn()
}

// startOver sends the request of a turn again of which no client has anything. Its
// process had sent it, as far as anybody knows: what must not happen twice is not
// sent again.
func (s *Stream) startOver() {
	if s.req.Committed || len(s.req.HostedTools) > 0 {
		s.goOn()
		return
	}
	s.open(s.asIs(nil))
}

// goOn decides how to go on with a turn whose process is gone.
func (s *Stream) goOn() {
	cause := interrupt.Cause{Kind: interrupt.ConnectionReset, Message: "the process that held the turn is gone"}
	s.first = refusal{set: true, cause: cause}
	p := planner.Decide(s.facts(cause))
	s.note(Note{Kind: NoteInterrupted, Cause: cause, Plan: p, Manner: p.Manner, Said: s.said.EstimateTokens()})
	s.turnTo(p.To)
	s.act(p, cause)
}

// inherit takes over what of a turn a new client can be given. It never saw an
// unfinished call, dead reasoning or what was withdrawn, so that for it they never
// were.
func (s *Stream) inherit(said *turn.Snapshot) {
	for i := range said.Blocks {
		b := said.Blocks[i]
		switch {
		case b.Withdrawn:
			continue
		case said.Finished():
			// The provider's own answer, valid or not.
		case b.IsCall() && !b.Complete():
			continue
		case b.Kind == turn.Reasoning && !b.Closed && s.traits.SignedReasoning:
			continue
		}
		if !s.traits.IndexCallsOnly || b.IsCall() {
			b.Index = s.said.NextIndex(s.traits.IndexCallsOnly)
		}
		s.said.Blocks = append(s.said.Blocks, b)
	}
	if b := s.said.Last(); b != nil && b.Kind == turn.Prose && len(b.Text) > 0 && !said.Finished() {
		// Its end waited for what comes next, as it does in a live turn: nothing
		// did, so that the text can go on in its block.
		b.Closed = false
	}
}

// replayed ends the replay of a turn that had ended.
func (s *Stream) replayed() {
	e := s.said.End()
	s.ends, s.durable = true, true
	s.fx.Turn, s.fx.Again = &s.said, true
	s.render(dialect.Ending{Why: e.Why, Reason: e.Reason, Usage: s.said.Usage})
	s.finalize(Clean, "replayed")
}
