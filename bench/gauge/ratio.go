package gauge

import "slices"

// Against is the peer that ratios are taken to, and baselines hold, where it takes part.
const Against = "nginx"

// figure is one number of a sample.
type figure struct {
	name  string // in baselines
	head  string // in tables
	form  string
	scale float64 // what the table divides it by
	of    func(Sample) float64
	plain bool // it is a ratio itself, and the same on every machine: no peer is its reference
}

// Figures of samples, and how tables show them.
var (
	cpuFigure     = figure{"cpu", "CPU µs", "%.2f", 1, func(s Sample) float64 { return s.PerUnit }, false}
	p50Figure     = figure{"p50", "p50 µs", "%.0f", 1, func(s Sample) float64 { return float64(s.P50) }, false}
	p99Figure     = figure{"p99", "p99 µs", "%.0f", 1, func(s Sample) float64 { return float64(s.P99) }, false}
	memoryFigure  = figure{"memory", "KB/stream", "%.1f", 1 << 10, func(s Sample) float64 { return s.Memory }, false}
	uploadFigure  = figure{"cpu", "CPU ms", "%.1f", 1e3, func(s Sample) float64 { return s.PerUnit }, false}
	elapsedFigure = figure{"took", "took ms", "%.0f", 1e3, func(s Sample) float64 { return float64(s.P50) }, false}
	peakFigure    = figure{"peak", "peak bytes/byte", "%.2f", 1, func(s Sample) float64 { return s.Peak }, true}
)

// figures are those that a scenario's table shows.
func (s Scenario) figures() []figure {
	if s.Upload {
		return []figure{uploadFigure, elapsedFigure, peakFigure}
	}
	all := []figure{cpuFigure, p50Figure, p99Figure}
	if s.Memory {
		all = append(all, memoryFigure)
	}
	return all
}

// watched are those of them that a baseline holds. The tail of latencies is not among them,
// since it differs by more than the tolerance between two runs of one program, and where
// streams go as fast as they can neither is the median: it is that of the queues.
func (s Scenario) watched() []figure {
	switch {
	case s.Upload:
		return []figure{uploadFigure, peakFigure}
	case s.Memory:
		return []figure{cpuFigure, memoryFigure}
	case s.paced():
		return []figure{cpuFigure, p50Figure}
	}
	return []figure{cpuFigure}
}

// base is the reference of what was measured: the scenario's, or where that took no part, the
// first proxy that did. There is none if nobody is there to be compared with it; direct, which
// has no CPU, is no proxy.
func (r Result) base() string {
	var all []string
	for _, p := range r.Peers {
		if p != directName && len(r.Samples[p]) > 0 {
			all = append(all, p)
		}
	}
	against := r.Scenario.against()
	switch {
	case slices.Contains(all, against) && (len(all) > 1 || len(r.Samples[directName]) > 0):
		return against
	case len(all) > 1:
		return all[0]
	}
	return ""
}

// ratios are a peer's figures over those of the reference in the same rounds, in
// the order of the rounds; those of a plain figure are that figure.
func (r Result) ratios(peer string, f figure) (all []float64) {
	if f.plain {
		for _, s := range r.Samples[peer] {
			if v := f.of(s); v > 0 {
				all = append(all, v)
			}
		}
		return all
	}
	a, b := r.Samples[peer], r.Samples[r.Reference]
	for i := range min(len(a), len(b)) {
		if n, d := f.of(a[i]), f.of(b[i]); n > 0 && d > 0 {
			all = append(all, n/d)
		}
	}
	return all
}

// ratio is their median; false: there are none.
func (r Result) ratio(peer string, f figure) (float64, bool) {
	all := r.ratios(peer, f)
	return quantile(all, 0.5), len(all) > 0
}

// compared are the ratios of which baselines are: those to another reference would be of
// something else.
func (r Result) compared(peer string, f figure) []float64 {
	if !f.plain && r.Reference != r.Scenario.against() {
		return nil
	}
	return r.ratios(peer, f)
}

// median of a peer's figures.
func (r Result) median(peer string, f figure) float64 {
	var all []float64
	for _, s := range r.Samples[peer] {
		all = append(all, f.of(s))
	}
	return quantile(all, 0.5)
}

// rounds are the most that any peer has.
func (r Result) rounds() (n int) {
	for _, s := range r.Samples {
		n = max(n, len(s))
	}
	return n
}

// quantile interpolates between the two values that are nearest; 0 of none.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	at := q * float64(len(v)-1)
	low := int(at)
	if low == len(v)-1 {
		return v[low]
	}
	return v[low] + (at-float64(low))*(v[low+1]-v[low])
}
