package proxy

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// The end of a turn that is remembered, told to the ledger and checkpointed waits for
// three stores that answer nothing, and waits once: each of them had an AckWait of its
// own, so that a frozen Redis cost a stream three.
func TestThreeStoresThatHangCostOneWait(t *testing.T) {
	c := dialogues[0]
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(c.broken...)
		a.rst() // R2 ends the turn, and remembers the call that it takes out
	})
	st, with := stored()
	defer st.Wake()
	s := start(t, p, with, func(cfg *Config) { cfg.Ledger, cfg.AckWait = absent{}, time.Hour })
	hangs := &hanging{reached: make(chan string, 16)}
	s.recall.store = hangs
	clock := &countedClock{}
	s.ackClock = clock.begin
	go func() {
		// Only when the first of the three is waited for does time begin to run out, and
		// then at once: what comes behind it has none left.
		<-hangs.reached
		st.Sleep()
		clock.expire()
	}()
	answer, err := allOf(dial(t, s.addr).post(c.path, c.withTools(c.first), ann, "Connection: close").response())
	if err != nil || !strings.Contains(answer, "look") || !strings.Contains(answer, "[DONE]") {
		t.Fatalf("%s, %v", answer, err)
	}
	if n := clock.count(); n != 2 {
		t.Errorf("%d clocks ran for the call, which its checkpoint waits for, and for the end", n)
	}
	if n := s.Stats().Unacked; n != 3 {
		t.Errorf("%d of three effects were given up", n)
	}
}

// hanging are memos that nobody takes until the caller's time is over.
type hanging struct{ reached chan string }

func (h *hanging) Remember(ctx context.Context, _ time.Duration, _ ...checkpoint.Memo) error {
	h.reached <- "remember"
	<-ctx.Done()
	return checkpoint.ErrUnavailable
}

func (h *hanging) Recall(context.Context, ...checkpoint.MemoKey) ([][]byte, error) {
	return nil, checkpoint.ErrUnavailable
}

// countedClock is time that runs out when the test says so.
type countedClock struct {
	mu sync.Mutex
	// begun are the clocks that were asked for.
	begun []context.CancelFunc
	over  bool
}

func (c *countedClock) begin(time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = append(c.begun, cancel)
	if c.over {
		cancel()
	}
	return ctx, cancel
}

func (c *countedClock) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for _, cancel := range c.begun {
		cancel()
	}
}

func (c *countedClock) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.begun)
}
