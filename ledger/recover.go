package ledger

import "fmt"

// Advice is what may be done now, with a run or with one call of its open batch.
type Advice uint8

const (
	// Unknown: the facts do not suffice. Whoever must go on asks a person.
	Unknown Advice = iota
	// Redeliver the end of the run; nothing is to be executed.
	Redeliver
	// NextStep: ask for the next inference, with the results of the last batch.
	NextStep
	// SettleBatch: do what is said of each call, then the next inference.
	SettleBatch
	// AwaitTicket: only the ticket named, of its kind, lets it go on.
	AwaitTicket
	// StandDown: another process has claimed the run.
	StandDown
	// Keep: the call is terminal.
	Keep
	// Execute it, by its gate and announced first, as the attempt named.
	Execute
	// ReplayCall: execute it again, announced first, as the attempt named.
	ReplayCall
	// ReconnectCall: announce the attempt named, then ask what became of the
	// operation, by its id.
	ReconnectCall
	// InFlight: the process that holds the run announced it and may be at it.
	InFlight
	// GiveUp: mark it indeterminate: it was begun, and nobody can know.
	GiveUp
)

var advices = [...]string{
	"unknown", "redeliver_end", "next_step", "settle_batch", "await_ticket", "stand_down",
	"keep", "execute", "replay", "reconnect", "in_flight", "indeterminate",
}

func (a Advice) String() string { return spelled(advices[:], int(a)) }

// Asker is who asks what may be done, and how far its store can be trusted.
type Asker struct {
	// Fence is its claim; 0: it has none, and must claim the run before it acts.
	Fence uint64
	// Doubt says why the record may not be the newest (a fail-over that may have
	// lost writes, no answer); empty: it is.
	Doubt string
}

// Answer is what may be done with a run.
type Answer struct {
	Advice Advice
	Reason string // never empty
	// Claim: whatever is done needs a claim first.
	Claim  bool
	Step   int     // the open one, or the last
	Ticket *Ticket // with AwaitTicket
	Calls  []CallAnswer
}

// CallAnswer is what may be done with one call.
type CallAnswer struct {
	ID, Op, Name string
	State        CallState
	Advice       Advice
	Reason       string // never empty
	Attempt      int    // the number to announce, with Execute, ReplayCall and ReconnectCall
	Ticket       string // with AwaitTicket
}

// Recover says what may be done with r now, nil being a run of which nothing is
// known. It is total. First match wins; an open batch comes before the next
// inference.
func Recover(r *Run, by Asker) Answer {
	if r == nil {
		if by.Doubt != "" {
			return Answer{Advice: Unknown, Reason: "nothing is known of the run, and the store is in doubt: " + by.Doubt}
		}
		return Answer{Advice: Unknown, Reason: "nothing is known of the run"}
	}
	a := Answer{Step: r.Dropped + len(r.Steps), Claim: by.Fence == 0 && r.State != Ended}
	s := r.Open()
	switch gate := r.gate(); {
	case r.State == Ended:
		// Ended absorbs, so that what a store may have lost cannot have undone it.
		a.Advice, a.Reason = Redeliver, "the run has ended: "+r.Cause.String()
	case by.Fence != 0 && by.Fence != r.Fence:
		a.Advice, a.Reason = StandDown, fmt.Sprintf("the run was claimed by another process, fence %d", r.Fence)
	case s != nil:
		r.batch(&a, s, by)
	case by.Doubt != "":
		a.Advice, a.Reason = Unknown, "a batch may have been asked for since: "+by.Doubt
	case len(r.Pending) > 0 && !r.Reports:
		// Of an application that does, no attempt can be announced at a call that is
		// not recorded: whatever that turn was, nothing of it was begun.
		a.Advice, a.Reason = Unknown, "an inference was asked for and its turn is not recorded, so that what it asked for may have run unseen"
	case gate != nil:
		a.Advice, a.Reason, a.Ticket = AwaitTicket, "the run waits for a ticket of kind "+gate.Kind, gate
	case len(r.Steps) == 0:
		a.Advice, a.Reason = NextStep, "no step is committed"
	default:
		a.Advice, a.Reason = NextStep, "the last batch is finalized"
	}
	return a
}

// batch answers for an open batch.
func (r *Run) batch(a *Answer, s *Step, by Asker) {
	waits, unknown := 0, 0
	open := 0
	for i := range s.Calls {
		c := &s.Calls[i]
		one := r.call(c, by)
		one.ID, one.Op, one.Name, one.State = c.ID, c.Op, c.Name, c.State
		a.Calls = append(a.Calls, one)
		if c.State.Terminal() {
			continue
		}
		open++
		switch one.Advice {
		case AwaitTicket:
			waits++
		case Unknown:
			unknown++
		}
	}
	switch {
	case unknown > 0:
		a.Advice, a.Reason = Unknown, fmt.Sprintf("of %d open calls of step %d, %d may or may not have run", open, s.N, unknown)
	case waits == open:
		a.Advice, a.Reason, a.Ticket = AwaitTicket, fmt.Sprintf("all %d open calls of step %d wait", open, s.N), r.Awaited()
	default:
		a.Advice, a.Reason = SettleBatch, fmt.Sprintf("step %d has %d open calls", s.N, open)
	}
}

// call answers for one call of the open batch.
func (r *Run) call(c *Call, by Asker) CallAnswer {
	next := len(c.Attempts) + 1
	switch c.State {
	case Done:
		return CallAnswer{Advice: Keep, Reason: "it has a result"}
	case Indeterminate:
		return CallAnswer{Advice: Keep, Reason: "it was given up: " + c.Why}
	}
	if by.Doubt != "" {
		return CallAnswer{Advice: Unknown, Reason: "more may have happened than is recorded: " + by.Doubt}
	}
	switch {
	case c.State == Waiting:
		return CallAnswer{Advice: AwaitTicket, Reason: "it waits for its ticket", Ticket: c.Ticket}
	case c.State == Requested && !r.Reports:
		return CallAnswer{Advice: Unknown, Reason: "the application does not report attempts before their effects, so that it may have run unseen"}
	case c.State == Requested:
		if t := r.gate(); t != nil {
			return CallAnswer{Advice: AwaitTicket, Reason: "the run waits for a ticket of kind " + t.Kind, Ticket: t.ID}
		}
		return CallAnswer{Advice: Execute, Reason: "it was requested and no attempt was announced", Attempt: 1}
	case c.current().Fence == r.Fence:
		return CallAnswer{Advice: InFlight, Reason: "the process that holds the run announced it; a claim takes it over"}
	case next > c.Policy.attempts():
		return CallAnswer{Advice: GiveUp, Reason: fmt.Sprintf("attempt %d was announced and its process is gone; policy %s allows no other", next-1, c.Policy.Recovery)}
	case c.Policy.Recovery == Reconnect:
		return CallAnswer{Advice: ReconnectCall, Reason: fmt.Sprintf("attempt %d was announced and its process is gone", next-1), Attempt: next}
	}
	return CallAnswer{Advice: ReplayCall, Reason: fmt.Sprintf("attempt %d was announced and its process is gone", next-1), Attempt: next}
}
