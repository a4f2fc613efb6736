package redisstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// waits tells how many calls no pipeline has taken yet.
func (cs *calls) waits() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.waiting)
}

// A claim waited behind a Redis that stood still. Its caller gave up and served the stream
// without it; when Redis went on, the claim took the turn all the same, and kept every
// other process from it.
func TestCallThatNobodyWaitsForIsNotMade(t *testing.T) {
	srv := startRedis(t)
	s := open(t, srv.url(), func(c *Config) { c.Timeout, c.Renew, c.LiveTTL = 30*time.Second, time.Minute, 3*time.Minute })
	if _, _, err := s.Claim(t.Context(), checkpoint.TurnKey{255}, me, checkpoint.Record{}); err != nil {
		t.Fatal(err) // me is alive
	}
	running := func() int {
		s.calls.mu.Lock()
		defer s.calls.mu.Unlock()
		return s.calls.running
	}
	until(t, "its lane has ended", func() bool { return running() == 0 }) // or it counts for the first of those below
	srv.freeze()
	var wg sync.WaitGroup
	for i := range lanes {
		wg.Go(func() {
			if _, _, err := s.Claim(t.Context(), checkpoint.TurnKey{1, byte(i)}, me, checkpoint.Record{}); err != nil {
				t.Errorf("a claim under way: %v", err)
			}
		})
		until(t, "a lane runs", func() bool { return running() == i+1 && s.calls.waits() == 0 })
	}
	ctx, giveUp := context.WithCancel(t.Context())
	left, kept := checkpoint.TurnKey{2}, checkpoint.TurnKey{3}
	wg.Go(func() {
		if _, _, err := s.Claim(ctx, left, me, checkpoint.Record{}); !errors.Is(err, checkpoint.ErrUnavailable) {
			t.Errorf("the claim that was given up: %v", err)
		}
	})
	until(t, "it waits", func() bool { return s.calls.waits() == 1 })
	wg.Go(func() {
		if _, _, err := s.Claim(t.Context(), kept, me, checkpoint.Record{}); err != nil {
			t.Errorf("the claim behind it: %v", err)
		}
	})
	until(t, "another waits behind it", func() bool { return s.calls.waits() == 2 })
	giveUp()
	srv.thaw()
	wg.Wait()
	if n := srv.do("EXISTS", s.keys.turn(left)[0], s.keys.turn(kept)[0]); n != int64(1) {
		t.Errorf("%v of the two turns are claimed, the one that was given up was not to be", n)
	}
}

// Close ends while Redis stands still and many wait for it, and so do they, those whose
// contexts never end among them.
func TestCloseEndsCallsOfAFrozenRedis(t *testing.T) {
	srv := startRedis(t)
	s := open(t, srv.url(), func(c *Config) { brisk(c); c.Failures = 1000 })
	if _, _, err := s.Claim(t.Context(), checkpoint.TurnKey{255}, me, checkpoint.Record{}); err != nil {
		t.Fatal(err)
	}
	srv.freeze()
	var wg sync.WaitGroup
	for i := range 2*lanes*laneSteps + 1 {
		wg.Go(func() {
			if _, _, err := s.Claim(context.Background(), checkpoint.TurnKey{1, byte(i), byte(i >> 8)}, me, checkpoint.Record{}); !errors.Is(err, checkpoint.ErrUnavailable) {
				t.Errorf("claim %d: %v", i, err)
			}
		})
	}
	until(t, "calls wait", func() bool { return s.calls.waits() > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	s.Close(ctx)
	wg.Wait()
	if n := s.calls.waits(); n > 0 {
		t.Errorf("%d calls wait in a closed store", n)
	}
	srv.thaw()
}
