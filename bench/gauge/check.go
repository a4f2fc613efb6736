package gauge

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
)

// tolerance is how much worse than the baseline a ratio may be: as much as two runs of the
// same program differ.
const tolerance = 1.15

// Baseline holds ratios to [Against], by scenario, figure and peer. Of absolute numbers there
// are none: they are the machine's.
type Baseline map[string]map[string]map[string]float64

// Ratios are the ratios of a run.
func Ratios(peers []Peer, results []Result) Baseline {
	b := Baseline{}
	for _, r := range results {
		figures := map[string]map[string]float64{}
		for name, figure := range map[string]func(Sample) float64{"cpu": PerUnit, "memory": Memory} {
			of := map[string]float64{}
			for _, p := range peers {
				if x, ok := r.Ratio(p.Name, Against, figure); ok && x > 0 && p.Name != Against {
					of[p.Name] = x
				}
			}
			if len(of) > 0 {
				figures[name] = of
			}
		}
		b[r.Scenario.Name] = figures
	}
	return b
}

// Check compares ratios with those of a file. The error names every one that is worse by more
// than the tolerance; what either side has not measured is not compared.
func Check(file string, now Baseline) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var was Baseline
	if err := json.Unmarshal(raw, &was); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return was.worse(now)
}

func (b Baseline) worse(now Baseline) error {
	var found []error
	for _, scenario := range slices.Sorted(maps.Keys(b)) {
		for _, figure := range slices.Sorted(maps.Keys(b[scenario])) {
			for _, peer := range slices.Sorted(maps.Keys(b[scenario][figure])) {
				was, is := b[scenario][figure][peer], now[scenario][figure][peer]
				if is > was*tolerance {
					found = append(found, fmt.Errorf("%s: the %s of %s is %.2f × %s, and was %.2f ×", scenario, figure, peer, is, Against, was))
				}
			}
		}
	}
	return errors.Join(found...)
}
