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
	re, err := s.call(ctx, offersScript, []string{s.keys.ask(ask)})
	if err != nil {
		return checkpoint.Fence{}, nil, err
	}
	looks, err := s.look(ctx, re)
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
	s.withdraw(ctx, ask, looks)
	return checkpoint.Fence{}, nil, none
}

// offer is a turn that is offered, and a look at its record.
type offer struct {
	member string
	key    checkpoint.TurnKey
	look   *step
}

// look reads the records of the offers in re, without their logs, in one round trip: a
// question that many ask at once has as many offers, nearly all of them live. What is no
// offer is left out, and so is what this process itself carries on.
func (s *Store) look(ctx context.Context, re reply) ([]offer, error) {
	var all []offer
	var steps []*step
	now := time.Now()
	for i := 1; i < len(re); i++ {
		o := offer{member: re.text(i)}
		if raw, err := hex.DecodeString(o.member); err != nil || copy(o.key[:], raw) != len(o.key) {
			continue
		}
		if s.queue.carries(o.key, now.Add(-s.cfg.Check)) {
			continue
		}
		o.look = newStep(readScript, s.keys.turn(o.key), 0, 0)
		all, steps = append(all, o), append(steps, o.look)
	}
	if len(steps) == 0 {
		return nil, nil
	}
	return all, s.pipeline(ctx, steps)
}

// withdraw takes out the offers of turns that are over, so that who asks next need not look
// at them. It is housekeeping: whatever becomes of it, they are no harm.
func (s *Store) withdraw(ctx context.Context, ask checkpoint.AskKey, looks []offer) {
	var over []any
	for _, o := range looks {
		if o.over() {
			over = append(over, o.member)
		}
	}
	if len(over) > 0 {
		_, _ = s.call(ctx, withdrawScript, []string{s.keys.ask(ask)}, over...)
	}
}

// over reports a turn that nobody will ever carry on.
func (o *offer) over() bool {
	switch o.look.reply.outcome() {
	case notFound:
		return true
	case done:
		r, err := o.look.reply.record()
		return err == nil && r.State.Phase == checkpoint.Finished
	}
	return false
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
