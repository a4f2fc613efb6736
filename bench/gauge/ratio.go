package gauge

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Against is the peer that ratios are taken to.
const Against = "nginx"

// Ratio is the median of a peer's figures over those of another in the same rounds.
func (r Result) Ratio(peer, against string, figure func(Sample) float64) (float64, bool) {
	a, b := r.Samples[peer], r.Samples[against]
	var all []float64
	for i := range min(len(a), len(b)) {
		if d := figure(b[i]); d > 0 {
			all = append(all, figure(a[i])/d)
		}
	}
	return median(all), len(all) > 0
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// Median of a peer's figures.
func (r Result) Median(peer string, figure func(Sample) float64) float64 {
	var all []float64
	for _, s := range r.Samples[peer] {
		all = append(all, figure(s))
	}
	return median(all)
}

// Figures of a sample.
var (
	PerUnit = func(s Sample) float64 { return s.PerUnit }
	Memory  = func(s Sample) float64 { return s.Memory }
	P50     = func(s Sample) float64 { return float64(s.P50) }
	P99     = func(s Sample) float64 { return float64(s.P99) }
)

// Table prints results, with ratios to Against where it took part.
func Table(w io.Writer, peers []Peer, results []Result) {
	for _, r := range results {
		unit := "event"
		if !r.Scenario.Stream {
			unit = "call"
		}
		fmt.Fprintf(w, "\n%s: %s (medians of %d)\n", r.Scenario.Name, r.Scenario.Title, rounds(r))
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(t, "peer\tCPU µs/%s\t× %s\tp50 µs\t×\tp99 µs\t×\tKB/stream\t×\t%ss/s\t\n", unit, Against, unit)
		for _, p := range peers {
			if len(r.Samples[p.Name]) == 0 {
				continue
			}
			cells := []string{p.Name}
			for _, f := range []struct {
				form   string
				scale  float64
				figure func(Sample) float64
			}{{"%.2f", 1, PerUnit}, {"%.0f", 1, P50}, {"%.0f", 1, P99}, {"%.1f", 1 << 10, Memory}} {
				v := r.Median(p.Name, f.figure)
				if v == 0 {
					cells = append(cells, "", "")
					continue
				}
				cells = append(cells, fmt.Sprintf(f.form, v/f.scale))
				if x, ok := r.Ratio(p.Name, Against, f.figure); ok {
					cells = append(cells, fmt.Sprintf("%.2f", x))
				} else {
					cells = append(cells, "")
				}
			}
			cells = append(cells, fmt.Sprintf("%.0f", r.Median(p.Name, func(s Sample) float64 { return float64(s.Units) / s.Took.Seconds() })))
			fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
		}
		_ = t.Flush()
	}
}

func rounds(r Result) (n int) {
	for _, s := range r.Samples {
		n = max(n, len(s))
	}
	return n
}
