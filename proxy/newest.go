package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Who follows a turn of another process tells that process so: in the shared store,
// beside the turn, stands the token of the connection that came last. Whoever is
// about to let out what makes a client act looks there first; the look is the
// moment of which "the newest connection" is true. A store that cannot be reached
// shows no newcomer: while it is away nobody follows anybody through it.

// noticeKey is where newcomers to a turn of an owner announce themselves. Owners
// are never named twice, so that what a dead one was told misleads nobody.
func noticeKey(key checkpoint.TurnKey, owner checkpoint.Owner) checkpoint.TurnKey {
	return checkpoint.Turn(checkpoint.Scope(key), checkpoint.RunID(owner), checkpoint.Fingerprint{})
}

const noticeRun checkpoint.RunID = "notice"

// announce makes this connection the newest one to the turn's owner, once.
func (d *drive) announce(ctx context.Context) {
	t := d.tail
	if d.srv.ownStore || d.outdone || t.token != "" || t.owner == "" || !d.seat.newest() {
		return
	}
	mine := token("")
	for range 3 {
		f, _, err := d.srv.store.Claim(ctx, noticeKey(d.seat.at.key, t.owner), d.srv.owner, checkpoint.Record{Run: noticeRun})
		if errors.Is(err, checkpoint.ErrOwned) {
			time.Sleep(time.Millisecond) // another newcomer is in between its three calls
			continue
		}
		if err == nil {
			err = d.srv.store.Mark(ctx, f, checkpoint.State{Causes: []string{mine}})
		}
		if errors.Is(err, checkpoint.ErrFenced) {
			d.outdone = true // somebody newer is there
			return
		}
		if err != nil {
			return // it is tried with the next read
		}
		_ = d.srv.store.Release(ctx, f)
		t.token = mine
		return
	}
}

// outdone reports whether a connection has come to owner's turn that is newer than
// the one with this token; the owner's own has none.
func (s *Server) outdone(w *allowance, key checkpoint.TurnKey, owner checkpoint.Owner, token string) bool {
	if s.ownStore || owner == "" {
		return false
	}
	ctx, cancel := w.look()
	defer cancel()
	r, err := s.store.Get(ctx, noticeKey(key, owner))
	return err == nil && len(r.State.Causes) == 1 && r.State.Causes[0] != token
}

// tidy takes away what newcomers to a turn of this process wrote.
func (s *Server) tidy(key checkpoint.TurnKey, owner checkpoint.Owner) {
	s.behind(func(ctx context.Context) {
		if f, _, err := s.store.Claim(ctx, noticeKey(key, owner), s.owner, checkpoint.Record{Run: noticeRun}); err == nil {
			_ = s.store.Delete(ctx, f) // it expires by itself
		}
	})
}

// superseded reports whether this connection is not its turn's newest.
func (d *drive) superseded(w *allowance) bool {
	if d.seat == nil {
		return false
	}
	if d.outdone || !d.seat.newest() {
		return true
	}
	owner, mine := d.srv.owner, ""
	if t := d.tail; t != nil && !t.ours {
		owner, mine = t.owner, t.token
	}
	if d.tail == nil && !d.log.held() {
		return false // nobody else can know of the turn
	}
	d.outdone = d.srv.outdone(w, d.seat.at.key, owner, mine)
	return d.outdone
}
