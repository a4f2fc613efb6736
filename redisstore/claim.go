package redisstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// The most of a log that one answer or one pipelined command carries; that of a claim
// shares its pipeline with others.
const (
	claimChunk = 64 << 10
	readChunk  = 1 << 20
	writeChunk = 128 << 10
)

// Claim implements [checkpoint.Store].
func (s *Store) Claim(ctx context.Context, key checkpoint.TurnKey, owner checkpoint.Owner, head checkpoint.Record) (checkpoint.Fence, *checkpoint.Record, error) {
	if err := s.live(ctx, owner); err != nil {
		return checkpoint.Fence{}, nil, err
	}
	f, r, err := s.claim(ctx, key, owner, head, "")
	if r == nil || err == nil {
		return f, plain(r), err
	}
	// Somebody else's. The turn and its owner's life are in different slots, so
	// that the one is asked between two looks at the other; the fence shows
	// whether the turn changed hands meanwhile.
	gone, err := s.dead(ctx, r.Owner)
	if err != nil {
		return checkpoint.Fence{}, nil, err
	}
	if gone {
		if f, r, err = s.claim(ctx, key, owner, head, r.fence); r == nil || err == nil {
			return f, plain(r), err
		}
	}
	if err := s.rest(ctx, key, r); err != nil {
		return checkpoint.Fence{}, nil, err
	}
	return checkpoint.Fence{}, plain(r), checkpoint.ErrOwned
}

// claim claims once; from is the fence of a dead owner. With ErrOwned comes the
// record with the head of its log only, with any other error none.
func (s *Store) claim(ctx context.Context, key checkpoint.TurnKey, owner checkpoint.Owner, head checkpoint.Record, from string) (checkpoint.Fence, *stored, error) {
	id := identity(head)
	re, err := s.call(ctx, claimScript, s.keys.turn(key),
		string(owner), id, encode(checkpoint.State{}), from, id[0],
		s.cfg.TTL.Milliseconds(), (s.cfg.TTL + s.cfg.FenceTTL).Milliseconds(), claimChunk)
	if err != nil {
		return checkpoint.Fence{}, nil, err
	}
	switch o := re.outcome(); o {
	case done:
		f, err := fence(key, re)
		return f, nil, err
	case taken:
		f, err := fence(key, re)
		if err != nil {
			return f, nil, err
		}
		r, err := re.record()
		if err == nil {
			err = s.rest(ctx, key, r)
		}
		if err != nil {
			// It is ours but of no use. Whoever asks next may try.
			_ = s.Release(context.WithoutCancel(ctx), f)
			return checkpoint.Fence{}, nil, err
		}
		return f, r, nil
	case owned:
		r, err := re.record()
		if err != nil {
			return checkpoint.Fence{}, nil, err
		}
		return checkpoint.Fence{}, r, checkpoint.ErrOwned
	default:
		return checkpoint.Fence{}, nil, o.refuse(0)
	}
}

func fence(key checkpoint.TurnKey, re reply) (checkpoint.Fence, error) {
	n, err := strconv.ParseUint(re.text(1), 10, 64)
	if err != nil {
		return checkpoint.Fence{}, fmt.Errorf("%w: fence %q", checkpoint.ErrCorrupt, clip(re.text(1)))
	}
	return checkpoint.Fence{Key: key, N: n}, nil
}

func plain(s *stored) *checkpoint.Record {
	if s == nil {
		return nil
	}
	return &s.Record
}
