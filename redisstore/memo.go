package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Remember implements [checkpoint.Memos]. It is one pipeline.
func (s *Store) Remember(ctx context.Context, ttl time.Duration, memos ...checkpoint.Memo) error {
	for _, m := range memos {
		if int64(len(m.Value)) > s.cfg.MaxTurn {
			return fmt.Errorf("%w: memo of %d bytes, at most %d", checkpoint.ErrTooLarge, len(m.Value), s.cfg.MaxTurn)
		}
	}
	return s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) error {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, m := range memos {
				p.Set(ctx, s.keys.memo(m.Key), m.Value, ttl)
			}
			return nil
		})
		return err
	})
}

// Recall implements [checkpoint.Memos]. It is one pipeline of single reads: the keys
// of a Cluster's memos are in different slots.
func (s *Store) Recall(ctx context.Context, keys ...checkpoint.MemoKey) ([][]byte, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	out := make([][]byte, len(keys))
	err := s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) error {
		got := make([]*redis.StringCmd, len(keys))
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, key := range keys {
				got[i] = p.Get(ctx, s.keys.memo(key))
			}
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		for i, cmd := range got {
			switch v, err := cmd.Bytes(); {
			case err == nil:
				out[i] = v
			case !errors.Is(err, redis.Nil):
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
