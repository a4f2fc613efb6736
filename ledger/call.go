package ledger

// named finds the call that ref names. It can be changed only if its step is open.
func (w *writing) named(ref string) (*Call, error) {
	s, c := w.find(ref)
	if c == nil {
		return nil, refuse(ErrUnknownCall, w.Run, nil, "%q", clip(ref))
	}
	if s.Finalized && !c.State.Terminal() {
		panic("BUG: ledger: a finalized step with an open call")
	}
	return c, nil
}

// movable is named for acts that need a run that goes on and a call that is open.
func (w *writing) movable(ref string) (*Call, error) {
	c, err := w.named(ref)
	switch {
	case err != nil:
		return nil, err
	case w.State == Ended:
		return nil, refuse(ErrEnded, w.Run, nil, "%s", w.Cause)
	case c.State.Terminal():
		return nil, refuse(ErrIllegal, w.Run, c, "call %s is %s", c.Op, c.State)
	}
	return c, nil
}

func (w *writing) start(a Start) (Effect, error) {
	if w.e.Key == "" || a.N < 1 {
		return 0, refuse(ErrInvalid, w.Run, nil, "an attempt needs a key and a number from 1")
	}
	c, err := w.movable(a.Call)
	if err != nil {
		return 0, err
	}
	if t := w.gate(); t != nil {
		return 0, refuse(ErrIllegal, w.Run, c, "the run waits for ticket %s", t.ID)
	}
	n := len(c.Attempts)
	switch {
	case c.State == Waiting:
		return 0, refuse(ErrIllegal, w.Run, c, "call %s waits for ticket %s", c.Op, c.Ticket)
	case a.N == n && c.current().Key == w.e.Key && c.current().Fence == w.e.Fence:
		return Replayed, nil
	case a.N <= n:
		// Also the same key of an older process: its attempt may have had its
		// effect, and a successor must not take it for its own.
		return 0, refuse(ErrConflict, w.Run, c, "attempt %d of %s was announced already", a.N, c.Op)
	case a.N > n+1:
		return 0, refuse(ErrIllegal, w.Run, c, "attempt %d of %s, the next is %d", a.N, c.Op, n+1)
	case a.N > c.Policy.attempts():
		return 0, refuse(ErrIllegal, w.Run, c, "attempt %d of %s: policy %s allows %d", a.N, c.Op, c.Policy.Recovery, c.Policy.attempts())
	}
	c.State = Executing
	c.Attempts = append(c.Attempts, w.attempt(a.N))
	return New, nil
}

func (w *writing) attempt(n int) Attempt {
	return Attempt{N: n, Fence: w.e.Fence, Key: w.e.Key, At: w.now}
}

// current returns the attempt under way; there is one when any was started.
func (c *Call) current() *Attempt { return &c.Attempts[len(c.Attempts)-1] }

func (w *writing) result(a Result) (Effect, error) {
	if len(a.Content) > 0 || a.Digest == (Digest{}) {
		sum := Sum(a.Content)
		if a.Digest != (Digest{}) && a.Digest != sum {
			return 0, refuse(ErrInvalid, w.Run, nil, "the digest is not that of the content")
		}
		a.Digest = sum
	}
	c, err := w.named(a.Call)
	if err != nil {
		return 0, err
	}
	wire := w.e.Fence == 0 && !w.e.Told
	switch {
	case c.State == Done && c.Result.Wire == wire && (c.Result.Digest != a.Digest || c.Result.Error != a.Error):
		return 0, refuse(ErrConflict, w.Run, c, "call %s has another result", c.Op)
	case c.State == Done:
		return Replayed, nil
	case w.State == Ended:
		return 0, refuse(ErrEnded, w.Run, nil, "%s", w.Cause)
	case c.State == Indeterminate:
		return 0, refuse(ErrIllegal, w.Run, c, "call %s is indeterminate: %s", c.Op, c.Why)
	case a.Attempt < 0 || a.Attempt > len(c.Attempts):
		return 0, refuse(ErrIllegal, w.Run, c, "attempt %d of %s was never announced", a.Attempt, c.Op)
	case a.Attempt != 0 && a.Attempt != len(c.Attempts):
		return 0, refuse(ErrConflict, w.Run, c, "attempt %d of %s is not the current one, %d", a.Attempt, c.Op, len(c.Attempts))
	case len(a.Content) > MaxResult:
		return 0, refuse(ErrTooLarge, w.Run, c, "a result of %d bytes, at most %d: tell its digest", len(a.Content), MaxResult)
	case w.kept()+len(a.Content) > MaxResults:
		return 0, refuse(ErrTooLarge, w.Run, c, "results of a batch of more than %d bytes: tell its digest", MaxResults)
	}
	w.void(c.Op, false, "the call has a result")
	c.State, c.Ticket = Done, ""
	c.Result = &Outcome{Digest: a.Digest, Content: append([]byte(nil), a.Content...), Error: a.Error, Wire: wire, Attempt: len(c.Attempts), At: w.now}
	return New, nil
}

// kept is the size of the open batch's results.
func (w *writing) kept() (n int) {
	if s := w.Open(); s != nil {
		for i := range s.Calls {
			if o := s.Calls[i].Result; o != nil {
				n += len(o.Content)
			}
		}
	}
	return n
}

func (w *writing) lose(a Lose) (Effect, error) {
	if a.Why == "" || !short(a.Why) {
		return 0, refuse(ErrInvalid, w.Run, nil, "a reason of 1 to %d bytes is needed", MaxName)
	}
	c, err := w.named(a.Call)
	if err == nil && c.State == Indeterminate {
		return Replayed, nil
	}
	if c, err = w.movable(a.Call); err != nil {
		return 0, err
	}
	w.void(c.Op, false, "the call was given up")
	c.State, c.Why, c.Ticket = Indeterminate, a.Why, ""
	return New, nil
}

// clip bounds what a message quotes of a client's text.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
