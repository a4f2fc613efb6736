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

// renewals is into how many parts a time to live is divided: what is written within the
// first of them does not begin it anew.
const renewals = 16

// act is what a step of a flush is for.
type act uint8

const (
	actAppend act = iota
	actRestore
	actMark
	actRelease
	actDelete
)

// job is one act of a flush.
type job struct {
	w      *writer
	act    act
	marked int      // of a mark: how many calls of Mark it stands for
	st     *step    // what does it
	part   *portion // of an append; set by arrange, as nth
	nth    int      // which of the step's portions that is
}

// verdict is what came of the job. failed is the error of the pipeline.
func (j *job) verdict(failed error) (o outcome, size int64, err error) {
	switch r := j.st.reply; {
	case j.st.err != nil:
		return 0, 0, j.st.err
	case len(r) == 0 && failed != nil:
		return 0, 0, failed
	case j.act == actAppend:
		o, size = r.portion(j.nth)
		return o, size, nil
	default:
		return r.outcome(), r.size(), nil
	}
}

// batch is what one pipeline does. The flusher has one and uses it again.
type batch struct {
	now      time.Time
	jobs     []job
	portions []portion // of the appends among them, in their order
	steps    []*step
	void     map[*writer]bool // a step did nothing: what comes after it is void
}

func (b *batch) clear() {
	clear(b.jobs)
	clear(b.portions)
	clear(b.steps)
	clear(b.void)
	b.jobs, b.portions, b.steps = b.jobs[:0], b.portions[:0], b.steps[:0]
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
	b := &s.batch
	defer b.clear()
	b.now = time.Now()
	more := s.collect(b)
	if len(b.jobs) == 0 {
		return false
	}
	s.arrange(b)
	err := s.pipeline(context.Background(), b.steps)
	s.counts.flushes.Add(1)
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for i := range b.jobs {
		if j := &b.jobs[i]; !b.void[j.w] && !j.w.dead && !s.apply(j, err, now) {
			b.void[j.w] = true
		}
	}
	again := false
	for i := range b.jobs {
		if w := b.jobs[i].w; !w.dead && !w.dirty && (w.unwritten() || w.check) {
			q.put(w, false, &s.cfg)
			// The next act of the same turn is due now; a failed one waits.
			again = again || err == nil
		}
	}
	q.arm(&s.cfg)
	return err == nil && (again || more)
}

// collect takes the next batch out of the queue, and reports whether it left some.
func (s *Store) collect(b *batch) (more bool) {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	bytes, n := 0, 0
	for n < len(q.dirty) && bytes < batchBytes && len(b.jobs) < batchSteps {
		w := q.dirty[n]
		n++
		w.dirty = false
		bytes += s.next(b, w, batchBytes-bytes)
	}
	q.dirty = append(q.dirty[:0], q.dirty[n:]...)
	q.fresh = 0
	return len(q.dirty) > 0
}

// next adds to b what is to be done about a turn now: one kind of act, because the next
// one waits for it to be acknowledged. It returns how many bytes that is. mu is held.
func (s *Store) next(b *batch, w *writer, most int) (bytes int) {
	j := job{w: w}
	switch {
	case w.forget:
		j.act, j.st = actDelete, s.deleting(w.fence)
	case w.restore:
		j.act, j.st = actRestore, s.restoring(w.fence, &w.head, w.state)
	case w.acked < w.end():
		for at := w.acked; at < w.end() && (bytes < most || bytes == 0); {
			p := w.log.String()[at-w.base:]
			p = p[:min(len(p), writeChunk)]
			s.append(b, w, at, p)
			at += int64(len(p))
			bytes += len(p)
		}
		return bytes
	case w.marked > 0:
		j.act, j.st, j.marked = actMark, s.marking(w.fence, w.state), w.marked
	case w.settled:
		j.act, j.st = actRelease, s.releasing(w.fence)
	case w.check:
		s.append(b, w, w.end(), "")
		return 0
	default:
		return 0
	}
	b.jobs = append(b.jobs, j)
	return 0
}

// append adds the appending of p. To begin a time to live anew with every word would double
// what the word costs Redis.
func (s *Store) append(b *batch, w *writer, at int64, p string) {
	renew := b.now.Sub(w.renewed) >= s.cfg.TTL/renewals
	b.jobs = append(b.jobs, job{w: w, act: actAppend})
	b.portions = append(b.portions, portion{keys: w.keys, fence: w.fence, offset: at, p: p, renew: renew})
}

// arrange makes the steps of b, in the order of its jobs.
func (s *Store) arrange(b *batch) {
	at, end := 0, 0 // of the step of appends at hand
	var st *step
	for i, n := 0, 0; i < len(b.jobs); i++ {
		j := &b.jobs[i]
		if j.act != actAppend {
			b.steps = append(b.steps, j.st)
			continue
		}
		if n == end {
			at, end = n, n+s.fits(b.portions[n:])
			st = s.appending(b.portions[at:end])
			b.steps = append(b.steps, st)
		}
		j.st, j.part, j.nth = st, &b.portions[n], n-at
		n++
	}
}

// apply takes one answer, and reports whether the turn's next one counts. failed
// is the error of the pipeline. mu is held.
func (s *Store) apply(j *job, failed error, now time.Time) bool {
	w := j.w
	o, size, err := j.verdict(failed)
	switch {
	case err == nil:
	case scattered(err) && !s.apart.Swap(true):
		return false // again, each by itself
	default:
		if err = translate(err); isUnavailable(err) {
			w.answer(err)
		} else {
			w.die(err)
		}
		return false
	}
	switch {
	case o == done:
		s.did(j, now)
		return true
	case o == fenced:
		w.die(checkpoint.ErrFenced)
	case o == notFound && (j.act == actDelete || w.settled && w.state.Phase == checkpoint.Finished):
		w.die(nil) // it is gone, as it should be
	case o == gap && j.part != nil && size >= w.base && size < j.part.offset:
		w.acked = size // a fail-over lost the end
	case (o == notFound || o == behind || o == corrupt) && w.base == 0 && w.again < maxRestores:
		w.restore, w.acked, w.renewed = true, 0, time.Time{}
		w.again++
		if w.since.IsZero() {
			w.since = now
		}
	case o == gap, o == notFound, o == behind:
		w.die(checkpoint.ErrNotFound) // lost, and we do not have it any more
	default:
		w.die(o.refuse(size))
	}
	return false
}

// did notes that a job is done. mu is held.
func (s *Store) did(j *job, now time.Time) {
	w := j.w
	w.wrote, w.check = now, false
	switch j.act {
	case actAppend:
		size := int64(len(j.part.p))
		w.acked = max(w.acked, j.part.offset+size)
		if j.part.renew {
			w.renewed = now
		}
		s.counts.bytes.Add(size)
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
