package filestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Offer implements [checkpoint.Index].
func (s *Store) Offer(ctx context.Context, ask checkpoint.AskKey, f checkpoint.Fence) error {
	h, _, err := s.grab(ctx, f.Key, false)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.mu.Unlock()
	if h.err != nil || h.fence != f.N || slices.Contains(h.asks, ask) {
		return nil
	}
	asks := append(slices.Clone(h.asks), ask)
	asks = asks[max(0, len(asks)-maxAsks):]
	if err := h.save(h.fence, asks, h.rec); err != nil {
		return s.failed(err)
	}
	s.ids.mu.Lock()
	defer s.ids.mu.Unlock()
	list := append(s.ids.offers[ask], f.Key)
	s.ids.offers[ask] = list[max(0, len(list)-checkpoint.MaxOffers):]
	return nil
}

// Adopt implements [checkpoint.Index].
func (s *Store) Adopt(ctx context.Context, ask checkpoint.AskKey, owner checkpoint.Owner, within time.Duration) (checkpoint.Fence, *checkpoint.Record, error) {
	s.ids.mu.Lock()
	keys := slices.Clone(s.ids.offers[ask])
	s.ids.mu.Unlock()
	none := checkpoint.ErrNotFound
	for _, key := range keys {
		f, r, err := s.adopt(ctx, key, ask, owner, within)
		switch {
		case err == nil:
			return f, r, nil
		case errors.Is(err, checkpoint.ErrUnavailable):
			return checkpoint.Fence{}, nil, err
		case errors.Is(err, checkpoint.ErrOwned):
			none = checkpoint.ErrOwned
		}
	}
	return checkpoint.Fence{}, nil, none
}

func (s *Store) adopt(ctx context.Context, key checkpoint.TurnKey, ask checkpoint.AskKey, owner checkpoint.Owner, within time.Duration) (checkpoint.Fence, *checkpoint.Record, error) {
	h, now, err := s.grab(ctx, key, false)
	if err != nil {
		return checkpoint.Fence{}, nil, err
	}
	defer h.mu.Unlock()
	switch {
	case h.err != nil || !slices.Contains(h.asks, ask) || now.Sub(h.rec.Updated) > within:
		return checkpoint.Fence{}, nil, checkpoint.ErrNotFound
	case !checkpoint.Orphan(&h.rec, owner, s.ids.alive(h.rec.Owner)):
		if h.rec.State.Phase == checkpoint.Live && h.rec.Owner != owner {
			return checkpoint.Fence{}, nil, checkpoint.ErrOwned
		}
		return checkpoint.Fence{}, nil, checkpoint.ErrNotFound
	}
	before, err := s.show(h)
	if err != nil {
		return checkpoint.Fence{}, nil, err
	}
	asks := slices.DeleteFunc(slices.Clone(h.asks), func(a checkpoint.AskKey) bool { return a == ask })
	f, err := s.take(h, owner, now, asks)
	if err != nil {
		return checkpoint.Fence{}, nil, err
	}
	s.ids.mu.Lock()
	defer s.ids.mu.Unlock()
	s.ids.retract(ask, key)
	return f, before, nil
}

// Secret implements [checkpoint.Secrets].
func (s *Store) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	sum := sha256.Sum256([]byte(name))
	path := filepath.Join(s.c.Dir, "secrets", hex.EncodeToString(sum[:]))
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if len(fresh) == 0 {
			return nil, checkpoint.ErrNotFound
		}
		b, err = slices.Clone(fresh), replace(path, fresh)
	}
	if err != nil {
		return nil, s.failed(err)
	}
	return b, nil
}
