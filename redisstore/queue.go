package redisstore

import (
	"slices"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// queue holds the turns that are written behind their streams' backs. Writers put
// in, the flusher takes out.
type queue struct {
	nudge func()
	timer *time.Timer // of the next flush that nobody hurries

	mu    sync.Mutex
	turns map[*writer]struct{}
	held  map[checkpoint.TurnKey]*writer // the last of each
	dirty []*writer                      // the urgent first, the others in the order in which they became so
	armed bool                           // timer runs
	fresh int                            // bytes queued since the last flush
	bytes int64                          // of all logs kept
	// losses are the calls to make, by the flusher and without mu: whoever is
	// told takes locks of its own, and may hold them while it appends.
	losses []func()
}

func (q *queue) init(nudge func()) {
	q.nudge = nudge
	q.turns = map[*writer]struct{}{}
	q.held = map[checkpoint.TurnKey]*writer{}
	q.timer = time.AfterFunc(time.Hour, nudge)
	q.timer.Stop()
}

// put notes that w has something to write, at once when it is urgent. mu is held.
func (q *queue) put(w *writer, urgent bool, c *Config) {
	switch {
	case urgent && (!w.dirty || q.dirty[0] != w):
		// Somebody waits for it; a backlog of others must not be in the way.
		if w.dirty {
			q.dirty = slices.DeleteFunc(q.dirty, func(o *writer) bool { return o == w })
		}
		q.dirty = slices.Insert(q.dirty, 0, w)
	case !w.dirty:
		q.dirty = append(q.dirty, w)
	}
	w.dirty = true
	if urgent || q.fresh >= c.FlushBytes {
		q.nudge()
	}
	q.arm(c)
}

// tell makes the calls that are due.
func (q *queue) tell() {
	q.mu.Lock()
	calls := q.losses
	q.losses = nil
	q.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// arm sets the timer when something is queued that nobody hurries. mu is held.
func (q *queue) arm(c *Config) {
	if len(q.dirty) > 0 && !q.armed {
		q.armed = true
		q.timer.Reset(c.Flush)
	}
}

// room makes room for n more bytes by forgetting what Redis has acknowledged, and
// reports whether there is. It makes more room than asked for, so that it seldom
// has to look. mu is held.
func (q *queue) room(n, most int64) bool {
	if q.bytes+n <= most {
		return true
	}
	for w := range q.turns {
		w.trim()
		if q.bytes+n <= most*3/4 {
			break
		}
	}
	return q.bytes+n <= most
}

// drop takes w out. mu is held.
func (q *queue) drop(w *writer) {
	if _, ok := q.turns[w]; !ok {
		return
	}
	delete(q.turns, w)
	if q.held[w.fence.Key] == w {
		delete(q.held, w.fence.Key)
	}
	q.bytes -= int64(w.log.Len())
	w.log.Reset()
	if w.dirty {
		w.dirty = false
		q.dirty = slices.DeleteFunc(q.dirty, func(o *writer) bool { return o == w })
	}
}

// hold takes w in. mu is held.
func (q *queue) hold(w *writer) {
	q.turns[w] = struct{}{}
	q.held[w.fence.Key] = w
}

// disown says that somebody gives a turn up, whatever its writer thinks.
func (q *queue) disown(key checkpoint.TurnKey) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.held, key)
}

// carries reports whether this process has a turn in hand, and Redis has said so since a
// time.
func (q *queue) carries(key checkpoint.TurnKey, since time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.held[key]
	return w != nil && w.wrote.After(since)
}

// look has silent turns checked, and forgets what waited for Redis for so long
// that it would be gone from there.
func (q *queue) look(now time.Time, c Config) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for w := range q.turns {
		switch {
		case !w.settled && !w.forget:
			if now.Sub(w.wrote) >= c.Check {
				w.check = true
				q.put(w, false, &c)
			}
		case now.Sub(w.ended) > c.TTL, w.forget && now.Sub(w.ended) > c.FinishedTTL:
			w.die(nil)
		case w.settled && w.state.Phase == checkpoint.Finished && now.Sub(w.ended) > c.FinishedTTL:
			w.forget = true // it would have expired
			q.bytes -= int64(w.log.Len())
			w.base = w.end()
			w.log.Reset()
		}
	}
}

// checkAll has the fence of every turn checked at once.
func (q *queue) checkAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for w := range q.turns {
		w.check = true
		q.put(w, false, &w.store.cfg)
	}
	q.nudge()
}

// pending returns how much Redis does not have yet.
func (q *queue) pending() (bytes int64, turns int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for w := range q.turns {
		if w.unwritten() {
			turns++
			bytes += w.end() - w.acked
		}
	}
	return bytes, turns
}
