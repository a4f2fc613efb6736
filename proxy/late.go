package proxy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/relay"
)

// lateEvery is how often turns whose claim failed for want of a store are claimed
// again. The store's own breaker makes that cheap while it is away.
const lateEvery = 100 * time.Millisecond

// latecomers are the turns that began while the store was away. They are claimed
// when it is back: an outage of a second must not leave a stream of an hour
// unprotected to its end (DESIGN §1.6).
type latecomers struct {
	mu  sync.Mutex
	all map[*journal]checkpoint.TurnKey
	on  bool // somebody sees to them
}

// later keeps what is said of a turn in memory until it can be claimed.
func (j *journal) later(key checkpoint.TurnKey) {
	j.mu.Lock()
	j.late = true
	j.mu.Unlock()
	l := &j.srv.latecomers
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[*journal]checkpoint.TurnKey{}
	}
	l.all[j] = key
	if !l.on {
		l.on = true
		j.srv.retry(lateEvery, l.claim)
	}
}

// keep takes p, if the turn is not claimed yet. What is too much gives the
// checkpoint up, not the stream.
func (j *journal) keep(p relay.Persist) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.late {
		return false
	}
	if p.Durable {
		j.srv.counts.unacked.Add(1)
	}
	if p.Offset != int64(len(j.behind)) && len(p.Log) > 0 || len(j.behind)+len(p.Log) > maxBehind {
		j.late, j.behind = false, nil
		j.srv.counts.dropped.Add(1)
		return true
	}
	j.behind = append(j.behind, p.Log...)
	return true
}

// claim claims turns, one after the other: a store that just came back is not rushed.
// It reports whether nobody is left.
func (l *latecomers) claim() (done bool) {
	for j, key := l.next(); j != nil; j, key = l.next() {
		if !j.claim(key) {
			break // the store is away still
		}
	}
	return l.leave()
}

// next returns a turn that is still to be claimed, and forgets those that are not.
func (l *latecomers) next() (*journal, checkpoint.TurnKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for j, key := range l.all {
		if j.isLate() {
			return j, key
		}
		delete(l.all, j)
	}
	return nil, checkpoint.TurnKey{}
}

// leave reports whether nobody is left.
func (l *latecomers) leave() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = len(l.all) > 0
	return !l.on
}

func (j *journal) isLate() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.late
}

// claim takes a turn that is under way, and hands over what was said of it so far.
// It returns false if the store is away.
func (j *journal) claim(key checkpoint.TurnKey) bool {
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	f, before, err := j.store.Claim(ctx, key, j.srv.owner, j.head)
	if err == nil && before != nil && len(before.Log) > 0 {
		// Somebody left a record before: this connection is the newer one, and its
		// answer another.
		if err = j.store.Delete(ctx, f); err == nil {
			f, before, err = j.store.Claim(ctx, key, j.srv.owner, j.head)
			if err == nil && before != nil {
				err = checkpoint.ErrOwned
			}
		}
	}
	if errors.Is(err, checkpoint.ErrUnavailable) {
		return false
	}
	var w checkpoint.Writer
	if b, ok := j.store.(checkpoint.Behind); ok && err == nil {
		w = b.Hold(f, j.srv.owner, j.head, j.lose)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.late { // it has ended meanwhile
		if err == nil {
			_ = j.store.Delete(ctx, f) // or it expires
		}
		return true
	}
	j.late = false
	if err != nil { // another process has it, or nobody can have it
		j.behind = nil
		return true
	}
	j.fence, j.w, j.open, j.lost = f, w, true, false
	j.srv.counts.reclaimed.Add(1)
	said := slices.Clip(j.behind)
	switch {
	case len(said) == 0:
	case w != nil:
		j.behind = nil
		w.Append(0, said)
	default:
		j.at = 0
		j.startLocked()
	}
	return true
}
