package ledger

import "time"

// Ticket is what a run, or one call of its open batch, waits for: an approval, a
// timer, a job elsewhere. It is redeemed once.
type Ticket struct {
	ID string
	// Kind of what is awaited; whoever redeems must name the same.
	Kind string
	// Call is the operation that waits; empty: the run itself.
	Call string
	// Expires: not redeemable at or after; zero: never.
	Expires time.Time
	Issued  time.Time
	Key     string // of the entry that issued it
	// Redeemed by the entry of that key, of the process of that fence; empty: not
	// yet. A ticket whose call ended otherwise is void: Void says how.
	Redeemed string
	Fence    uint64
	Void     string
	At       time.Time // of redemption
}

func (r *Run) ticket(id string) *Ticket {
	for i := range r.Tickets {
		if r.Tickets[i].ID == id {
			return &r.Tickets[i]
		}
	}
	return nil
}

// live reports whether t is still awaited.
func (t *Ticket) live() bool { return t.Redeemed == "" && t.Void == "" }

// Awaited returns the oldest ticket that is still to be redeemed, nil when none is.
func (r *Run) Awaited() *Ticket {
	for i := range r.Tickets {
		if r.Tickets[i].live() {
			return &r.Tickets[i]
		}
	}
	return nil
}

// gate is the ticket that the run itself waits for, nil: none.
func (r *Run) gate() *Ticket {
	for i := range r.Tickets {
		if t := &r.Tickets[i]; t.live() && t.Call == "" {
			return t
		}
	}
	return nil
}

// void makes the live tickets of a call worthless, or, with all, those of the whole run.
func (r *Run) void(op string, all bool, why string) {
	for i := range r.Tickets {
		if t := &r.Tickets[i]; t.live() && (all || t.Call == op) {
			t.Void = why
		}
	}
}

// issue notes a ticket; the oldest redeemed ones make room.
func (r *Run) issue(t Ticket) error {
	for i := 0; len(r.Tickets) >= MaxTickets && i < len(r.Tickets); {
		if r.Tickets[i].live() {
			i++
			continue
		}
		r.Tickets = append(r.Tickets[:i], r.Tickets[i+1:]...)
	}
	if len(r.Tickets) >= MaxTickets {
		return refuse(ErrTooLarge, r, nil, "%d tickets are awaited", len(r.Tickets))
	}
	r.Tickets = append(r.Tickets, t)
	return nil
}
