package sealed

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Inner is what can be sealed: a store with the powers that every one of ours has.
type Inner interface {
	checkpoint.Store
	checkpoint.Follower
	checkpoint.Index
	checkpoint.Secrets
	checkpoint.Memos
}

// Store is a sealed store.
type Store struct {
	inner Inner
	keys  Keys

	mu    sync.Mutex
	turns map[checkpoint.TurnKey]claimed
}

// claimed is a turn that this process may write, and the key of its log.
type claimed struct {
	fence uint64
	key   turnKey
}

// behind is a sealed store that writes behind its callers' backs.
type behind struct {
	*Store
	inner checkpoint.Behind
}

var _ checkpoint.Behind = behind{}

// New seals a store. What it returns is a [checkpoint.Behind] if inner is one.
func New(inner Inner, keys Keys) Inner {
	if len(keys.ring) == 0 {
		panic("BUG: sealed: no keys")
	}
	s := &Store{inner: inner, keys: keys, turns: map[checkpoint.TurnKey]claimed{}}
	if b, ok := inner.(checkpoint.Behind); ok {
		return behind{s, b}
	}
	return s
}

// Claim implements [checkpoint.Store].
func (s *Store) Claim(ctx context.Context, key checkpoint.TurnKey, owner checkpoint.Owner, head checkpoint.Record) (checkpoint.Fence, *checkpoint.Record, error) {
	t := freshKey()
	f, before, err := s.inner.Claim(ctx, key, owner, s.keys.wrap(key, head, t))
	if errors.Is(err, checkpoint.ErrOwned) && before != nil {
		r, _, uerr := s.keys.unwrap(key, before, 0)
		if uerr != nil {
			return checkpoint.Fence{}, nil, uerr
		}
		return f, r, err
	}
	if err != nil {
		return f, nil, err
	}
	return s.took(ctx, f, before, t)
}

// took notes the key of a turn that was claimed. One that cannot be read is given
// back: another process may have the key that we lack.
func (s *Store) took(ctx context.Context, f checkpoint.Fence, before *checkpoint.Record, fresh turnKey) (checkpoint.Fence, *checkpoint.Record, error) {
	var r *checkpoint.Record
	if before != nil {
		var err error
		if r, fresh, err = s.keys.unwrap(f.Key, before, 0); err != nil {
			_ = s.inner.Release(context.WithoutCancel(ctx), f)
			return checkpoint.Fence{}, nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[f.Key].fence < f.N {
		s.turns[f.Key] = claimed{f.N, fresh}
	}
	return f, r, nil
}

func (s *Store) key(f checkpoint.Fence) (turnKey, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.turns[f.Key]
	return c.key, ok && c.fence == f.N
}

func (s *Store) forget(f checkpoint.Fence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[f.Key].fence == f.N {
		delete(s.turns, f.Key)
	}
}

// Append implements [checkpoint.Store].
func (s *Store) Append(ctx context.Context, f checkpoint.Fence, offset int64, p []byte) error {
	t, ok := s.key(f)
	if !ok {
		// It is not ours any more. The store knows why.
		if err := s.inner.Append(ctx, f, 0, nil); err != nil {
			return err
		}
		return checkpoint.ErrFenced
	}
	if offset >= 0 {
		p = t.crypt(offset, p)
	}
	return s.inner.Append(ctx, f, offset, p)
}

// Mark implements [checkpoint.Store].
func (s *Store) Mark(ctx context.Context, f checkpoint.Fence, st checkpoint.State) error {
	return s.inner.Mark(ctx, f, st)
}

// Release implements [checkpoint.Store].
func (s *Store) Release(ctx context.Context, f checkpoint.Fence) error {
	err := s.inner.Release(ctx, f)
	if err == nil {
		s.forget(f)
	}
	return err
}

// Delete implements [checkpoint.Store].
func (s *Store) Delete(ctx context.Context, f checkpoint.Fence) error {
	err := s.inner.Delete(ctx, f)
	if err == nil {
		s.forget(f)
	}
	return err
}

// Get implements [checkpoint.Store].
func (s *Store) Get(ctx context.Context, key checkpoint.TurnKey) (*checkpoint.Record, error) {
	outer, err := s.inner.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	r, _, err := s.keys.unwrap(key, outer, 0)
	return r, err
}

// Follow implements [checkpoint.Follower].
func (s *Store) Follow(ctx context.Context, key checkpoint.TurnKey, offset int64) (*checkpoint.Record, bool, error) {
	outer, alive, err := s.inner.Follow(ctx, key, offset)
	if err != nil {
		return nil, false, err
	}
	r, _, err := s.keys.unwrap(key, outer, offset)
	return r, alive, err
}

// Offer implements [checkpoint.Index].
func (s *Store) Offer(ctx context.Context, ask checkpoint.AskKey, f checkpoint.Fence) error {
	return s.inner.Offer(ctx, ask, f)
}

// Adopt implements [checkpoint.Index].
func (s *Store) Adopt(ctx context.Context, ask checkpoint.AskKey, owner checkpoint.Owner, within time.Duration) (checkpoint.Fence, *checkpoint.Record, error) {
	f, before, err := s.inner.Adopt(ctx, ask, owner, within)
	if err != nil {
		return f, nil, err
	}
	return s.took(ctx, f, before, turnKey{})
}

// Secret implements [checkpoint.Secrets]. A secret is never written anew, so that
// each key of the ring has a copy of its own: processes agree while keys rotate,
// whichever one they share, and an old key can be dropped.
func (s *Store) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	for _, key := range s.keys.ring {
		b, err := s.inner.Secret(ctx, key.copyOf(name), nil)
		if errors.Is(err, checkpoint.ErrNotFound) {
			continue
		}
		if err == nil {
			fresh, err = s.keys.Open(b, "secret "+name)
		}
		if err != nil {
			return nil, err
		}
		break
	}
	if len(fresh) == 0 {
		return nil, checkpoint.ErrNotFound
	}
	for _, key := range s.keys.ring {
		b, err := s.inner.Secret(ctx, key.copyOf(name), key.seal(fresh, "secret "+name))
		if err == nil { // what was there, or another process was first
			fresh, err = s.keys.Open(b, "secret "+name)
		}
		if err != nil {
			return nil, err
		}
	}
	return fresh, nil
}

func (key ringKey) copyOf(name string) string {
	return name + ":sealed:" + hex.EncodeToString(key.id[:])
}

// Remember implements [checkpoint.Memos].
func (s *Store) Remember(ctx context.Context, ttl time.Duration, memos ...checkpoint.Memo) error {
	closed := make([]checkpoint.Memo, len(memos))
	for i, m := range memos {
		closed[i] = checkpoint.Memo{Key: m.Key, Value: s.keys.Seal(m.Value, "memo "+m.Key.String())}
	}
	return s.inner.Remember(ctx, ttl, closed...)
}

// Recall implements [checkpoint.Memos].
func (s *Store) Recall(ctx context.Context, keys ...checkpoint.MemoKey) ([][]byte, error) {
	values, err := s.inner.Recall(ctx, keys...)
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		if v == nil {
			continue
		}
		if values[i], err = s.keys.Open(v, "memo "+keys[i].String()); err != nil {
			return nil, err
		}
	}
	return values, nil
}
