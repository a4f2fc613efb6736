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
