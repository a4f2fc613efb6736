package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/relay"
)

// tail is a connection that shows a turn which another one carries on, here or in
// another process, and goes on with it if that one is lost.
type tail struct {
	f     *relay.Follower
	owner checkpoint.Owner // whose turn it is, as far as is known
	token string           // under which this connection announced itself to that owner
	fresh time.Time        // when the log last grew
	lost  time.Time        // since when the store has less of the turn than was read; zero: it has not
	alone bool             // nobody carries the turn on any more
	ours  bool             // this connection does now, once its client has what was said
}

// newer is what an older connection of a turn is told.
var newer = dialect.Failure{
	Cause: "canceled", Reason: reasonFenced, Status: 409, Message: "a newer connection has taken this turn over",
}

// follow waits for something that the client is to get.
func (d *drive) follow() {
	t := d.tail
	for {
		if d.fx = t.f.Next(d.now); len(d.fx.Client) > 0 || d.fx.End != relay.Open {
			d.observe()
			return
		}
		if t.ours {
			d.inherit()
			return
		}
		switch in := d.life.signal().(type) {
		case nil:
		case relay.Stop:
			why := dialect.Failure{Cause: "canceled", Reason: in.Reason, Status: 503, Message: "the proxy is stopping"}
			if in.Reason == reasonFenced {
				why = newer
			}
			d.giveUp(why)
			return
		default:
			d.fx = t.f.Leave(d.now)
			d.observe()
			return
		}
		news := d.seat.news()
		if t.alone && d.takeOver() || !t.alone && d.read() {
			d.now = time.Now()
			continue
		}
		if t.f.Done() {
			return // giveUp left its effects
		}
		d.await(news)
	}
}

// giveUp ends the stream with an error.
func (d *drive) giveUp(why dialect.Failure) {
	d.fx = d.tail.f.Fail(d.now, why)
	d.observe()
}

// lostTrack is the end of a stream whose turn cannot be read to its end.
func (d *drive) lostTrack(err error) {
	d.srv.cfg.Log.Warn("a turn cannot be followed", "run", string(d.req.run), "error", err.Error())
	message := "what another connection has of this turn cannot be read any more"
	if errors.Is(err, relay.ErrUntold) {
		message = "what another connection has of this turn holds a part that is too large to be told again"
	}
	d.giveUp(dialect.Failure{Cause: "connection_reset", Reason: "lost_track", Status: 502, Message: message})
}

// read reads what is new of the turn. It reports whether there may be something to
// do.
func (d *drive) read() bool {
	t := d.tail
	ctx, cancel := context.WithTimeout(context.Background(), claimWait)
	defer cancel()
	rec, alive, err := d.srv.look(ctx, d.seat.at.key, t.f.Size())
	switch {
	case errors.Is(err, checkpoint.ErrUnavailable):
		t.lost = time.Time{}
		return d.unseen()
	case errors.Is(err, checkpoint.ErrNotFound), errors.Is(err, checkpoint.ErrGap):
		if t.f.Started() || errors.Is(err, checkpoint.ErrGap) {
			return d.missing(err)
		}
		return d.unseen()
	case err != nil:
		d.lostTrack(err)
		return false
	}
	t.lost = time.Time{}
	w := d.allowance()
	defer w.over()
	if rec.Owner != "" && rec.Owner != t.owner {
		if t.token != "" { // who was the newest to the last owner is so to this one
			d.outdone = d.outdone || d.srv.outdone(&w, d.seat.at.key, t.owner, t.token)
		}
		t.owner, t.token = rec.Owner, ""
	}
	d.announce(ctx)
	if len(rec.Log) > 0 || t.fresh.IsZero() {
		t.fresh = d.now
	}
	switch {
	case d.seat.driven():
		if d.seat.blind() {
			d.lostTrack(errBlind)
			return false
		}
	case !alive, rec.Owner == d.srv.owner && d.now.Sub(t.fresh) > orphaned:
		t.alone = true
	case d.now.Sub(t.fresh) > forgotten:
		d.lostTrack(errSilent)
		return false
	}
	if err := t.f.Read(rec.Log, !alive || rec.State.Phase == checkpoint.Finished); err != nil {
		d.lostTrack(err)
		return false
	}
	return len(rec.Log) > 0 || t.alone || rec.State.Phase == checkpoint.Finished && t.f.Deadline().IsZero()
}

// unseen is a turn of which the store shows nothing. Its driver in this process may
// be about to store it, or has no checkpoint; in another process there is none.
func (d *drive) unseen() bool {
	t := d.tail
	if d.seat.driven() && !d.seat.blind() || t.f.Started() {
		return false
	}
	d.seat.oust()
	t.alone = true
	return true
}

// missing is a turn of which the store lost what was read of it: a Redis that began
// empty. Whoever has the turn restores it with what it writes next, in this process for
// certain, elsewhere if that process lives.
func (d *drive) missing(err error) bool {
	t := d.tail
	switch _, restores := d.srv.store.(checkpoint.Behind); {
	case !restores:
		d.lostTrack(err)
	case d.seat.blind():
		d.lostTrack(errBlind)
	case d.seat.driven():
		t.lost = time.Time{}
	case t.lost.IsZero():
		t.lost = d.now
	case d.now.Sub(t.lost) > orphaned:
		d.lostTrack(err)
	}
	return false
}

// look reads a record and its log from offset on, and whether its owner lives.
func (s *Server) look(ctx context.Context, key checkpoint.TurnKey, offset int64) (*checkpoint.Record, bool, error) {
	if f, ok := s.store.(checkpoint.Follower); ok {
		return f.Follow(ctx, key, offset)
	}
	r, err := s.store.Get(ctx, key)
	if err != nil {
		return nil, false, err
	}
	if offset > int64(len(r.Log)) {
		return nil, false, checkpoint.ErrGap
	}
	r.Log = r.Log[offset:]
	return r, r.Owner != "", nil // whether it lives, a claim will tell
}

// takeOver claims a turn that nobody carries on. It reports whether there may be
// something to do.
func (d *drive) takeOver() bool {
	t := d.tail
	w := d.allowance()
	defer w.over()
	if d.outdone || !d.seat.newest() || d.srv.outdone(&w, d.seat.at.key, t.owner, t.token) {
		d.giveUp(newer)
		return false
	}
	if !d.seat.drive() {
		t.alone = false
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimWait)
	defer cancel()
	f, left, err := d.srv.store.Claim(ctx, d.seat.at.key, d.srv.owner, d.log.head)
	switch {
	case errors.Is(err, checkpoint.ErrOwned):
		d.seat.yield()
		t.alone = false
		return false
	case err != nil && t.f.Started():
		d.seat.yield()
		return false // it may be back
	case err != nil:
		d.log.unclaimed(err)
	case left == nil && t.f.Started():
		d.log.hold(f, d.log.head)
		d.lostTrack(checkpoint.ErrNotFound)
		return false
	case left == nil:
		d.log.hold(f, d.log.head)
	default:
		d.srv.counts.takeovers.Add(1)
		if int64(len(left.Log)) < t.f.Size() {
			err = checkpoint.ErrGap
		} else {
			err = t.f.Read(left.Log[t.f.Size():], true)
		}
		d.log.hold(f, *left)
		if err != nil {
			d.lostTrack(err)
			return false
		}
	}
	t.ours = true
	return true
}

// inherit carries the turn on where this client is.
func (d *drive) inherit() {
	t := d.tail
	d.tail = nil
	d.m, d.fx = t.f.Resume(d.now)
	d.page = d.srv.turnPage(d.req) // its end is ours to tell
	d.observe()
}

const (
	// orphaned is how long a turn of this process that no connection of it drives
	// may take to be settled.
	orphaned = 2 * time.Second
	// forgotten is how long another process may add nothing to a turn and be
	// believed; its own clocks end a turn sooner.
	forgotten = 15 * time.Minute
)

var (
	errBlind  = errors.New("the connection that has the turn lost its checkpoint")
	errSilent = errors.New("the process that has the turn has added nothing to it")
)

// await waits until there may be something new.
func (d *drive) await(news <-chan struct{}) {
	in := time.Minute
	if !d.srv.memory || !d.seat.driven() {
		in = max(d.req.under.cfg.Relay.Flush, soonest)
		if d.req.under.cfg.Relay.Flush == 0 {
			in = followEvery
		}
	}
	if at := d.tail.f.Deadline(); !at.IsZero() {
		in = max(min(in, at.Sub(d.now)), soonest)
	}
	if d.timer == nil {
		d.timer = time.NewTimer(in)
	} else {
		d.timer.Reset(in)
	}
	select {
	case <-news:
	case <-d.timer.C:
	case <-d.life.wake:
	}
	d.now = time.Now()
}

// followEvery is how often another process' turn is looked at, as often as it is
// flushed.
const followEvery = 50 * time.Millisecond
