package redisstore

import (
	"context"
	"slices"
	"sync"
)

const (
	// lanes is how many pipelines of calls are under way at a time: while one waits for
	// its answers, what is asked meanwhile gathers for the next.
	lanes = 2
	// laneSteps bounds one of them, which has one deadline.
	laneSteps = 128
)

// calls gathers single calls into pipelines. When a thousand streams begin at once, a
// thousand round trips would wait for one another, run into their deadlines, and make a
// healthy Redis look away; of one call alone it costs nothing.
type calls struct {
	mu      sync.Mutex
	waiting []*call
	running int // lanes
	closed  bool
	idle    sync.Cond // no lane runs
}

// call is one of them.
type call struct {
	step
	ctx  context.Context // of who waits
	err  error           // of the pipeline
	done chan struct{}   // closed when reply and errors are set
}

// call runs one script. What was not sent when the context ends never is; of what was the
// context bounds the wait for the answer only, and args are read until Redis has them.
func (s *Store) call(ctx context.Context, script *script, keys []string, args ...any) (reply, error) {
	if s.away() {
		return nil, errAway
	}
	c := &call{ctx: ctx, step: *newStep(script, keys, args...), done: make(chan struct{})}
	if !s.calls.add(c, s.lane) {
		return nil, errAway
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, translate(ctx.Err())
	}
	switch {
	case c.step.err != nil:
		return nil, translate(c.step.err)
	case c.err != nil && len(c.reply) == 0:
		return nil, c.err
	}
	return c.reply, nil
}

// alone runs one script whose call or answer may be large in a pipeline of its own: those
// that are gathered share one deadline.
func (s *Store) alone(ctx context.Context, script *script, keys []string, args ...any) (reply, error) {
	return s.sole(ctx, newStep(script, keys, args...))
}

func (s *Store) sole(ctx context.Context, st *step) (reply, error) {
	switch err := s.pipeline(ctx, []*step{st}); {
	case st.err != nil:
		return nil, translate(st.err)
	case err != nil:
		return nil, err
	}
	return st.reply, nil
}

// add has c run by a lane, a new one if there is room; false: it is over.
func (cs *calls) add(c *call, lane func()) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return false
	}
	cs.waiting = append(cs.waiting, c)
	if cs.running < lanes {
		cs.running++
		go lane()
	}
	return true
}

// lane runs what waits until nothing does.
func (s *Store) lane() {
	for {
		batch := s.calls.next()
		if len(batch) == 0 {
			return
		}
		steps := make([]*step, len(batch))
		for i, c := range batch {
			steps[i] = &c.step
		}
		err := s.pipeline(context.Background(), steps)
		for _, c := range batch {
			c.err = err
			close(c.done)
		}
	}
}

// next takes what waits and is still waited for; nothing: the lane ends. A claim whose
// caller has given up and gone on without it must not take the turn behind its back.
func (cs *calls) next() []*call {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var batch []*call
	n := 0
	for ; n < len(cs.waiting) && len(batch) < laneSteps; n++ {
		if c := cs.waiting[n]; c.ctx.Err() == nil {
			batch = append(batch, c)
		}
	}
	cs.waiting = slices.Delete(cs.waiting, 0, n)
	if len(batch) == 0 {
		cs.running--
		if cs.running == 0 && cs.idle.L != nil {
			cs.idle.Broadcast()
		}
	}
	return batch
}

// close lets no further call in and waits for those under way.
func (cs *calls) close() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closed = true
	cs.idle.L = &cs.mu
	for cs.running > 0 {
		cs.idle.Wait()
	}
}
