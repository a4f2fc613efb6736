package relay

import (
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/turn"
)

// beyond is the next target behind the current one, of those that are kept for
// prompts that are too long or of the others; -1: there is none. A route is walked
// in one direction, so that it ends.
func (s *Stream) beyond(larger bool) int {
	for i := s.target + 1; i < len(s.cfg.Targets); i++ {
		if s.cfg.Targets[i].Larger == larger {
			return i
		}
	}
	return -1
}

// nextTarget is where a turn goes on that leaves its target. Once a prompt has been
// too long, only targets for those are left.
func (s *Stream) nextTarget(to planner.Where) int {
	return s.beyond(to == planner.Larger || s.overflowed)
}

// option tells the planner about another target.
func (s *Stream) option(to planner.Where) planner.Option {
	i := s.nextTarget(to)
	if i < 0 {
		return planner.Option{}
	}
	o := planner.Option{Exists: true}
	if ms := s.mannersOf(i); len(ms) > 0 {
		o.Manner = ms[0]
	}
	return o
}

// appended is the one manner of dialects whose requests are the very text that the
// model goes on with, on any host.
var appended = []turn.Manner{turn.Prefill}

// mannersOf is how target i can be asked to continue a turn, whoever began it.
func (s *Stream) mannersOf(i int) []turn.Manner {
	if s.traits.Appends {
		return appended
	}
	return s.cfg.Targets[i].Ability.Manners
}

// turnTo makes another target the current one, with the turn as it stands.
func (s *Stream) turnTo(to planner.Where) {
	if to == planner.Here {
		return
	}
	s.target, s.holds.astray = s.nextTarget(to), true
	s.overflowed = s.overflowed || to == planner.Larger
	s.manners, s.tries = s.mannersOf(s.target), 0
}

// asIs is the client's own request, as the current target is to get it. body nil
// means what the first attempt was given.
func (s *Stream) asIs(body []byte) *Attempt {
	model := s.cfg.Targets[s.target].Model
	if model == "" || model == s.req.Model {
		if s.holds.reworded {
			return &Attempt{Body: s.plain, Derived: true}
		}
		return &Attempt{Body: body}
	}
	own := s.plain
	if own == nil {
		own = s.req.Body
	}
	name := append(jsonwalk.Escape([]byte{'"'}, []byte(model)), '"')
	if renamed := jsonwalk.SetMember(nil, own, "model", name); renamed != nil {
		return &Attempt{Body: renamed, Derived: true}
	}
	return &Attempt{Body: body} // no object: the target will say what it thinks of it
}

// heldBack takes an attempt back that was never made.
func (s *Stream) heldBack() {
	s.sum.Attempts--
	s.tries--
	if s.plan.how == reattach {
		s.holds.attached--
	}
}

// lineUp: the driver has the attempt wait its turn. The provider's clocks stand
// still; the waiting budget runs.
func (s *Stream) lineUp() {
	s.phase, s.linedUp = queued, s.now
}

// sent: its turn has come, if it waited for one.
func (s *Stream) sent(probe bool) {
	s.probing = probe
	if s.phase != queued {
		return
	}
	s.outOfLine()
	s.phase = opening
	s.watchTarget()
}

// outOfLine takes the time in line from the waiting budget.
func (s *Stream) outOfLine() { s.waitLeft = max(0, s.waitLeft-s.now.Sub(s.linedUp)) }

// crowdedOut: its turn did not come in time.
func (s *Stream) crowdedOut() {
	s.outOfLine()
	s.heldBack()
	s.interrupted(interrupt.FromEnd(interrupt.Ended{How: interrupt.Crowded, NotSent: true, Detail: "waited too long for its turn"}))
}

// watchTarget starts the clocks of an attempt.
func (s *Stream) watchTarget() {
	s.watch = interrupt.NewWatch(s.cfg.Watch, interrupt.Call{
		Whole: !s.req.Stream,
		Pings: s.cfg.Targets[s.target].Ability.Pings,
	}, s.now)
}

// aboutTheTarget reports whether a refusal may mean the target's key or its name
// for the model rather than the client's request.
func aboutTheTarget(c interrupt.Cause) bool {
	return c.Status == 401 || c.Status == 403 || c.Status == 404
}
