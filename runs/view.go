package runs

import (
	"time"

	"github.com/unbroken-llm/unbroken/ledger"
)

// view spells a run.
func view(r *ledger.Run, doubt string) *Run {
	if r == nil {
		return nil
	}
	v := &Run{
		ID: string(r.ID), Thread: r.Thread, Parent: string(r.Parent), Dialect: r.Dialect, Model: r.Model,
		State: r.State.String(), Cause: r.Cause.String(), Failed: r.Failed, Reports: r.Reports,
		Version: r.Version, Fence: r.Fence, Holder: r.Holder, Began: r.Began, Updated: r.Updated,
		Dropped: r.Dropped, Flags: r.Flags, Pending: len(r.Pending), Doubt: doubt,
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		step := Step{N: s.N, Message: s.Message.String(), Model: s.Model, Finish: s.Finish, At: s.At, Finalized: s.Finalized}
		results := r.Results(s.N)
		for j := range s.Calls {
			c := viewCall(&s.Calls[j])
			if results != nil {
				c.Result = viewResult(results[j])
			}
			step.Calls = append(step.Calls, c)
		}
		v.Steps = append(v.Steps, step)
	}
	for i := range r.Tickets {
		if t := &r.Tickets[i]; t.Redeemed == "" && t.Void == "" {
			v.Tickets = append(v.Tickets, *viewTicket(t))
		}
	}
	return v
}

func viewCall(c *ledger.Call) Call {
	return Call{
		Op: c.Op, ID: c.ID, Name: c.Name, State: c.State.String(), Policy: c.Policy.Recovery.String(),
		Attempts: len(c.Attempts), Ticket: c.Ticket, Why: c.Why,
	}
}

func viewResult(o *ledger.Outcome) *Result {
	if o == nil {
		return nil
	}
	return &Result{Digest: o.Digest.String(), Content: o.Content, Error: o.Error, Wire: o.Wire, Attempt: o.Attempt, At: o.At}
}

func viewTicket(t *ledger.Ticket) *Ticket {
	if t == nil {
		return nil
	}
	v := &Ticket{ID: t.ID, Kind: t.Kind, Call: t.Call}
	if !t.Expires.IsZero() {
		at := t.Expires
		v.Expires = &at
	}
	return v
}

// ticket reads a ticket; an expiry that is absent is none.
func (t Ticket) ticket() ledger.Ticket {
	out := ledger.Ticket{ID: t.ID, Kind: t.Kind}
	if t.Expires != nil {
		out.Expires = t.Expires.UTC().Truncate(time.Microsecond)
	}
	return out
}

// viewRecovery spells an answer. Results of a batch that is not finalized are
// not to be seen, also not here.
func viewRecovery(a ledger.Answer, r *ledger.Run, doubt string) Recovery {
	v := Recovery{
		Advice: Advice(a.Advice.String()), Reason: a.Reason, Claim: a.Claim, Step: a.Step,
		Ticket: viewTicket(a.Ticket), Run: view(r, doubt),
	}
	for i, c := range a.Calls {
		call := viewCall(&r.Open().Calls[i])
		call.Advice, call.Reason, call.Attempt, call.Ticket = Advice(c.Advice.String()), c.Reason, c.Attempt, c.Ticket
		v.Calls = append(v.Calls, call)
	}
	return v
}
