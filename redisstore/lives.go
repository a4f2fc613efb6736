package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// lives is who we keep alive and what we may believe of others.
type lives struct {
	mu     sync.Mutex
	owners map[checkpoint.Owner]time.Time // when the last renewal that arrived was sent
	// steady is since when every heartbeat arrived; zero while they do not.
	steady time.Time
	down   time.Time // since when Redis is away; zero while it is not
}

// beat renews our lives, finds out when Redis is back, and has silent turns
// checked. It is the only one that logs, and only changes.
func (s *Store) beat() {
	defer s.work.Done()
	t := time.NewTicker(min(s.cfg.Retry, s.cfg.Renew))
	defer t.Stop()
	var renewed, checked, resolved time.Time
	healthy, ok := true, true
	for {
		now := time.Now()
		if s.resolve.Swap(false) || !healthy && now.Sub(resolved) > 5*time.Second {
			resolved = now
			s.reconnect()
		}
		if !ok || s.away() || now.Sub(renewed) >= s.cfg.Renew {
			renewed = now
			ok = s.renew()
		}
		if now.Sub(checked) >= s.cfg.Check/4 {
			checked = now
			s.queue.look(now, s.cfg)
		}
		if up := !s.away(); up != healthy {
			healthy, resolved = up, now
			s.changed(up, now)
		}
		select {
		case <-t.C:
		case <-s.stop:
			return
		}
	}
}

// changed tells of a change, and has all that waited written.
func (s *Store) changed(up bool, now time.Time) {
	queued, turns := s.queue.pending()
	s.lives.mu.Lock()
	since := s.lives.down
	if up {
		s.lives.down = time.Time{}
	} else {
		s.lives.down = now
	}
	s.lives.mu.Unlock()
	if up {
		s.cfg.Log.Info("redis is back", slog.Duration("away", now.Sub(since)), slog.Int("turns_behind", turns), slog.Int64("bytes_behind", queued))
		s.nudge()
		return
	}
	s.cfg.Log.Warn("redis is away: streams go on, what they say is not protected against the death of this process",
		slog.String("error", s.lastError()), slog.Int("turns_behind", turns), slog.Int64("bytes_behind", queued))
}

func (s *Store) lastError() string {
	if p := s.lastErr.Load(); p != nil {
		return (*p).Error()
	}
	return ""
}

// renew renews the lives of all owners. The lives are set anew, which needs
// memory, after being prolonged, which does not: a full Redis is away, but
// kills nobody. It reports whether Redis took it.
func (s *Store) renew() bool {
	s.lives.mu.Lock()
	owners := make([]checkpoint.Owner, 0, len(s.lives.owners)+1)
	for o := range s.lives.owners {
		owners = append(owners, o)
	}
	s.lives.mu.Unlock()
	sent := time.Now()
	alive := map[checkpoint.Owner]bool{}
	err := s.command(context.Background(), true, func(ctx context.Context, c redis.UniversalClient) error {
		if len(owners) == 0 {
			return c.Set(ctx, s.keys.live(""), "", s.cfg.LiveTTL).Err() // ask as one who writes
		}
		cmds := make([]redis.Cmder, 0, 2*len(owners))
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, o := range owners {
				cmds = append(cmds, p.PExpire(ctx, s.keys.live(o), s.cfg.LiveTTL), p.Set(ctx, s.keys.live(o), "", s.cfg.LiveTTL))
			}
			return nil
		})
		for i, o := range owners {
			prolonged, _ := cmds[2*i].(*redis.BoolCmd)
			alive[o] = prolonged.Val() || cmds[2*i+1].Err() == nil
		}
		return err
	})
	s.lives.mu.Lock()
	switch {
	case err != nil:
		s.lives.steady = time.Time{}
	case s.lives.steady.IsZero():
		s.lives.steady = sent
	}
	s.lives.mu.Unlock()
	for o := range alive {
		if alive[o] {
			s.renewed(o, sent)
		}
	}
	return err == nil
}

// renewed notes a renewal that was sent at a time and arrived. An owner that was
// silent for longer than its life may have lost its turns meanwhile.
func (s *Store) renewed(o checkpoint.Owner, sent time.Time) {
	s.lives.mu.Lock()
	last, known := s.lives.owners[o]
	if !last.After(sent) {
		s.lives.owners[o] = sent
	}
	s.lives.mu.Unlock()
	if known && sent.Sub(last) > s.cfg.LiveTTL {
		s.queue.checkAll()
	}
}

// live makes sure that an owner counts as alive before it claims.
func (s *Store) live(ctx context.Context, o checkpoint.Owner) error {
	s.lives.mu.Lock()
	last, known := s.lives.owners[o]
	s.lives.mu.Unlock()
	sent := time.Now()
	if known && sent.Sub(last) < s.cfg.LiveTTL/2 {
		return nil
	}
	err := s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) error {
		return c.Set(ctx, s.keys.live(o), "", s.cfg.LiveTTL).Err()
	})
	if err != nil {
		return err
	}
	s.renewed(o, sent)
	return nil
}

// dead reports whether we know that an owner does not live.
func (s *Store) dead(ctx context.Context, o checkpoint.Owner) (bool, error) {
	s.lives.mu.Lock()
	now, steady := time.Now(), s.lives.steady
	s.lives.mu.Unlock()
	if s.cfg.Grace > 0 && (steady.IsZero() || now.Sub(steady) < s.cfg.Grace) {
		return false, nil
	}
	var n int64
	err := s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) (err error) {
		n, err = c.Exists(ctx, s.keys.live(o)).Result()
		return err
	})
	if err != nil {
		return false, fmt.Errorf("is the owner alive: %w", err)
	}
	return n == 0, nil
}

// die gives up all lives.
func (s *Store) die(ctx context.Context) {
	s.lives.mu.Lock()
	owners := s.lives.owners
	s.lives.owners = map[checkpoint.Owner]time.Time{}
	s.lives.mu.Unlock()
	for o := range owners {
		// Best effort: they end by themselves.
		_ = s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) error {
			return c.Del(ctx, s.keys.live(o)).Err()
		})
	}
}
