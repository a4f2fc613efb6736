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

// lead has something be begun behind something else that is waited for in the same time:
// when that has been answered, or when half of the time is over, so that a store which
// hangs leaves another one the other half.
type lead struct {
	// immutable
	most  func(time.Duration) (context.Context, context.CancelFunc)
	half  time.Duration
	whole context.Context
	done  chan struct{} // closed when what comes first is over

	off bool // before done: there is nothing to be begun any more
}

func (w *allowance) lead() *lead {
	return &lead{most: w.most, half: w.wait / 2, whole: w.left(), done: make(chan struct{})}
}

// over is told when what comes first has been answered or given up. Unless goOn, nothing
// is to be begun behind it.
func (l *lead) over(goOn bool) {
	if l != nil {
		l.off = !goOn
		close(l.done)
	}
}

// waits waits, in another goroutine, until it is time to begin; false: there is nothing
// to be begun.
func (l *lead) waits() bool {
	if l == nil || l.answered() {
		return l == nil || !l.off
	}
	if l.whole.Err() == nil {
		half, cancel := l.most(l.half)
		defer cancel()
		select {
		case <-l.done:
		case <-half.Done():
		case <-l.whole.Done():
		}
	}
	return !l.answered() || !l.off
}

func (l *lead) answered() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
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
