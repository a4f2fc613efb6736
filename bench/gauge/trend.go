package gauge

import "fmt"

// Trend tells whether a quantity grows under a load that does not. Two things must say so, each
// of which alone is easily wrong: the median of the last third is above that of the first by
// more than the bound (a step early on, a heap that finds its size, would not do), and so is
// what the regression line gains over the time measured (a last third that is high by chance
// would not do). A leak does both: with a slope it raises the last third over the first by two
// thirds of what the line gains.
type Trend struct {
	Name  string  `json:"name"`
	First float64 `json:"first_third"` // median
	Last  float64 `json:"last_third"`
	Slope float64 `json:"slope_per_hour"` // of the least squares
	Gain  float64 `json:"gain"`           // of the line, from the first sample to the last
	Bound float64 `json:"bound"`
}

// Grows reports whether it does.
func (t Trend) Grows() bool { return t.Last-t.First > t.Bound && t.Gain > t.Bound }

// String says what was seen.
func (t Trend) String() string {
	verdict := "does not grow"
	if t.Grows() {
		verdict = "GROWS"
	}
	return fmt.Sprintf("%s %s: first third %.1f, last third %.1f, line %+.1f over the time (%+.1f an hour), bound %.1f",
		t.Name, verdict, t.First, t.Last, t.Gain, t.Slope, t.Bound)
}

// trend of values at hours. The bound is a part of the first third, at least so much.
func trend(name string, hours, v []float64, part, least float64) Trend {
	t := Trend{Name: name}
	n := len(v) / 3
	if n == 0 {
		return t
	}
	t.First, t.Last = quantile(v[:n], 0.5), quantile(v[len(v)-n:], 0.5)
	t.Bound = max(part*t.First, least)
	t.Slope = slope(hours, v)
	t.Gain = t.Slope * (hours[len(hours)-1] - hours[0])
	return t
}

// slope of the line of least squares; 0 if all x are one.
func slope(x, y []float64) float64 {
	var mx, my float64
	for i := range x {
		mx += x[i] / float64(len(x))
		my += y[i] / float64(len(y))
	}
	var xy, xx float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
	}
	if xx == 0 {
		return 0
	}
	return xy / xx
}
