package proxy

import (
	"context"
	"time"
)

// allowance is what one batch of effects may wait for stores: AckWait, over all that it
// waits for together. The clock runs from the first wait on.
type allowance struct {
	// most begins a time of that length; [context.WithTimeout] but in tests.
	most   func(time.Duration) (context.Context, context.CancelFunc)
	wait   time.Duration
	ctx    context.Context // nil: nothing was waited for yet
	cancel context.CancelFunc
	acked  bool // the checkpoint store has answered
}

func (d *drive) allowance() allowance {
	return allowance{most: d.srv.ackClock, wait: d.req.under.cfg.AckWait}
}

// left is done when the time is over.
func (w *allowance) left() context.Context {
	if w.ctx == nil {
		w.ctx, w.cancel = w.most(w.wait)
	}
	return w.ctx
}

// waits waits until done is closed. It returns false if the time was over first.
func (w *allowance) waits(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
	}
	select {
	case <-done:
		return true
	case <-w.left().Done():
		return false
	}
}

// leads waits for what is to be done before something else that is waited for, for half of
// the time at most. It returns false if that was over first.
func (w *allowance) leads(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
	}
	whole := w.left()
	if whole.Err() != nil {
		return false
	}
	half, cancel := w.most(w.wait / 2)
	defer cancel()
	select {
	case <-done:
		return true
	case <-half.Done():
	case <-whole.Done():
	}
	return false
}

// look is for one more question to the checkpoint store, without which nothing may
// leave. A store that has just answered is asked though others used the time up; one
// that has not is asked in what is left of it.
func (w *allowance) look() (context.Context, context.CancelFunc) {
	if ctx := w.left(); !w.acked || ctx.Err() == nil {
		return ctx, func() {}
	}
	return w.most(w.wait)
}

// over ends it.
func (w *allowance) over() {
	if w.ctx != nil {
		w.cancel()
	}
}

// acknowledging is the clock of [allowance].
func acknowledging(most time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), most)
}
