package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Claim implements [checkpoint.Store].
func (s *Store) Claim(ctx context.Context, key checkpoint.TurnKey, owner checkpoint.Owner, head checkpoint.Record) (checkpoint.Fence, *checkpoint.Record, error) {
	s.sweep(s.now())
	h, now, err := s.grab(ctx, key, true)
	if err != nil {
		return checkpoint.Fence{}, nil, err
	}
	defer h.mu.Unlock()
	switch {
	case h.err != nil:
		return checkpoint.Fence{}, nil, h.err
	case h.fresh:
		r := *head.Clone()
		r.Owner, r.Log, r.State, r.Created, r.Updated = owner, nil, checkpoint.State{}, now, now
		fence := s.ids.next(owner, now)
		if err = os.MkdirAll(filepath.Dir(h.path), 0o700); err == nil {
			_ = os.Remove(h.path + ".log") // of one that expired while nobody looked
			err = h.save(fence, nil, r)
		}
		if err != nil {
			h.gone = true
			return checkpoint.Fence{}, nil, s.failed(err)
		}
		h.fresh = false
		return checkpoint.Fence{Key: key, N: fence}, nil, nil
	}
	before, err := s.show(h)
	if err != nil {
		return checkpoint.Fence{}, nil, err
	}
	if o := h.rec.Owner; o != "" && o != owner && s.ids.alive(o) {
		return checkpoint.Fence{}, before, checkpoint.ErrOwned
	}
	f, err := s.take(h, owner, now, h.asks)
	if err != nil {
		return checkpoint.Fence{}, nil, err
	}
	return f, before, nil
}

// take gives a turn to owner. Its mu is held.
func (s *Store) take(h *held, owner checkpoint.Owner, now time.Time, asks []checkpoint.AskKey) (checkpoint.Fence, error) {
	r := h.rec
	r.Owner, r.Updated = owner, h.touched(now)
	fence := s.ids.next(owner, now)
	if err := h.save(fence, asks, r); err != nil {
		return checkpoint.Fence{}, s.failed(err)
	}
	return checkpoint.Fence{Key: h.key, N: fence}, nil
}

// show returns a copy of the record with its log. Its mu is held.
func (s *Store) show(h *held) (*checkpoint.Record, error) {
	log, err := h.read()
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return nil, err
	}
	if err != nil {
		return nil, s.failed(err)
	}
	r := h.rec.Clone()
	r.Log = log
	return r, nil
}

// Append implements [checkpoint.Store].
func (s *Store) Append(ctx context.Context, f checkpoint.Fence, offset int64, p []byte) error {
	h, now, err := s.holder(ctx, f)
	if err != nil {
		return err
	}
	defer h.mu.Unlock()
	if offset < 0 || offset > h.size {
		return fmt.Errorf("%w: offset %d of %d", checkpoint.ErrGap, offset, h.size)
	}
	if known := min(int64(len(p)), h.size-offset); known > 0 {
		log, err := h.read()
		if err != nil {
			return s.failed(err)
		}
		if !bytes.Equal(log[offset:offset+known], p[:known]) {
			return fmt.Errorf("%w: offset %d", checkpoint.ErrConflict, offset)
		}
		p = p[known:]
	}
	if size := h.size + int64(len(p)); size > s.c.MaxTurn {
		return fmt.Errorf("%w: turn of %d bytes, at most %d", checkpoint.ErrTooLarge, size, s.c.MaxTurn)
	}
	if len(p) > 0 {
		if total := s.total.Add(int64(len(p))); total > s.c.MaxTotal {
			s.total.Add(-int64(len(p)))
			return fmt.Errorf("%w: the store would hold %d bytes, at most %d", checkpoint.ErrTooLarge, total, s.c.MaxTotal)
		}
		if err := h.write(p); err != nil {
			s.total.Add(-int64(len(p)))
			return s.failed(err)
		}
	}
	h.rec.Updated = h.touched(now)
	return nil
}

// Mark implements [checkpoint.Store].
func (s *Store) Mark(ctx context.Context, f checkpoint.Fence, st checkpoint.State) error {
	h, now, err := s.holder(ctx, f)
	if err != nil {
		return err
	}
	defer h.mu.Unlock()
	if h.rec.State.Phase == checkpoint.Finished {
		return nil
	}
	r := h.rec
	r.State, r.Updated = st, now
	r.State.Causes = slices.Clone(st.Causes)
	if err := h.save(h.fence, h.asks, r); err != nil {
		return s.failed(err)
	}
	return nil
}

// Release implements [checkpoint.Store].
func (s *Store) Release(ctx context.Context, f checkpoint.Fence) error {
	h, now, err := s.grab(ctx, f.Key, false)
	if err != nil {
		return err
	}
	defer h.mu.Unlock()
	switch {
	case h.err != nil:
		return h.err
	case h.fence != f.N:
		return checkpoint.ErrFenced
	case h.rec.Owner == "":
		return nil
	}
	r := h.rec
	r.Owner, r.Updated = "", h.touched(now)
	if err := h.save(h.fence, h.asks, r); err != nil {
		return s.failed(err)
	}
	h.shut()
	return nil
}

// Get implements [checkpoint.Store].
func (s *Store) Get(ctx context.Context, key checkpoint.TurnKey) (*checkpoint.Record, error) {
	r, _, err := s.Follow(ctx, key, 0)
	return r, err
}

// Follow implements [checkpoint.Follower].
func (s *Store) Follow(ctx context.Context, key checkpoint.TurnKey, offset int64) (*checkpoint.Record, bool, error) {
	h, _, err := s.grab(ctx, key, false)
	if err != nil {
		return nil, false, err
	}
	defer h.mu.Unlock()
	if h.err != nil {
		return nil, false, h.err
	}
	if offset < 0 || offset > h.size {
		return nil, false, fmt.Errorf("%w: follow from %d of %d", checkpoint.ErrGap, offset, h.size)
	}
	r := h.rec.Clone()
	if offset < h.size {
		if r, err = s.show(h); err != nil {
			return nil, false, err
		}
		r.Log = r.Log[offset:]
	}
	return r, r.Owner != "" && s.ids.alive(r.Owner), nil
}

// Delete implements [checkpoint.Store].
func (s *Store) Delete(ctx context.Context, f checkpoint.Fence) error {
	h, _, err := s.grab(ctx, f.Key, false)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if h.fence != f.N {
		h.mu.Unlock()
		return checkpoint.ErrFenced
	}
	s.discard(h)
	h.mu.Unlock()
	s.forget(h)
	return nil
}
