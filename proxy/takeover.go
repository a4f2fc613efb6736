package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

const (
	// adoptWithin is how old a turn without an owner may be for a request that
	// names no run.
	adoptWithin = 10 * time.Minute
	// graveWait is how long an SDK's retry waits for the death of its first try's
	// process to be known: a life and a renewal (DESIGN §8).
	graveWait  = 4 * time.Second
	graveRetry = 200 * time.Millisecond
)

// entry is how a request comes to its turn.
type entry struct {
	log  *journal // nil: nothing of it is written down
	seat *seat    // nil: its turn is nobody else's business
	// said is the turn's log so far, which another connection left.
	said []byte
	// follow: another connection, which lives, carries the turn on.
	follow bool
}

// enter takes the turn of r, or finds out who has it. It never fails: a request
// whose turn cannot be had is served without a checkpoint. A panic of it gives back
// what it had taken.
func (s *Server) enter(r *request, life *lifeline) (e entry) {
	if !r.asks.Stream { // nobody could go on with it: nothing of it is written down
		return entry{}
	}
	fp, who := r.fingerprint(), s.caller(r)
	j := s.newJournal(r, fp, life)
	e.log = j
	var f checkpoint.Fence
	entered := false
	defer func() {
		if !entered {
			s.retreat(e, f)
		}
	}()
	index, _ := s.store.(checkpoint.Index)
	if r.named || who == (checkpoint.Scope{}) {
		index = nil
	}
	ask := checkpoint.Ask(who, fp)
	if index != nil && (r.retried || !r.under.cfg.AdoptRetriesOnly) {
		var rec *checkpoint.Record
		if f, rec = s.adopt(index, ask, r.retried, life); rec != nil {
			r.run = rec.Run
			e.seat, _ = s.turns.sit(f.Key, j)
			j.seat = e.seat
			e.said = s.takeOver(j, f, rec)
			entered = true
			return e
		}
	}
	var drives bool
	e.seat, drives = s.turns.sit(checkpoint.Turn(who, r.run, fp), j)
	j.seat = e.seat
	if !drives {
		e.follow, entered = true, true
		return e
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimWait)
	defer cancel()
	var before *checkpoint.Record
	var err error
	f, before, err = s.store.Claim(ctx, e.seat.at.key, s.owner, j.head)
	switch {
	case errors.Is(err, checkpoint.ErrOwned):
		e.seat.yield()
		e.follow = true
	case errors.Is(err, checkpoint.ErrUnavailable):
		j.unclaimed(err)
		j.later(e.seat.at.key)
	case err != nil:
		j.unclaimed(err)
	case before != nil:
		e.said = s.takeOver(j, f, before)
	default:
		j.hold(f, j.head)
		if index != nil {
			s.offer(index, ask, f)
		}
	}
	entered = true
	return e
}

// retreat gives back what was entered of a turn when a panic came in between: a claim
// that is not written yet, too.
func (s *Server) retreat(e entry, f checkpoint.Fence) {
	if f != (checkpoint.Fence{}) && !e.log.held() {
		s.behind(func(ctx context.Context) { _ = s.store.Release(ctx, f) }) // else it is had for as long as this process lives
	}
	e.log.close(&tale{outcome: outcomeBug, end: relay.Abort})
	e.seat.leave()
}

// adopt finds an orphan for a request that names no run. A retry of an SDK knows
// that there was a first try; it waits until a process that died counts as dead.
func (s *Server) adopt(index checkpoint.Index, ask checkpoint.AskKey, retried bool, life *lifeline) (checkpoint.Fence, *checkpoint.Record) {
	for end := time.Now().Add(graveWait); ; {
		ctx, cancel := context.WithTimeout(context.Background(), claimWait)
		f, rec, err := index.Adopt(ctx, ask, s.owner, adoptWithin)
		cancel()
		if err == nil {
			return f, rec
		}
		if !errors.Is(err, checkpoint.ErrOwned) || !retried || time.Now().After(end) {
			return f, nil
		}
		t := time.NewTimer(graveRetry)
		select {
		case <-t.C:
		case <-life.wake:
			t.Stop()
			life.rouse() // for whoever waits next
			return f, nil
		}
	}
}

// offer lets a turn be found by what it was asked.
func (s *Server) offer(index checkpoint.Index, ask checkpoint.AskKey, f checkpoint.Fence) {
	if s.memory {
		_ = index.Offer(context.Background(), ask, f) // it cannot fail
		return
	}
	s.behind(func(ctx context.Context) { _ = index.Offer(ctx, ask, f) }) // without it the turn is found by name only
}

// retry asks do again and again, from a goroutine of its own, until it is done or the
// server is closed.
func (s *Server) retry(every time.Duration, do func() (done bool)) {
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-s.closed:
				return
			case <-t.C:
			}
			if do() {
				return
			}
		}
	}()
}

// behind does something to the store behind everybody's back.
func (s *Server) behind(do func(context.Context)) {
	s.behindLed(nil, func(ctx context.Context, _ bool) { do(ctx) })
}

// behindLed is behind for what something else goes before. ours: it has not come to
// nothing.
func (s *Server) behindLed(first *lead, do func(ctx context.Context, ours bool)) {
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		ours := first.waits()
		ctx, cancel := context.WithTimeout(context.Background(), storeWait)
		defer cancel()
		do(ctx, ours)
	}()
}

// takeOver takes over what another connection left of a turn. It returns its log, nil
// if nothing can be made of it: then the turn begins anew.
func (s *Server) takeOver(j *journal, f checkpoint.Fence, left *checkpoint.Record) []byte {
	n := turn.Whole(left.Log)
	if _, err := turn.Replay(left.Log[:n]); n == 0 && len(left.Log) > 0 || err != nil {
		if err == nil {
			_, err = turn.Replay(left.Log)
		}
		s.counts.unreadable.Add(1)
		s.cfg.Log.Warn("a checkpoint cannot be read; the turn begins anew", "run", string(left.Run), "error", err.Error())
		if n = 0; errors.Is(err, turn.ErrVersion) {
			// A newer release's: it is not ours to overwrite.
			s.behind(func(ctx context.Context) { _ = s.store.Release(ctx, f) })
			j.unclaimed(err)
			return nil
		}
	} else {
		s.counts.takeovers.Add(1)
	}
	if n == len(left.Log) {
		j.hold(f, *left)
		return append([]byte{}, left.Log...) // empty is not nothing: the provider was asked
	}
	// What its process had not written whole is not there; what is, is written
	// again, since a log only grows.
	j.head.Run = left.Run
	return s.again(j, f, left.Log[:n])
}

// again begins a claimed turn's record anew, with log.
func (s *Server) again(j *journal, f checkpoint.Fence, log []byte) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), claimWait)
	defer cancel()
	err := s.store.Delete(ctx, f)
	if err == nil {
		f, _, err = s.store.Claim(ctx, f.Key, s.owner, j.head)
	}
	if err == nil && len(log) > 0 {
		err = s.store.Append(ctx, f, 0, log)
	}
	if err != nil {
		j.unclaimed(err)
		return nil
	}
	r := j.head
	r.Log = log
	j.hold(f, r)
	return log
}

const (
	headerIdempotency = "Idempotency-Key"
	headerRetry       = "x-stainless-retry-count"
)

// name reads what the request says of its run.
func (r *request) name() (err error) {
	id, key := r.header.Get(headerRun), r.header.Get(headerIdempotency)
	switch {
	case id != "":
		if r.run, err = checkpoint.ParseRunID(id); err != nil {
			err = errRunID
		}
		r.named = true
	case key != "":
		// Keys are as long as their makers like.
		if r.run, err = checkpoint.ParseRunID(key); err != nil {
			sum := sha256.Sum256([]byte(key))
			r.run, err = checkpoint.RunID("key_"+hex.EncodeToString(sum[:16])), nil
		}
		r.named = true
	default:
		r.run = checkpoint.RunID(token("run_"))
	}
	if again := r.header.Get(headerRetry); again != "" {
		n, nan := strconv.Atoi(again)
		r.retried = nan == nil && n > 0
	}
	switch what := r.header.Get(headerOnDisconnect); what {
	case "", "cancel":
	case "finish":
		r.finish = true
	default:
		err = errors.Join(err, errors.New(headerOnDisconnect+" must be cancel or finish"))
	}
	return err
}
