package gauge

import (
	"math"
	"testing"
)

func TestOnlyWhatGrowsAllTheTimeGrows(t *testing.T) {
	const n = 360 // half an hour, a look each five seconds
	hours := make([]float64, n)
	for i := range hours {
		hours[i] = float64(i) * 5 / 3600
	}
	noise := func(i int) float64 { return 4 * math.Sin(float64(i*i)) }
	for _, c := range []struct {
		name  string
		at    func(i int) float64
		grows bool
	}{
		{"nothing", func(int) float64 { return 100 }, false},
		{"noise", func(i int) float64 { return 100 + noise(i) }, false},
		{"a saw, as of a collector", func(i int) float64 { return 100 + float64(i%17) }, false},
		{"a step early on, which the line takes for a slope", func(i int) float64 { return 100 + 40*min(1, float64(i/50)) }, false},
		{"a last third that is high by chance, behind a first part that was higher", func(i int) float64 {
			switch {
			case i < n/6-1:
				return 150
			case i > 5*n/6-9: // most of it
				return 125
			}
			return 100
		}, false},
		{"it shrinks", func(i int) float64 { return 100 - float64(i)/10 }, false},
		{"within the bound", func(i int) float64 { return 100 + 9*float64(i)/n }, false},
		{"a leak", func(i int) float64 { return 100 + 30*float64(i)/n + noise(i) }, true},
		{"a leak from the middle on", func(i int) float64 { return 100 + max(0, float64(i-n/2)/4) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := make([]float64, n)
			for i := range v {
				v[i] = c.at(i)
			}
			if got := trend("x", hours, v, 0.10, 8); got.Grows() != c.grows {
				t.Error(got)
			}
		})
	}
}

func TestATrendOfTooLittleIsNone(t *testing.T) {
	if got := trend("x", []float64{1, 2}, []float64{1, 1000}, 0.1, 1); got.Grows() {
		t.Error(got)
	}
	if got := slope([]float64{1, 1, 1}, []float64{1, 2, 3}); got != 0 {
		t.Errorf("the slope over one moment is %v", got)
	}
}
