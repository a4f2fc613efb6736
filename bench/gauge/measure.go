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
	// Peak is how far an upload made it grow, for each byte of the upload.
	Peak float64 `json:"peak_per_byte,omitempty"`
	// Latency from the provider to the load, or of a call, µs.
	P50 int64 `json:"p50_us"`
	P99 int64 `json:"p99_us"`
	// Broken are calls that failed, which only others than Unbroken are forgiven.
	Broken int64 `json:"broken,omitempty"`
}

// line is the sample in a line of the log. Of who has no books there is no CPU.
func (s Sample) line(unit string) string {
	cpu := ""
	if s.CPU > 0 {
		cpu = fmt.Sprintf("%.2f µs/%s", s.PerUnit, unit)
	}
	return fmt.Sprintf("%*s  p50 %7d µs  p99 %7d µs  %8d %ss", len("12345678.90 µs/")-1+len(unit), cpu, s.P50, s.P99, s.Units, unit)
}

// Config of a run.
type Config struct {
	// Provider is where the simulated provider listens; "" is any port of loopback.
	Provider string
	// Binary is Unbroken's, for scenarios that choose their peers themselves.
	Binary    string
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
	Scenario Scenario `json:"scenario"`
	Peers    []string `json:"peers"`
	// Reference is the peer that ratios are taken to; empty: there are none.
	Reference string              `json:"reference,omitempty"`
	Samples   map[string][]Sample `json:"samples"`
	// Failed are peers that could not be measured, and why. They are out from that round on.
	Failed map[string]string `json:"failed,omitempty"`
}

// Run measures every peer in every scenario, one after the other, round by round. A peer that
// fails twice in a row is out of the scenario; that is an error only if it is Unbroken.
func Run(ctx context.Context, c Config) ([]Result, error) {
	provider, err := NewProvider(c.Provider)
	if err != nil {
		return nil, err
	}
	defer provider.Close()
	var out []Result
	var found []error
	for _, sc := range c.Scenarios {
		r, err := c.scenario(ctx, provider.Addr(), sc)
		r.Reference = r.base()
		if len(r.Samples)+len(r.Failed) > 0 {
			out = append(out, r)
		}
		if err != nil {
			found = append(found, fmt.Errorf("%s: %w", sc.Name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return out, errors.Join(found...)
}

// takers are the peers that take part in a scenario.
func (c Config) takers(sc Scenario) []Peer {
	if !sc.Stores {
		return c.Peers
	}
	if all := stores(c.Binary); c.Binary != "" && all[0].Missing() == nil {
		return all
	}
	return nil
}

func (c Config) scenario(ctx context.Context, provider string, sc Scenario) (Result, error) {
	r := Result{Scenario: sc, Samples: map[string][]Sample{}, Failed: map[string]string{}}
	peers := c.takers(sc)
	if len(peers) == 0 {
		fmt.Fprintf(c.Log, "%s is left out: nobody can take part\n", sc.Name)
	}
	if most := mostStreams(); sc.Clients > most {
		fmt.Fprintf(c.Log, "%s: %d streams in place of %d: no process may open more files (ulimit -Hn)\n", sc.Name, most, sc.Clients)
		sc.Clients = most
		r.Scenario = sc
	}
	for _, p := range peers {
		r.Peers = append(r.Peers, p.Name)
	}
	var found []error
	for round := range c.Rounds {
		for i := range peers {
			// Every other round goes the other way, so that no peer always follows
			// the same one.
			p := peers[i]
			if round%2 == 1 {
				p = peers[len(peers)-1-i]
			}
			if r.Failed[p.Name] != "" {
				continue
			}
			done := progress(c.Log, "%s %d/%d %-16s", sc.Name, round+1, c.Rounds, p.Name)
			s, err := c.measure(ctx, provider, p, sc)
			if err != nil && ctx.Err() == nil {
				s, err = c.measure(ctx, provider, p, sc)
			}
			if ctx.Err() != nil {
				done("interrupted")
				return r, ctx.Err()
			}
			if err != nil {
				done("is out: " + err.Error())
				r.Failed[p.Name] = err.Error()
				if p.With != nil {
					found = append(found, fmt.Errorf("%s: %w", p.Name, err))
				}
				continue
			}
			r.Samples[p.Name] = append(r.Samples[p.Name], s)
			done(s.line(sc.unit()))
		}
	}
	return r, errors.Join(found...)
}

func (c Config) measure(ctx context.Context, provider string, p Peer, sc Scenario) (s Sample, err error) {
	if err := ctx.Err(); err != nil {
		return s, err
	}
	dir, err := os.MkdirTemp("", "unbroken-bench-")
	if err != nil {
		return s, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r, err := p.begin(dir, provider)
	if err != nil {
		return s, err
	}
	defer r.stop()
	if sc.Upload {
		return upload(ctx, r, sc)
	}
	before, err := r.proc.memory()
	if err != nil {
		return s, err
	}
	l := Start(r.addr, sc)
	defer l.Stop()
	if err := flows(ctx, l, sc.Clients, p.With != nil); err != nil {
		return s, err
	}
	if r.loaded != nil {
		r.loaded()
	}
	if err := pause(ctx, c.Settle); err != nil {
		return s, err
	}
	l.measure.Store(true)
	s, err = spent(r.proc, func() (int64, error) {
		n := l.units()
		err := pause(ctx, c.Window)
		// On a machine that is busy elsewhere a short window may pass without anything.
		for limit := time.Now().Add(flowLimit); err == nil && l.units() == n && time.Now().Before(limit); {
			err = pause(ctx, 10*time.Millisecond)
		}
		return l.units() - n, err
	})
	l.measure.Store(false)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return s, err
	}
	if err := l.tooMany(sc.Clients, p.With != nil); err != nil {
		return s, err
	}
	s.Broken = l.broken.Load()
	if s.Units == 0 {
		return s, errors.New("nothing came")
	}
	if sc.Memory && r.proc != nil {
		after, err := r.proc.memory()
		if err != nil {
			return s, err
		}
		s.Memory = float64(after-before) / float64(sc.Clients)
	}
	h := l.Latency()
	s.P50, s.P99 = h.ValueAtPercentile(50), h.ValueAtPercentile(99)
	return s, nil
}

// spent is what a process spends on work, which returns its units.
func spent(p *process, work func() (int64, error)) (s Sample, err error) {
	before, err := p.cpu()
	if err != nil {
		return s, err
	}
	began := time.Now()
	if s.Units, err = work(); err != nil {
		return s, err
	}
	s.Took = time.Since(began)
	after, err := p.cpu()
	s.CPU = after - before
	s.PerUnit = float64(s.CPU.Nanoseconds()) / 1e3 / float64(max(1, s.Units))
	return s, err
}

// flowLimit is how long a load may bring nothing at all.
const flowLimit = 60 * time.Second

// flows waits until every one of n clients has got something.
func flows(ctx context.Context, l *Load, n int, strict bool) error {
	deadline := time.Now().Add(flowLimit)
	for l.flowing.Load() < int64(n) {
		if err := l.tooMany(n, strict); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("%d of %d clients have got anything", l.flowing.Load(), n), l.Err())
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
