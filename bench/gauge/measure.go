package gauge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Sample is one measurement of one peer.
type Sample struct {
	// Units are what CPU is divided by: events of streams, or calls.
	Units   int64         `json:"units"`
	Took    time.Duration `json:"took_ns"`
	CPU     time.Duration `json:"cpu_ns"`          // of the proxy; 0: unknown
	PerUnit float64       `json:"cpu_us_per_unit"` // µs
	// Memory of the proxy per open stream, beyond what it had before, bytes.
	Memory float64 `json:"memory_per_stream,omitempty"`
	// Latency from the provider to the load, µs.
	P50 int64 `json:"p50_us"`
	P99 int64 `json:"p99_us"`
}

// Config of a run.
type Config struct {
	// Provider is where the simulated provider listens; "" is any port of loopback.
	Provider  string
	Peers     []Peer
	Scenarios []Scenario
	Rounds    int
	// Settle is how long a load flows before it is measured, Window how long it is.
	Settle, Window time.Duration
	// Log hears of progress.
	Log io.Writer
}

// Result of a scenario: the samples of each peer, in the order of the rounds.
type Result struct {
	Scenario Scenario            `json:"scenario"`
	Samples  map[string][]Sample `json:"samples"`
}

// Run measures every peer in every scenario, one after the other, round by round.
func Run(ctx context.Context, c Config) ([]Result, error) {
	provider, err := NewProvider(c.Provider)
	if err != nil {
		return nil, err
	}
	defer provider.Close()
	var out []Result
	for _, sc := range c.Scenarios {
		r := Result{Scenario: sc, Samples: map[string][]Sample{}}
		for round := range c.Rounds {
			for i := range c.Peers {
				// Every other round goes the other way, so that no peer always
				// follows the same one.
				p := c.Peers[i]
				if round%2 == 1 {
					p = c.Peers[len(c.Peers)-1-i]
				}
				if err := ctx.Err(); err != nil {
					return out, err
				}
				s, err := measure(ctx, c, provider, p, sc)
				if err != nil {
					return out, fmt.Errorf("%s, %s: %w", sc.Name, p.Name, err)
				}
				r.Samples[p.Name] = append(r.Samples[p.Name], s)
				fmt.Fprintf(c.Log, "%s %d/%d %-16s %8.2f µs/unit  p50 %6d µs  p99 %6d µs  %8d units\n",
					sc.Name, round+1, c.Rounds, p.Name, s.PerUnit, s.P50, s.P99, s.Units)
			}
		}
		out = append(out, r)
	}
	return out, nil
}

func measure(ctx context.Context, c Config, provider *Provider, p Peer, sc Scenario) (s Sample, err error) {
	dir, err := os.MkdirTemp("", "unbroken-bench-")
	if err != nil {
		return s, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	addr, proc, err := p.Start(dir, provider.Addr())
	if err != nil {
		return s, err
	}
	defer proc.stop()
	if err := until(addr, proc); err != nil {
		return s, err
	}
	var before int64
	if proc != nil {
		if before, err = proc.memory(); err != nil {
			return s, err
		}
	}
	l := Start(addr, sc.Shape, sc.Stream, sc.Clients, sc.Prompt)
	defer l.Stop()
	if err := flows(ctx, l, sc); err != nil {
		return s, err
	}
	if err := pause(ctx, c.Settle); err != nil {
		return s, err
	}
	count := func() int64 {
		if sc.Stream {
			return l.events.Load()
		}
		return l.calls.Load()
	}
	var cpu0, cpu1 time.Duration
	if proc != nil {
		if cpu0, err = proc.cpu(); err != nil {
			return s, err
		}
	}
	l.measure.Store(true)
	n0, t0 := count(), time.Now()
	if err := pause(ctx, c.Window); err != nil {
		return s, err
	}
	n1, t1 := count(), time.Now()
	l.measure.Store(false)
	if proc != nil {
		if cpu1, err = proc.cpu(); err != nil {
			return s, err
		}
	}
	s = Sample{Units: n1 - n0, Took: t1.Sub(t0), CPU: cpu1 - cpu0}
	if err := l.Err(); err != nil {
		return s, fmt.Errorf("%d clients failed, the first: %w", l.broken.Load(), err)
	}
	if s.Units == 0 {
		return s, errors.New("nothing came")
	}
	s.PerUnit = float64(s.CPU.Nanoseconds()) / 1e3 / float64(s.Units)
	if sc.Memory && proc != nil {
		after, err := proc.memory()
		if err != nil {
			return s, err
		}
		s.Memory = float64(after-before) / float64(sc.Clients)
	}
	h := l.Latency()
	s.P50, s.P99 = h.ValueAtPercentile(50), h.ValueAtPercentile(99)
	return s, nil
}

// flows waits until every client has got something.
func flows(ctx context.Context, l *Load, sc Scenario) error {
	deadline := time.Now().Add(60 * time.Second)
	for l.flowing.Load() < int64(sc.Clients) {
		if err := l.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d clients have got anything", l.flowing.Load(), sc.Clients)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
