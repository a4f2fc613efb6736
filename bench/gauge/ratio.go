package gauge

import "slices"

// Against is the peer that ratios are taken to.
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

// ratios are a peer's figures over those of the scenario's reference in the same rounds, in
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
	a, b := r.Samples[peer], r.Samples[r.Scenario.against()]
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
