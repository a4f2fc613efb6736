package filestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// grab returns a turn, locked, and the time. With create an unknown one is made,
// fresh; without, it is ErrNotFound.
func (s *Store) grab(ctx context.Context, key checkpoint.TurnKey, create bool) (*held, time.Time, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, time.Time{}, fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, err)
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, time.Time{}, fmt.Errorf("%w: closed", checkpoint.ErrUnavailable)
		}
		h := s.turns[key]
		if h == nil && create {
			h = &held{key: key, path: s.path(key), fresh: true}
			s.turns[key] = h
		}
		s.mu.Unlock()
		now := s.now()
		if h == nil {
			return nil, now, checkpoint.ErrNotFound
		}
		h.mu.Lock()
		if !h.gone && !h.fresh && h.expired(now, &s.c) {
			s.discard(h)
		}
		if !h.gone {
			return h, now, nil
		}
		h.mu.Unlock()
		s.forget(h)
	}
}

// holder grabs the turn that f may write.
func (s *Store) holder(ctx context.Context, f checkpoint.Fence) (*held, time.Time, error) {
	h, now, err := s.grab(ctx, f.Key, false)
	if err != nil {
		return nil, now, err
	}
	if err = h.err; err == nil && (h.fence != f.N || h.rec.Owner == "") {
		err = checkpoint.ErrFenced
	}
	if err != nil {
		h.mu.Unlock()
		return nil, now, err
	}
	return h, now, nil
}

// discard removes a turn's files. Its mu is held; forget follows.
func (s *Store) discard(h *held) {
	s.ids.mu.Lock()
	for _, a := range h.asks {
		s.ids.retract(a, h.key)
	}
	s.ids.mu.Unlock()
	s.total.Add(-h.size)
	h.gone = true
	h.shut()
	// The record first: a log without one is swept at the next Open.
	for _, suffix := range []string{".rec", ".log"} {
		if err := os.Remove(h.path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			_ = s.failed(err)
		}
	}
}

// forget takes a discarded turn off the list.
func (s *Store) forget(h *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[h.key] == h {
		delete(s.turns, h.key)
	}
}

func (i *ids) alive(o checkpoint.Owner) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.owners[o]
}

// next returns a new fence for an owner, which lives from now on.
func (i *ids) next(o checkpoint.Owner, now time.Time) uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.owners[o] = true
	i.last = checkpoint.NextFence(i.last, now)
	return i.last
}

// retract takes back an offer. mu is held.
func (i *ids) retract(a checkpoint.AskKey, key checkpoint.TurnKey) {
	list := slices.DeleteFunc(i.offers[a], func(k checkpoint.TurnKey) bool { return k == key })
	if i.offers[a] = list; len(list) == 0 {
		delete(i.offers, a)
	}
}
