package ledger

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Effect is what an entry did.
type Effect uint8

const (
	// New: the run has changed, its version has grown.
	New Effect = iota + 1
	// Replayed: the same was told before; nothing changed.
	Replayed
)

func (e Effect) String() string {
	return spelled([]string{"none", "new", "replayed"}, int(e))
}

// Apply returns r with e applied. r itself is not changed; nil is the run that does
// not exist yet, whose key is needed for what it will be called. On an error, which
// is a [*Refusal], the run is r.
func Apply(key RunKey, r *Run, e Entry) (*Run, Effect, error) {
	if r == nil {
		r = &Run{}
	}
	if e.Do == nil {
		return r, 0, refuse(ErrInvalid, r, nil, "an entry without an act")
	}
	if !short(e.Key) {
		return r, 0, refuse(ErrInvalid, r, nil, "a key of %d bytes, at most %d", len(e.Key), MaxName)
	}
	if _, begins := e.Do.(Begin); r.Version == 0 && !begins {
		return r, 0, refuse(ErrUnknownRun, r, nil, "%s before it began", e.Do.Name())
	}
	w := &writing{Run: r.edit(), key: key, e: e, now: e.At}
	if w.now.Before(r.Updated) {
		w.now = r.Updated
	}
	if err := w.entitled(); err != nil {
		return r, 0, err
	}
	effect, err := w.act()
	switch {
	case err != nil:
		return r, 0, err
	case effect == Replayed:
		return r, Replayed, nil
	case e.Expect != 0 && e.Expect != r.Version:
		return r, 0, refuse(ErrVersion, r, nil, "%d, expected %d", r.Version, e.Expect)
	}
	w.settle()
	w.Version, w.Updated = r.Version+1, w.now
	return w.Run, New, nil
}

// writing is a run while an entry is applied to it.
type writing struct {
	*Run
	key RunKey
	e   Entry
	now time.Time
}

// edit returns a copy whose tickets, steps and open batch may be changed.
func (r *Run) edit() *Run {
	c := *r
	c.Policies, c.Flags = slices.Clip(c.Policies), slices.Clip(c.Flags)
	c.Pending = slices.Clone(c.Pending)
	c.Tickets = slices.Clone(c.Tickets)
	c.Steps = slices.Clone(c.Steps)
	if s := c.Last(); s != nil {
		s.Calls = slices.Clone(s.Calls)
		for i := range s.Calls {
			s.Calls[i].Attempts = slices.Clone(s.Calls[i].Attempts)
		}
	}
	return &c
}

// entitled reports whether the writer may write that act at all.
func (w *writing) entitled() error {
	switch {
	case w.e.Fence == 0:
		if !observed(w.e.Do) {
			return refuse(ErrFenced, w.Run, nil, "%s needs a claim", w.e.Do.Name())
		}
		if w.e.Told && w.Fence != 0 && owned(w.e.Do) {
			return refuse(ErrFenced, w.Run, nil, "%s needs the claim of a run that has one", w.e.Do.Name())
		}
	case w.e.Fence != w.Fence:
		return refuse(ErrFenced, w.Run, nil, "fence %d, the run's is %d", w.e.Fence, w.Fence)
	}
	return nil
}

// observed reports whether an act needs no claim: what the sidecar sees on the
// wire, what opens a run or a claim, and an operator's end.
func observed(a Act) bool {
	switch a := a.(type) {
	case Begin, Claim, Commit, Result, Flag, Infer, Lapse:
		return true
	case End:
		return a.Cause == Cancelled || a.Cause == Stopped
	}
	return false
}

// owned reports whether an act is the business of whoever has claimed the run.
func owned(a Act) bool {
	switch a.(type) {
	case Commit, Result:
		return true
	}
	return false
}

func (w *writing) act() (Effect, error) {
	switch a := w.e.Do.(type) {
	case Begin:
		return w.begin(a)
	case Claim:
		return w.claim(a)
	case Declare:
		return w.declare(a)
	case Commit:
		return w.commit(a)
	case Start:
		return w.start(a)
	case Wait:
		return w.wait(a)
	case Resume:
		return w.resume(a)
	case Result:
		return w.result(a)
	case Lose:
		return w.lose(a)
	case End:
		return w.end(a)
	case Flag:
		return w.flag(a)
	case Infer:
		return w.infer(a)
	case Lapse:
		return w.lapse(a)
	}
	panic("BUG: ledger: an act without a rule: " + w.e.Do.Name())
}

// settle draws what follows from the state of the calls: a batch whose calls are
// all terminal is finalized, and a run waits when nothing of it can go on.
func (w *writing) settle() {
	if w.State == Ended {
		return
	}
	s := w.Open()
	if s != nil {
		s.Finalized = !slices.ContainsFunc(s.Calls, func(c Call) bool { return !c.State.Terminal() })
	}
	w.State = Running
	if w.gate() != nil || s != nil && !s.Finalized && !slices.ContainsFunc(s.Calls, func(c Call) bool {
		return c.State == Requested || c.State == Executing
	}) {
		w.State = Awaiting
	}
}

func (w *writing) begin(a Begin) (Effect, error) {
	if w.Version != 0 {
		if w.ID != a.ID {
			return 0, refuse(ErrConflict, w.Run, nil, "the run is %s, not %s", w.ID, a.ID)
		}
		return Replayed, nil
	}
	if _, err := checkpoint.ParseRunID(string(a.ID)); err != nil {
		return 0, refuse(ErrInvalid, w.Run, nil, "run id: %v", err)
	}
	if !short(a.Thread, string(a.Parent), a.Dialect, a.Model) {
		return 0, refuse(ErrInvalid, w.Run, nil, "a name longer than %d bytes", MaxName)
	}
	w.ID, w.Thread, w.Parent, w.Dialect, w.Model, w.Began = a.ID, a.Thread, a.Parent, a.Dialect, a.Model, w.now
	return New, nil
}

func (w *writing) claim(a Claim) (Effect, error) {
	switch {
	case !short(a.Holder):
		return 0, refuse(ErrInvalid, w.Run, nil, "a holder's name longer than %d bytes", MaxName)
	case w.State == Ended:
		return 0, refuse(ErrEnded, w.Run, nil, "%s", w.Cause)
	case w.e.Key != "" && w.e.Key == w.ClaimKey:
		return Replayed, nil
	}
	w.Fence, w.Holder, w.ClaimKey = checkpoint.NextFence(w.Fence, w.now), a.Holder, w.e.Key
	return New, nil
}

func (w *writing) declare(a Declare) (Effect, error) {
	if w.State == Ended {
		return 0, refuse(ErrEnded, w.Run, nil, "%s", w.Cause)
	}
	for i, p := range a.Policies {
		switch {
		case p.Tool == "" || !short(p.Tool):
			return 0, refuse(ErrInvalid, w.Run, nil, "policy %d names no tool, or one longer than %d bytes", i, MaxName)
		case int(p.Recovery) >= len(recoveries):
			return 0, refuse(ErrInvalid, w.Run, nil, "policy of %s: unknown recovery", p.Tool)
		case p.Attempts < 0 || p.Attempts > MaxAttempts:
			return 0, refuse(ErrInvalid, w.Run, nil, "policy of %s: %d attempts, at most %d", p.Tool, p.Attempts, MaxAttempts)
		}
	}
	if len(a.Policies) > MaxBatch {
		return 0, refuse(ErrTooLarge, w.Run, nil, "%d policies, at most %d", len(a.Policies), MaxBatch)
	}
	if a.Reports == w.Reports && slices.Equal(a.Policies, w.Policies) {
		return Replayed, nil
	}
	if len(w.Steps) > 0 {
		return 0, refuse(ErrTooLate, w.Run, nil, "%d steps are committed", w.Dropped+len(w.Steps))
	}
	w.Reports, w.Policies = a.Reports, slices.Clone(a.Policies)
	return New, nil
}

func (w *writing) end(a End) (Effect, error) {
	switch {
	case a.Cause == 0 || int(a.Cause) >= len(endCauses):
		return 0, refuse(ErrInvalid, w.Run, nil, "an end without a cause")
	case !short(a.Type) || a.Type != "" && a.Cause != Failed:
		return 0, refuse(ErrInvalid, w.Run, nil, "a type of failure for %s, or longer than %d bytes", a.Cause, MaxName)
	case w.State == Ended && w.Cause == a.Cause && w.Failed == a.Type:
		return Replayed, nil
	case w.State == Ended:
		return 0, refuse(ErrEnded, w.Run, nil, "%s", w.Cause)
	}
	w.finish(a.Cause, a.Type)
	return New, nil
}

// finish ends the run, and with it whatever was open.
func (w *writing) finish(c EndCause, kind string) {
	w.giveUp("the run ended first: " + c.String())
	w.void("", true, "the run ended")
	w.State, w.Cause, w.Failed, w.Pending = Ended, c, kind, nil
}

// giveUp makes the open calls indeterminate and finalizes their batch.
func (w *writing) giveUp(why string) {
	s := w.Open()
	if s == nil {
		return
	}
	for i := range s.Calls {
		if c := &s.Calls[i]; !c.State.Terminal() {
			w.void(c.Op, false, why)
			c.State, c.Why, c.Ticket = Indeterminate, why, ""
		}
	}
	s.Finalized = true
}

func (w *writing) flag(a Flag) (Effect, error) {
	switch {
	case a.What == "" || !short(a.What):
		return 0, refuse(ErrInvalid, w.Run, nil, "a flag of %d bytes, 1 to %d", len(a.What), MaxName)
	case w.State == Ended:
		return 0, refuse(ErrEnded, w.Run, nil, "%s", w.Cause)
	case len(w.Flags) >= MaxFlags || slices.Contains(w.Flags, a.What):
		return Replayed, nil
	}
	w.Flags = append(w.Flags, a.What)
	return New, nil
}

// short reports whether names are within bounds and can be printed.
func short(names ...string) bool {
	for _, n := range names {
		if len(n) > MaxName || !utf8.ValidString(n) || strings.ContainsRune(n, 0) {
			return false
		}
	}
	return true
}
