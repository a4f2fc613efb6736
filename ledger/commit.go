package ledger

import "slices"

func (w *writing) commit(a Commit) (Effect, error) {
	if w.committed(a) || a.Again && !w.awaits(a) {
		return Replayed, nil
	}
	if w.State == Ended {
		return 0, refuse(ErrEnded, w.Run, nil, "%s", w.Cause)
	}
	if err := w.sound(a); err != nil {
		return 0, err
	}
	if t := w.gate(); t != nil {
		return 0, refuse(ErrIllegal, w.Run, nil, "the run waits for ticket %s", t.ID)
	}
	if s := w.Open(); s != nil {
		if !a.Supersede {
			return 0, refuse(ErrIllegal, w.Run, nil, "the batch of step %d is open", s.N)
		}
		w.giveUp("another turn took the place of its own")
	}
	w.consume()
	n := w.Dropped + len(w.Steps) + 1
	step := Step{N: n, Message: a.Message, Lineage: a.Lineage, Alias: a.Alias, Model: a.Model, Finish: a.Finish, At: w.now}
	for _, c := range a.Calls {
		if slices.ContainsFunc(step.Calls, func(k Call) bool { return k.ID == c.ID }) {
			continue // the same id twice in one turn is one call
		}
		step.Calls = append(step.Calls, Call{
			ID: c.ID, Op: Operation(w.key, n, c.ID), Name: c.Name, Args: c.Args, Policy: w.policy(c.Name),
		})
	}
	step.Finalized = len(step.Calls) == 0
	w.Steps = append(w.Steps, step)
	w.Pending = nil // whoever has this turn has gone past them
	w.forget()
	switch {
	case a.Ticket != nil:
		t := *a.Ticket
		return New, w.issue(Ticket{ID: t.ID, Kind: t.Kind, Expires: t.Expires, Issued: w.now, Key: w.e.Key})
	case step.Finalized && !a.Paused:
		w.finish(Completed, "")
	}
	return New, nil
}

// committed reports whether a is in the run: as its last step, or as one that it got
// since it was asked for. Without a lineage the same message may come twice in a run,
// but not while its batch is open.
func (w *writing) committed(a Commit) bool {
	if s := w.Last(); s != nil && s.says(a) && (a.Lineage != "" || !s.Finalized || w.State == Ended) {
		return true
	}
	return a.Lineage != "" && slices.ContainsFunc(w.Steps, func(s Step) bool { return s.N > a.Since && s.says(a) })
}

// says reports whether a step is a's turn.
func (s *Step) says(a Commit) bool {
	if s.Message != a.Message || s.Lineage != a.Lineage {
		return false
	}
	for _, c := range a.Calls {
		if !slices.ContainsFunc(s.Calls, func(k Call) bool { return k.ID == c.ID && k.Name == c.Name && k.Args == c.Args }) {
			return false
		}
	}
	return true
}

// awaits reports whether a turn that may be old is the one that the run lacks.
func (w *writing) awaits(a Commit) bool {
	last := w.Last()
	return w.State != Ended &&
		(last == nil || last.Before(a.Prior) || a.Lineage != "" && slices.Contains(w.Pending, a.Lineage))
}

// sound refuses a step that makes no sense whatever the run.
func (w *writing) sound(a Commit) error {
	switch {
	case len(a.Calls) > MaxBatch:
		return refuse(ErrTooLarge, w.Run, nil, "%d calls in a step, at most %d", len(a.Calls), MaxBatch)
	case !short(a.Lineage, a.Alias, a.Model, a.Finish):
		return refuse(ErrInvalid, w.Run, nil, "a name longer than %d bytes", MaxName)
	}
	for i, c := range a.Calls {
		if c.ID == "" || c.Name == "" || !short(c.ID, c.Name) {
			return refuse(ErrInvalid, w.Run, nil, "call %d has no id or name of 1 to %d bytes", i, MaxName)
		}
	}
	if a.Ticket == nil {
		return nil
	}
	return w.fresh(*a.Ticket)
}

// consume drops the contents of the last batch's results: the inference that is
// committed now was asked for with them.
func (w *writing) consume() {
	s := w.Last()
	if s == nil {
		return
	}
	for i := range s.Calls {
		if c := &s.Calls[i]; c.Result != nil && c.Result.Content != nil {
			digest := *c.Result
			digest.Content = nil
			c.Result = &digest
		}
	}
}

// forget drops the oldest steps beyond the limit. They are finalized: an open batch
// is always the last.
func (w *writing) forget() {
	if over := len(w.Steps) - MaxSteps; over > 0 {
		w.Steps = slices.Clone(w.Steps[over:])
		w.Dropped += over
	}
}
