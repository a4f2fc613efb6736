package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// writer is one turn's [checkpoint.Writer]. queue.mu guards all that changes.
type writer struct {
	// immutable
	store *Store
	fence checkpoint.Fence
	keys  []string
	head  checkpoint.Record // identity, owner, times; no log
	lost  func(error)

	log   strings.Builder // of the log, what begins at base
	base  int64
	acked int64 // Redis has the log up to here
	state checkpoint.State
	// What is to be done, in this order; see next.
	restore bool
	again   int  // restores so far
	marked  int  // how many Marks are not written; see job.marked
	settled bool // then released
	forget  bool // deleted, instead of all that
	check   bool // ask whether the fence still holds

	renewed time.Time // when its time to live in Redis last began anew; zero: it must
	dirty   bool
	since   time.Time // when the oldest byte not yet acknowledged was queued
	wrote   time.Time // when Redis last acknowledged something
	ended   time.Time // when Settle or Forget was called
	waiting []waiter
	dead    bool
	err     error // why it is lost
}

// waiter is a Sync that waits for the log to be stored up to a size.
type waiter struct {
	size int64
	ch   chan error // buffered
}

// Hold implements [checkpoint.Behind].
func (s *Store) Hold(f checkpoint.Fence, owner checkpoint.Owner, r checkpoint.Record, lost func(error)) checkpoint.Writer {
	now := time.Now()
	w := &writer{store: s, fence: f, keys: s.keys.turn(f.Key), head: r, lost: lost, state: r.State, wrote: now}
	w.log.Write(r.Log)
	w.acked = int64(len(r.Log))
	w.state.Causes = slices.Clone(r.State.Causes)
	w.head.Owner, w.head.Log, w.head.State = owner, nil, checkpoint.State{}
	if w.head.Created.IsZero() {
		w.head.Created = now
	}
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hold(w)
	q.bytes += int64(w.log.Len())
	q.room(0, s.cfg.Memory)
	return w
}

// Append implements [checkpoint.Writer].
func (w *writer) Append(offset int64, p []byte) {
	q := &w.store.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	switch end := w.end(); {
	case w.dead || w.settled || w.forget:
		return
	case offset > end || offset < 0:
		w.die(fmt.Errorf("%w: append at %d of %d", checkpoint.ErrGap, offset, end))
		return
	case end-offset >= int64(len(p)):
		return // known
	default:
		p = p[end-offset:]
		if end+int64(len(p)) > w.store.cfg.MaxTurn {
			w.die(fmt.Errorf("%w: turn of %d bytes, at most %d", checkpoint.ErrTooLarge, end+int64(len(p)), w.store.cfg.MaxTurn))
			return
		}
	}
	if !q.room(int64(len(p)), w.store.cfg.Memory) {
		w.die(fmt.Errorf("%w: %d bytes wait for redis", checkpoint.ErrTooLarge, q.bytes))
		return
	}
	if w.end() == w.acked {
		w.since = time.Now()
	}
	if w.log.Cap()-w.log.Len() < len(p) {
		w.log.Grow(len(p)) // doubles; Write would add a quarter, and copy a byte four times
	}
	w.log.Write(p)
	q.bytes += int64(len(p))
	q.fresh += len(p)
	q.put(w, false, &w.store.cfg)
}

// Mark implements [checkpoint.Writer].
func (w *writer) Mark(s checkpoint.State) { w.mark(s, false, false) }

// Settle implements [checkpoint.Writer].
func (w *writer) Settle(s checkpoint.State) { w.mark(s, true, false) }

// Forget implements [checkpoint.Writer].
func (w *writer) Forget() { w.mark(checkpoint.State{}, false, true) }

func (w *writer) mark(s checkpoint.State, settle, forget bool) {
	q := &w.store.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.dead || w.settled || w.forget {
		return
	}
	if settle || forget {
		w.ended = time.Now()
	}
	if w.settled, w.forget = settle, forget; !forget {
		w.state = s
		w.marked++
		w.state.Causes = slices.Clone(s.Causes)
	}
	q.put(w, settle || forget, &w.store.cfg)
}

// Sync implements [checkpoint.Writer].
func (w *writer) Sync(ctx context.Context) error {
	err := w.sync(ctx)
	if isUnavailable(err) {
		w.store.counts.unacked.Add(1)
	}
	return err
}

func (w *writer) sync(ctx context.Context) error {
	q := &w.store.queue
	q.mu.Lock()
	switch {
	case w.dead:
		defer q.mu.Unlock()
		return w.err
	case w.acked == w.end() && !w.restore:
		q.mu.Unlock()
		return nil
	case w.store.away():
		q.mu.Unlock()
		return errAway
	}
	me := waiter{w.end(), make(chan error, 1)}
	w.waiting = append(w.waiting, me)
	q.put(w, true, &w.store.cfg)
	q.mu.Unlock()
	select {
	case err := <-me.ch:
		return err
	case <-ctx.Done():
		q.mu.Lock()
		w.waiting = slices.DeleteFunc(w.waiting, func(o waiter) bool { return o.ch == me.ch })
		q.mu.Unlock()
		return fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, ctx.Err())
	}
}

// end is the size of the log. mu is held, as for all that follows.
func (w *writer) end() int64 { return w.base + int64(w.log.Len()) }

func (w *writer) unwritten() bool {
	return w.acked < w.end() || w.restore || w.marked > 0 || w.settled || w.forget
}

// trim forgets what is acknowledged. From then on a record that Redis loses is
// lost.
func (w *writer) trim() {
	if n := w.acked - w.base; n > 0 {
		rest := w.log.String()[n:]
		w.log.Reset()
		w.log.WriteString(rest)
		w.base = w.acked
		w.store.queue.bytes -= n
	}
}

// answer tells those who wait for what is stored now, or all of them of a failure.
func (w *writer) answer(err error) {
	w.waiting = slices.DeleteFunc(w.waiting, func(o waiter) bool {
		if err == nil && o.size > w.acked {
			return false
		}
		o.ch <- err
		return true
	})
}

// die ends the writer: because of err, or when all is done.
func (w *writer) die(err error) {
	if w.dead {
		return
	}
	w.dead, w.err = true, err
	w.store.queue.drop(w)
	if err == nil {
		w.err = checkpoint.ErrNotFound // it was settled: there is nothing to write
		w.answer(nil)
		return
	}
	w.answer(err)
	w.store.counts.lose(err)
	if w.lost != nil {
		w.store.queue.losses = append(w.store.queue.losses, func() { w.lost(err) })
		w.store.nudge()
	}
}
