package redisstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Offer implements [checkpoint.Index].
func (s *Store) Offer(ctx context.Context, ask checkpoint.AskKey, f checkpoint.Fence) error {
	re, err := s.call(ctx, offerScript, []string{s.keys.ask(ask)}, f.Key.String(), checkpoint.MaxOffers, s.cfg.TTL.Milliseconds())
	if err != nil {
		return err
	}
	return re.outcome().refuse(0)
}

// Adopt implements [checkpoint.Index]. Whoever takes the turn out of the set of
// offers is the one that adopts it.
func (s *Store) Adopt(ctx context.Context, ask checkpoint.AskKey, owner checkpoint.Owner, within time.Duration) (checkpoint.Fence, *checkpoint.Record, error) {
	var offers []string
	err := s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) (err error) {
		offers, err = c.ZRange(ctx, s.keys.ask(ask), 0, -1).Result()
		return err
	})
	if err != nil {
		return checkpoint.Fence{}, nil, err
	}
	none := checkpoint.ErrNotFound
	for _, member := range offers {
		f, r, err := s.adopt(ctx, ask, member, owner, within)
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

// adopt tries one offer.
func (s *Store) adopt(ctx context.Context, ask checkpoint.AskKey, member string, owner checkpoint.Owner, within time.Duration) (f checkpoint.Fence, _ *checkpoint.Record, err error) {
	if raw, err := hex.DecodeString(member); err != nil || copy(f.Key[:], raw) != len(f.Key) {
		return f, nil, fmt.Errorf("%w: an offer", checkpoint.ErrCorrupt)
	}
	key := f.Key
	r, err := s.part(ctx, key, 0, 0)
	if err != nil {
		return f, nil, err
	}
	gone := r.Owner == ""
	if !gone && r.Owner != owner {
		if gone, err = s.dead(ctx, r.Owner); err != nil {
			return f, nil, err
		}
	}
	switch {
	case r.State.Phase == checkpoint.Live && r.Owner != owner && !gone:
		return f, nil, checkpoint.ErrOwned
	case !checkpoint.Orphan(&r.Record, owner, !gone) || time.Since(r.Updated) > within:
		return f, nil, checkpoint.ErrNotFound
	}
	if err := s.live(ctx, owner); err != nil {
		return f, nil, err
	}
	var first int64
	err = s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) (err error) {
		first, err = c.ZRem(ctx, s.keys.ask(ask), member).Result()
		return err
	})
	if err != nil {
		return f, nil, err
	}
	if first == 0 {
		return f, nil, checkpoint.ErrNotFound
	}
	f, got, err := s.claim(ctx, key, owner, checkpoint.Record{}, r.fence)
	switch {
	case err != nil:
		return checkpoint.Fence{}, nil, err
	case got == nil:
		// It expired between the look and the claim, which made a new one.
		_ = s.Delete(ctx, f)
		return checkpoint.Fence{}, nil, checkpoint.ErrNotFound
	}
	return f, &got.Record, nil
}

// Secret implements [checkpoint.Secrets].
func (s *Store) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	var v []byte
	err := s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) error {
		if len(fresh) > 0 {
			if err := c.SetNX(ctx, s.keys.secret(name), fresh, 0).Err(); err != nil {
				return err
			}
		}
		b, err := c.Get(ctx, s.keys.secret(name)).Bytes()
		if v = b; errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	if err == nil && len(v) == 0 {
		err = checkpoint.ErrNotFound
	}
	return v, err
}
