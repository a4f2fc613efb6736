package gauge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
)

const (
	// tolerance is how much worse than the baseline a ratio may be: as much as two runs of
	// the same program differ.
	tolerance = 1.15
	// leastRounds is how many pairs a ratio must be the median of to be compared.
	leastRounds = 5
	// agree is the part of the rounds that must each be worse than the baseline: one round
	// that somebody else disturbed is no regression.
	agree = 0.75
)

// Baseline holds ratios, by scenario, figure and peer. Of absolute numbers there are none:
// they are the machine's.
type Baseline map[string]map[string]map[string]float64

// Ratios are the ratios of a run, of what enough rounds have measured.
func Ratios(results []Result) Baseline {
	b := Baseline{}
	for _, r := range results {
		figures := map[string]map[string]float64{}
		for _, f := range r.Scenario.watched() {
			of := map[string]float64{}
			for _, p := range r.Peers {
				if all := r.compared(p, f); len(all) >= leastRounds && p != r.Scenario.against() && p != directName {
					of[p] = quantile(all, 0.5)
				}
			}
			if len(of) > 0 {
				figures[f.name] = of
			}
		}
		if len(figures) > 0 {
			b[r.Scenario.Name] = figures
		}
	}
	return b
}

// ReadBaseline reads a file; one that is not there is an empty baseline.
func ReadBaseline(file string) (b Baseline, err error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Baseline{}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return b, nil
}

// With is the baseline with the scenarios of another in place of its own of the same names.
func (b Baseline) With(now Baseline) Baseline {
	all := maps.Clone(b)
	maps.Copy(all, now)
	return all
}

// Check compares results with the baseline. The error names every ratio that is worse by more
// than the tolerance in most rounds. What was measured and cannot be compared is told to log;
// if that is everything, it is an error: a check that checks nothing must not pass.
func (b Baseline) Check(results []Result, log io.Writer) error {
	var found []error
	compared := 0
	for _, r := range results {
		was := b[r.Scenario.Name]
		for _, f := range r.Scenario.watched() {
			for _, peer := range slices.Sorted(maps.Keys(was[f.name])) {
				all := r.compared(peer, f)
				if len(all) < leastRounds {
					fmt.Fprintf(log, "%s: the %s of %s is not compared: %d rounds with %s, and %d are needed\n",
						r.Scenario.Name, f.name, peer, len(all), r.Scenario.against(), leastRounds)
					continue
				}
				compared++
				if err := worse(all, was[f.name][peer]); err != nil {
					found = append(found, fmt.Errorf("%s: the %s of %s is %w", r.Scenario.Name, f.name, peer, err))
				}
			}
		}
	}
	if compared == 0 {
		return errors.New("nothing was compared: the baseline and this run have no ratio in common")
	}
	fmt.Fprintf(log, "%d ratios compared with the baseline, %d are worse\n", compared, len(found))
	return errors.Join(found...)
}

// worse compares the ratios of rounds with what they were.
func worse(all []float64, was float64) error {
	is := quantile(all, 0.5)
	if is <= was*tolerance || quantile(all, 1-agree) <= was {
		return nil
	}
	return fmt.Errorf("%.2f × its reference, and was %.2f ×: %.0f %% worse", is, was, 100*(is/was-1))
}
