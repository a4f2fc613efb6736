package redisstore

import (
	"context"
	"encoding/hex"
	"errors"
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
	var members []string
	err := s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) (err error) {
		members, err = c.ZRange(ctx, s.keys.ask(ask), 0, -1).Result()
		return err
	})
	if err != nil {
		return checkpoint.Fence{}, nil, err
	}
	looks, err := s.look(ctx, members)
	if err != nil {
		return checkpoint.Fence{}, nil, err
	}
	none := checkpoint.ErrNotFound
	gone := map[checkpoint.Owner]bool{"": true, owner: false}
	for _, o := range looks {
		f, r, err := s.adopt(ctx, ask, o, owner, within, gone)
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

// offer is a turn that is offered, and a look at its record.
type offer struct {
	member string
	key    checkpoint.TurnKey
	look   *step
}

// look reads the records of all offers, without their logs, in one round trip: a question
// that many ask at once has as many offers, nearly all of them live. What is no offer is
// left out.
func (s *Store) look(ctx context.Context, members []string) ([]offer, error) {
	var all []offer
	var steps []*step
	for _, m := range members {
		o := offer{member: m}
		if raw, err := hex.DecodeString(m); err != nil || copy(o.key[:], raw) != len(o.key) {
			continue
		}
		o.look = &step{script: readScript, keys: s.keys.turn(o.key), args: []any{0, 0}}
		all, steps = append(all, o), append(steps, o.look)
	}
	if len(steps) == 0 {
		return nil, nil
	}
	return all, s.pipeline(ctx, steps)
}

// adopt tries one offer. gone is what is known of owners.
func (s *Store) adopt(ctx context.Context, ask checkpoint.AskKey, o offer, owner checkpoint.Owner, within time.Duration, gone map[checkpoint.Owner]bool) (f checkpoint.Fence, _ *checkpoint.Record, err error) {
	if out := o.look.reply.outcome(); out != done {
		return f, nil, out.refuse(0)
	}
	r, err := o.look.reply.record()
	if err != nil {
		return f, nil, err
	}
	if _, known := gone[r.Owner]; !known {
		if gone[r.Owner], err = s.dead(ctx, r.Owner); err != nil {
			return f, nil, err
		}
	}
	switch {
	case r.State.Phase == checkpoint.Live && r.Owner != owner && !gone[r.Owner]:
		return f, nil, checkpoint.ErrOwned
	case !checkpoint.Orphan(&r.Record, owner, !gone[r.Owner]) || time.Since(r.Updated) > within:
		return f, nil, checkpoint.ErrNotFound
	}
	if err := s.live(ctx, owner); err != nil {
		return f, nil, err
	}
	var first int64
	err = s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) (err error) {
		first, err = c.ZRem(ctx, s.keys.ask(ask), o.member).Result()
		return err
	})
	if err != nil {
		return f, nil, err
	}
	if first == 0 {
		return f, nil, checkpoint.ErrNotFound
	}
	f, got, err := s.claim(ctx, o.key, owner, checkpoint.Record{}, r.fence)
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
