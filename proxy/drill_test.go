package proxy

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/relay"
)

// The outage drill at the size of a test: many live streams, the provider dies under
// all of them, stays away, and returns. Every turn is completed, word for word; while
// the provider is away nobody hammers it, and when it is back it is not asked by
// everybody at once. bench has the drill at its full size, with the plot.
func TestOutageDrill(t *testing.T) {
	const streams = 60
	const away = 1500 * time.Millisecond
	var down atomic.Bool
	dead := make(chan struct{})
	var flying, peak, hits atomic.Int64
	script := func(a *asked) {
		again := strings.Contains(string(a.body), "assistant")
		switch {
		case down.Load():
			hits.Add(1)
			a.rst()
		case !again:
			a.stream()
			a.chunk(oc("the quick brown fox jumps over the lazy dog, "))
			<-dead
			a.rst()
		default:
			now := flying.Add(1)
			for old := peak.Load(); now > old && !peak.CompareAndSwap(old, now); old = peak.Load() {
			}
			a.stream()
			time.Sleep(20 * time.Millisecond) // the model thinks
			flying.Add(-1)
			a.chunks(oc("the quick brown fox jumps over the lazy dog, and rests"), fr("stop"), done)
			a.end()
		}
	}
	p := newProvider(t, script)
	s := start(t, p, func(c *Config) {
		c.Breaker = BreakerConfig{Failures: 5, Window: 5 * time.Second, Open: 300 * time.Millisecond}
	}, relayed(func(r *relay.Config) { r.WaitBudget = patience }))
	got := make(chan string, streams)
	for i := range streams {
		go func() {
			ask := strings.Replace(chatAsk, "Say it", fmt.Sprintf("Say it %d", i), 1)
			res := dial(t, s.addr).post("/v1/chat/completions", ask).response()
			body, err := allOf(res)
			if err != nil {
				body = "broken: " + body
			}
			got <- body
		}()
	}
	for range streams {
		p.next()
	}
	eventually(t, "all streams are live", func() bool { return s.terms.Load().origins["openai"].guard.count() == streams })
	down.Store(true)
	close(dead)
	time.Sleep(away) // the outage
	during := hits.Load()
	down.Store(false)
	complete := 0
	for range streams {
		select {
		case body := <-got:
			if !strings.HasPrefix(body, "broken") && text(t, body) == "the quick brown fox jumps over the lazy dog, and rests" {
				complete++
			} else {
				t.Errorf("a turn was lost: %s", body)
			}
		case <-time.After(patience):
			t.Fatal("a turn never ended")
		}
	}
	// 60 streams die at once. The failures of the first few open the breaker, so
	// that not even one recovery each goes out; then there is a probe per rest.
	if most := int64(stormFloor*3 + int(away/(300*time.Millisecond)) + 2); during > most {
		t.Errorf("asked %d times while it was away, want at most %d", during, most)
	}
	if limit := int64(max(stormFloor, streams/stormShare)); peak.Load() > limit {
		t.Errorf("%d recoveries at once, want at most %d", peak.Load(), limit)
	}
	if complete != streams {
		t.Errorf("%d of %d turns completed", complete, streams)
	}
	t.Logf("%d of %d turns completed; asked %d times in %v of outage; at most %d recoveries at once", complete, streams, during, away, peak.Load())
}
