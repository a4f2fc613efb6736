package gauge

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// upload measures one call with a large body through a process that has just started, so
// that nothing of an earlier one is in its memory: how far its peak is above what it was,
// for each byte. One is a single copy; a proxy that can ask again must keep one.
func upload(ctx context.Context, r *running, sc Scenario) (s Sample, err error) {
	// What is measured is the body, not a first call's tables and pools.
	small := sc
	small.Prompt = 2000
	if err := once(ctx, r.addr, small); err != nil {
		return s, err
	}
	before, err := r.proc.rebase()
	if err != nil {
		return s, err
	}
	began := time.Now()
	s, err = spent(r.proc, func() (int64, error) { return 1, once(ctx, r.addr, sc) })
	if err != nil {
		return s, err
	}
	took := time.Since(began)
	peak, err := r.proc.peak()
	s.P50, s.P99 = took.Microseconds(), took.Microseconds()
	s.Peak = float64(peak-before) / float64(sc.Prompt)
	return s, err
}

// once makes one call of a scenario.
func once(ctx context.Context, addr string, sc Scenario) error {
	l := newLoad(addr, sc)
	l.once = true
	unhook := context.AfterFunc(ctx, l.stop)
	defer unhook()
	l.start(1)
	l.wait.Wait()
	l.stop()
	if err := errors.Join(l.Err(), ctx.Err()); err != nil {
		return fmt.Errorf("a call with %d bytes: %w", sc.Prompt, err)
	}
	return nil
}
