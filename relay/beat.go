package relay

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

// pulse bridges silence towards one client. Where the dialect can, the sign of life is
// a drip, behind which the client's stream stands inside an event until something is
// written (DESIGN §5).
type pulse struct {
	due  bool  // the step is to end with a sign of life
	open bool  // the last thing that left was a drip
	had  bool  // so it was when the step began
	seq  int64 // of the client's message when the step began
	d    dialect.Dialect
	buf  []byte // what leaves behind a drip
}

// begin begins a step. seq is the number of the last event that the client has.
func (p *pulse) begin(seq int64) { p.due, p.had, p.seq = false, p.open, seq }

// beat asks for a sign of life in this step. ended: the client has the finish, behind
// which nothing may follow that a drip could become part of.
func (p *pulse) beat(ended bool) {
	_, drops := p.d.(dialect.Dripper)
	p.due = !drops || !ended
}

// write returns out as it is to leave: a sign of life where nothing else does, or the
// rest of the event that a drip began. over: nothing follows it, and the end is a good
// one. It returns whether out was replaced by a sign of life.
func (p *pulse) write(out []byte, req *dialect.Request, said *turn.Snapshot, over bool) ([]byte, bool) {
	drops, _ := p.d.(dialect.Dripper)
	switch {
	case p.open && (len(out) > 0 || over):
		whole := drops.Undrip(p.buf[:0], out, said)
		p.buf, p.open = out, false
		return whole, false
	case len(out) > 0 || over || !p.due:
		return out, false
	case drops != nil:
		out = drops.Drip(out, said, p.open)
		p.open = true
	default:
		out = p.d.Heartbeat(out, req, said)
	}
	return out, len(out) > 0
}

// instead renders an error for the client in place of what the last step wanted to
// send, which must not leave. head is the message's.
func (p *pulse) instead(head []byte, f dialect.Failure) []byte {
	said := turn.Snapshot{Head: head, Seq: p.seq}
	b := p.d.Fail(nil, &said, f)
	if drops, ok := p.d.(dialect.Dripper); ok && p.had {
		return drops.Undrip(nil, b, &said)
	}
	return b
}

// seq is the number of the last event that the client has.
func (s *Stream) seq() int64 {
	switch {
	case !s.gate:
		return 0
	case s.holding:
		return s.shown.seq
	}
	return s.said.Seq
}

// beat bridges silence, or ends it: see pulse.
func (s *Stream) beat() {
	if !s.pulse.due && !s.pulse.open {
		return
	}
	said := &s.said
	if s.holding {
		seen := s.said
		said, seen.Seq = &seen, s.shown.seq
	}
	var alone bool
	if s.out, alone = s.pulse.write(s.out, s.req, said, s.fx.End == Clean); alone {
		s.sum.Heartbeats++
	}
	s.lastOut = s.now // where a framing has none, too: the next is due later
}

// Instead renders the dialect's error for the client in place of the last step's
// Client, which must not leave any more. It changes nothing.
func (s *Stream) Instead(f dialect.Failure) []byte { return s.pulse.instead(s.said.Head, f) }

// Instead is [Stream.Instead].
func (f *Follower) Instead(why dialect.Failure) []byte { return f.pulse.instead(f.said.Head, why) }
