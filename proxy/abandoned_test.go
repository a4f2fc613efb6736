package proxy

import (
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/relay"
)

// abandonments is how many requests are abandoned: a sample, or as many as
// UNBROKEN_ABANDON says (10000 for the full measure).
func abandonments(t *testing.T) int {
	text := os.Getenv("UNBROKEN_ABANDON")
	if text == "" {
		return 250
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Requests that are abandoned in every way there is leave nothing behind: no
// goroutine, no place in a count or a line, no probe, no memory but what the store
// may keep of their turns.
func TestAbandonedRequestsLeaveNothing(t *testing.T) {
	flood := strings.Repeat(oc(strings.Repeat("word ", 800)), 40)
	p := newProvider(t, func(a *asked) {
		// What the test's own provider remembers is not what is measured.
		defer func() { a.br, a.req, a.body, a.head = nil, nil, nil, "" }()
		switch a.req.Header.Get("X-Kind") {
		case "before headers":
			a.hang()
		case "stalled upstream", "mid-stream":
			a.stream()
			a.chunk(oc("one "))
			a.hang()
		case "slow reader":
			a.stream()
			for !a.stop {
				a.chunk(flood)
			}
		case "in back-off":
			a.answer(503, "{}", "Retry-After: 50")
		}
	})
	p.arrived = make(chan *asked, 1<<16)
	s := start(t, p, func(c *Config) {
		c.Observer, c.Log = nil, nil // the test's, and they remember
		c.WriteStall = 300 * time.Millisecond
		c.Store = checkpoint.NewMemory(checkpoint.MemoryConfig{Clock: time.Now, MaxTotal: 1 << 20})
		c.Breaker.Failures = -1 // back-off is what is to be abandoned, not what is to open
	}, relayed(func(r *relay.Config) { r.Watch.Idle, r.Recoveries = 300*time.Millisecond, 1 }))
	kinds := []string{"before headers", "mid-stream", "slow reader", "stalled upstream", "in back-off"}
	abandon := func(kind string) {
		c := dial(t, s.addr)
		_ = c.c.(*net.TCPConn).SetReadBuffer(16 << 10) // full soon
		c.post("/v1/chat/completions", chatAsk, "X-Kind: "+kind)
		defer c.c.Close()
		switch kind {
		case "mid-stream":
			until(t, c.response().Body, "one")
		case "stalled upstream": // the client stays, and is told
			if _, err := allOf(c.response()); err == nil {
				t.Error("a turn that was given up ended well")
			}
		case "slow reader":
			c.response()
			eventually(t, "the proxy parts with who does not read", func() bool {
				_, err := c.c.Write([]byte("x"))
				return err != nil
			})
		}
	}
	const atOnce = 10
	many := func(n int) {
		var wg sync.WaitGroup
		slots := make(chan struct{}, atOnce)
		for i := range n {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				abandon(kinds[i%len(kinds)])
			})
		}
		wg.Wait()
		eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
	}
	many(60) // pools and workers are there now
	settled := func() (goroutines int, heap uint64) {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // pools are emptied in two rounds
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), m.HeapAlloc
	}
	goroutines, heap := settled()
	n := abandonments(t)
	many(n)
	// fasthttp keeps a worker for a while per connection there was at a time.
	g, h := 0, uint64(0)
	defer func() {
		t.Logf("%d requests: %d goroutines, %d before; %d KiB, %d before", n, g, goroutines, h>>10, heap>>10)
	}()
	eventually(t, "goroutines and memory are those of before", func() bool {
		g, h = settled()
		return g <= goroutines+2*atOnce && h <= heap+uint64(n)*2<<10+16<<20
	})
	for name, o := range s.terms.Load().origins {
		if o.guard.live != 0 || o.guard.flying != 0 || o.guard.waiting() != 0 {
			t.Errorf("%s: %d streams, %d recoveries, %d in line", name, o.guard.live, o.guard.flying, o.guard.waiting())
		}
	}
	if s.dog.live() != 0 || s.gate.live != 0 {
		t.Errorf("%d watched, %d let in", s.dog.live(), s.gate.live)
	}
}
