package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What an entry is refused for. The run is unchanged then.
var (
	// ErrUnknownRun: nothing is known of such a run.
	ErrUnknownRun = errors.New("ledger: unknown run")
	// ErrUnknownCall: no step of the run asked for it.
	ErrUnknownCall = errors.New("ledger: unknown call")
	// ErrEnded: the run has ended.
	ErrEnded = errors.New("ledger: run has ended")
	// ErrFenced: a newer process has claimed the run.
	ErrFenced = errors.New("ledger: fenced")
	// ErrVersion: the run is not as the writer saw it.
	ErrVersion = errors.New("ledger: version has changed")
	// ErrIllegal: there is no such edge from where the run, or the call, is.
	ErrIllegal = errors.New("ledger: illegal edge")
	// ErrConflict: the same thing was told before, with other content.
	ErrConflict = errors.New("ledger: conflicts with what was told before")
	// ErrTicket: the ticket is unknown, expired, redeemed or of another kind.
	ErrTicket = errors.New("ledger: ticket not redeemable")
	// ErrTooLate: it had to be told before the first batch.
	ErrTooLate = errors.New("ledger: too late")
	// ErrInvalid: the entry makes no sense by itself.
	ErrInvalid = errors.New("ledger: invalid")
	// ErrTooLarge: a limit of the run would be exceeded.
	ErrTooLarge = errors.New("ledger: too large")
)

// Refusal is an entry that was refused: why, and what would be legal instead.
type Refusal struct {
	Err    error // one of the above
	Detail string
	Legal  []string // acts, by name, that the run (the call) would take now
}

func (r *Refusal) Error() string {
	s := r.Err.Error() + ": " + r.Detail
	if len(r.Legal) > 0 {
		s += " (legal: " + strings.Join(r.Legal, ", ") + ")"
	}
	return s
}

func (r *Refusal) Unwrap() error { return r.Err }

func refuse(err error, r *Run, c *Call, format string, args ...any) error {
	return &Refusal{Err: err, Detail: fmt.Sprintf(format, args...), Legal: legal(r, c)}
}

// legal lists the acts that the run takes, or those that c does.
func legal(r *Run, c *Call) []string {
	switch {
	case r.Version == 0:
		return []string{"begin"}
	case r.State == Ended:
		return nil
	case c != nil:
		return legalCall(r, c)
	}
	out := []string{"claim", "end"}
	if len(r.Steps) == 0 && r.Dropped == 0 {
		out = append(out, "declare")
	}
	switch {
	case r.Open() != nil:
		out = append(out, "start", "wait", "result", "lose")
	case r.State == Running:
		out = append(out, "commit", "wait")
	}
	if r.Awaited() != nil {
		out = append(out, "resume")
	}
	slices.Sort(out)
	return out
}

func legalCall(r *Run, c *Call) []string {
	startable := c.State == Requested || c.State == Executing && len(c.Attempts) < c.Policy.attempts()
	switch {
	case c.State.Terminal():
		return nil
	case c.State == Waiting:
		return []string{"lose", "result", "resume"}
	case startable && r.gate() == nil:
		return []string{"lose", "result", "start", "wait"}
	}
	return []string{"lose", "result", "wait"}
}
