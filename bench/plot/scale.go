package plot

import (
	"math"
	"strconv"
)

// scale maps values to pixels.
type scale struct {
	from, to float64 // values
	low, all float64 // the pixel of from, and how many there are up to that of to
	log      bool
}

func (s scale) at(v float64) float64 {
	if s.log {
		return s.low + s.all*(math.Log(v)-math.Log(s.from))/(math.Log(s.to)-math.Log(s.from))
	}
	return s.low + s.all*(v-s.from)/(s.to-s.from)
}

// ticks are round values: the powers of ten on a logarithmic scale, three to six others.
func (s scale) ticks() (at []float64) {
	if s.log {
		for v := math.Pow(10, math.Ceil(math.Log10(s.from)-1e-9)); v <= s.to*(1+1e-9); v *= 10 {
			at = append(at, v)
		}
		return at
	}
	step := Step((s.to - s.from) / 6)
	for n := math.Ceil(s.from / step); n*step <= s.to*(1+1e-9); n++ {
		at = append(at, n*step)
	}
	return at
}

// Step is the least of 1, 2 and 5 times a power of ten that is not below v; 1 if v is no
// positive number.
func Step(v float64) float64 {
	if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= v*(1-1e-9) {
			return f * power
		}
	}
	return 10 * power
}

// number spells a value shortly: 1500000 is 1.5M.
func number(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= unit.size {
			return strconv.FormatFloat(v/unit.size, 'g', 4, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
