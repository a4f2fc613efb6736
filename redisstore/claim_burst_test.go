package redisstore

import (
	"sync"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Five thousand streams that began within a second made Redis look away: each claimed with
// a round trip of its own, they waited for one another past their deadlines, three of
// which in a row opened the breaker, and most streams were unprotected with a Redis that
// idled. What is asked while an answer is awaited goes out together.
func TestClaimsOfABurstShareTheirRoundTrips(t *testing.T) {
	srv := startRedis(t)
	s := open(t, srv.url(), func(c *Config) { c.Timeout, c.Renew, c.LiveTTL = 10*time.Second, 20*time.Second, time.Minute })
	if _, _, err := s.Claim(t.Context(), checkpoint.TurnKey{255}, me, checkpoint.Record{}); err != nil {
		t.Fatal(err) // me is alive, the scripts are known
	}
	reads := srv.infoNumber("stats", "total_reads_processed")
	srv.freeze()
	const burst = 500
	fences := make([]checkpoint.Fence, burst)
	errs := make([]error, burst)
	var wg sync.WaitGroup
	for i := range burst {
		wg.Go(func() {
			fences[i], _, errs[i] = s.Claim(t.Context(), checkpoint.TurnKey{1, byte(i), byte(i >> 8)}, me, checkpoint.Record{})
		})
	}
	until(t, "claims wait", func() bool {
		s.calls.mu.Lock()
		defer s.calls.mu.Unlock()
		return len(s.calls.waiting) >= burst-lanes*laneSteps
	})
	srv.thaw()
	wg.Wait()
	for i := range burst {
		if errs[i] != nil || fences[i].Key != (checkpoint.TurnKey{1, byte(i), byte(i >> 8)}) {
			t.Errorf("claim %d: %v, %v", i, fences[i], errs[i])
		}
	}
	if n := srv.infoNumber("stats", "total_reads_processed") - reads; n > burst/4 {
		t.Errorf("%d claims needed %d reads", burst, n)
	}
}
