package ledger

// fresh refuses a ticket that cannot be issued.
func (w *writing) fresh(t Ticket) error {
	switch {
	case t.ID == "" || t.Kind == "" || !short(t.ID, t.Kind):
		return refuse(ErrInvalid, w.Run, nil, "a ticket needs an id and a kind of 1 to %d bytes", MaxName)
	case w.ticket(t.ID) != nil:
		return refuse(ErrConflict, w.Run, nil, "ticket %s was issued before", clip(t.ID))
	case !t.Expires.IsZero() && !w.e.At.Before(t.Expires):
		return refuse(ErrInvalid, w.Run, nil, "ticket %s has expired already", clip(t.ID))
	}
	return nil
}

func (w *writing) wait(a Wait) (Effect, error) {
	if w.e.Key == "" {
		return 0, refuse(ErrInvalid, w.Run, nil, "a wait needs a key")
	}
	if t := w.ticket(a.Ticket.ID); t != nil && t.Key == w.e.Key && t.Kind == a.Ticket.Kind && t.Expires.Equal(a.Ticket.Expires) {
		return Replayed, nil
	}
	if w.State == Ended {
		return 0, refuse(ErrEnded, w.Run, nil, "%s", w.Cause)
	}
	if err := w.fresh(a.Ticket); err != nil {
		return 0, err
	}
	t := Ticket{ID: a.Ticket.ID, Kind: a.Ticket.Kind, Expires: a.Ticket.Expires, Issued: w.now, Key: w.e.Key}
	if a.Call == "" {
		if s := w.Open(); s != nil {
			return 0, refuse(ErrIllegal, w.Run, nil, "the batch of step %d is open: its calls may wait", s.N)
		}
		if g := w.gate(); g != nil {
			return 0, refuse(ErrIllegal, w.Run, nil, "the run waits for ticket %s already", g.ID)
		}
		return New, w.issue(t)
	}
	c, err := w.movable(a.Call)
	switch {
	case err != nil:
		return 0, err
	case c.State == Waiting:
		return 0, refuse(ErrIllegal, w.Run, c, "call %s waits for ticket %s already", c.Op, c.Ticket)
	}
	t.Call = c.Op
	c.State, c.Ticket = Waiting, t.ID
	return New, w.issue(t)
}

func (w *writing) resume(a Resume) (Effect, error) {
	if w.e.Key == "" {
		return 0, refuse(ErrInvalid, w.Run, nil, "a resumption needs a key")
	}
	t := w.ticket(a.Ticket)
	switch {
	case t == nil:
		return 0, refuse(ErrTicket, w.Run, nil, "%q was never issued, or long ago", clip(a.Ticket))
	case t.Kind != a.Kind:
		return 0, refuse(ErrTicket, w.Run, nil, "%s is of kind %s, not %q", t.ID, t.Kind, clip(a.Kind))
	case t.Redeemed == w.e.Key && t.Fence == w.e.Fence:
		return Replayed, nil
	case t.Redeemed != "":
		// Also the same key of an older process, which may have gone on from here.
		return 0, refuse(ErrTicket, w.Run, nil, "%s was redeemed already", t.ID)
	case t.Void != "":
		return 0, refuse(ErrTicket, w.Run, nil, "%s is void: %s", t.ID, t.Void)
	case w.State == Ended:
		return 0, refuse(ErrEnded, w.Run, nil, "%s", w.Cause)
	case !t.Expires.IsZero() && !w.e.At.Before(t.Expires):
		return 0, refuse(ErrTicket, w.Run, nil, "%s has expired", t.ID)
	}
	t.Redeemed, t.Fence, t.At = w.e.Key, w.e.Fence, w.now
	if t.Call == "" {
		return New, nil
	}
	c, err := w.movable(t.Call)
	if err != nil {
		return 0, err
	}
	c.State, c.Ticket = Executing, ""
	if n := len(c.Attempts); n == 0 {
		c.Attempts = append(c.Attempts, w.attempt(1))
	} else {
		c.Attempts[n-1] = w.attempt(n)
	}
	return New, nil
}
