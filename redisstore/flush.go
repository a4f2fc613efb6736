package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// batchBytes and batchSteps bound one pipeline, which has one deadline.
const (
	batchBytes = 512 << 10
	batchSteps = 1024
)

// maxRestores bounds how often one turn is restored: a Redis that evicts what was
// just written does not want it.
const maxRestores = 16

// act is what a step of a flush is for.
type act uint8

const (
	actAppend act = iota
	actRestore
	actMark
	actRelease
	actDelete
)

// job is one step of a flush.
type job struct {
	*step
	w      *writer
	act    act
	offset int64
	size   int
	marked int // of a mark: how many calls of Mark it stands for
}

// nudge has the flusher look.
func (s *Store) nudge() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// flushLoop writes what is queued. It is the only one that takes out of the queue,
// so that the writes of a turn are in order.
func (s *Store) flushLoop() {
	defer s.work.Done()
	for {
		select {
		case <-s.kick:
		case <-s.stop:
			s.queue.tell()
			return
		}
		for s.flush() {
			s.queue.tell()
		}
		s.queue.tell()
	}
}

// flush writes one batch, and reports whether more is due at once.
func (s *Store) flush() bool {
	q := &s.queue
	q.mu.Lock()
	q.armed = false
	if s.away() {
		// The heartbeat hurries us when it finds Redis back. It sees what lasts
		// longer than its own interval; the timer sees the rest.
		q.arm(&s.cfg)
		q.mu.Unlock()
		return false
	}
	q.mu.Unlock()
	jobs, more := s.collect()
	if len(jobs) == 0 {
		return false
	}
	steps := make([]*step, len(jobs))
	for i, j := range jobs {
		steps[i] = j.step
	}
	err := s.pipeline(context.Background(), steps)
	s.counts.flushes.Add(1)
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	stop := map[*writer]bool{} // what came after a step that did nothing is void
	for _, j := range jobs {
		if !stop[j.w] && !j.w.dead {
			stop[j.w] = !s.apply(j, err, now)
		}
	}
	again := false
	for _, j := range jobs {
		if w := j.w; !w.dead && !w.dirty && (w.unwritten() || w.check) {
			q.put(w, false, &s.cfg)
			// The next act of the same turn is due now; a failed one waits.
			again = again || err == nil
		}
	}
	q.arm(&s.cfg)
	return err == nil && (again || more)
}

// collect takes the next batch out of the queue, and reports whether it left some.
func (s *Store) collect() (jobs []*job, more bool) {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	bytes, n := 0, 0
	for n < len(q.dirty) && bytes < batchBytes && len(jobs) < batchSteps {
		w := q.dirty[n]
		n++
		w.dirty = false
		for _, j := range s.next(w, batchBytes-bytes) {
			jobs = append(jobs, j)
			bytes += j.size
		}
	}
	q.dirty = append(q.dirty[:0], q.dirty[n:]...)
	q.fresh = 0
	return jobs, len(q.dirty) > 0
}

// next returns what is to be done about a turn now: one kind of act, because the
// next one waits for it to be acknowledged. mu is held.
func (s *Store) next(w *writer, most int) (jobs []*job) {
	switch {
	case w.forget:
		return []*job{{step: s.deleting(w.fence), w: w, act: actDelete}}
	case w.restore:
		return []*job{{step: s.restoring(w.fence, &w.head, w.state), w: w, act: actRestore}}
	case w.acked < w.end():
		for at := w.acked; at < w.end() && (most > 0 || len(jobs) == 0); {
			p := w.log[at-w.base:]
			p = p[:min(len(p), writeChunk)]
			jobs = append(jobs, &job{step: s.appending(w.fence, at, p), w: w, act: actAppend, offset: at, size: len(p)})
			at += int64(len(p))
			most -= len(p)
		}
		return jobs
	case w.marked > 0:
		return []*job{{step: s.marking(w.fence, w.state), w: w, act: actMark, marked: w.marked}}
	case w.settled:
		return []*job{{step: s.releasing(w.fence), w: w, act: actRelease}}
	case w.check:
		return []*job{{step: s.appending(w.fence, w.end(), nil), w: w, act: actAppend, offset: w.end()}}
	}
	return nil
}

// apply takes one answer, and reports whether the turn's next one counts. failed
// is the error of the pipeline. mu is held.
func (s *Store) apply(j *job, failed error, now time.Time) bool {
	w := j.w
	err := j.err
	if err == nil && len(j.reply) == 0 {
		err = failed
	}
	if err != nil {
		if err = translate(err); isUnavailable(err) {
			w.answer(err)
		} else {
			w.die(err)
		}
		return false
	}
	o := j.reply.outcome()
	switch {
	case o == done:
		s.did(j, now)
		return true
	case o == fenced:
		w.die(checkpoint.ErrFenced)
	case o == notFound && (j.act == actDelete || w.settled && w.state.Phase == checkpoint.Finished):
		w.die(nil) // it is gone, as it should be
	case o == gap && j.reply.size() >= w.base && j.reply.size() < j.offset:
		w.acked = j.reply.size() // a fail-over lost the end
	case (o == notFound || o == behind || o == corrupt) && w.base == 0 && w.again < maxRestores:
		w.restore, w.acked = true, 0
		w.again++
		if w.since.IsZero() {
			w.since = now
		}
	case o == gap, o == notFound, o == behind:
		w.die(checkpoint.ErrNotFound) // lost, and we do not have it any more
	default:
		w.die(o.refuse(j.reply.size()))
	}
	return false
}

// did notes that a job is done. mu is held.
func (s *Store) did(j *job, now time.Time) {
	w := j.w
	w.wrote, w.check = now, false
	switch j.act {
	case actAppend:
		w.acked = max(w.acked, j.offset+int64(j.size))
		s.counts.bytes.Add(int64(j.size))
		if w.acked == w.end() {
			w.since = time.Time{}
		}
		w.answer(nil)
	case actRestore:
		w.restore = false
		s.counts.restored.Add(1)
		w.answer(nil)
	case actMark:
		w.marked -= j.marked
	case actRelease, actDelete:
		w.die(nil)
	}
}

// drain writes all that is queued, or until ctx ends or Redis is away.
func (s *Store) drain(ctx context.Context) {
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	for !s.away() {
		if _, turns := s.queue.pending(); turns == 0 {
			return
		}
		s.nudge()
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// lose counts a turn whose checkpoint was given up.
func (c *counts) lose(err error) {
	if errors.Is(err, checkpoint.ErrFenced) {
		c.fenced.Add(1)
		return
	}
	c.drops.Add(1)
}
