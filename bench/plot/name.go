package plot

import "slices"

// name is the name of a line, at the height of its end.
type name struct {
	text, colour string
	y            float64
}

// spread moves names down until any two are at least gap apart, and all of them up again as
// far as they then hang below the plot.
func spread(names []name, gap float64) []name {
	slices.SortStableFunc(names, func(a, b name) int {
		switch {
		case a.y < b.y:
			return -1
		case a.y > b.y:
			return 1
		}
		return 0
	})
	for i := 1; i < len(names); i++ {
		names[i].y = max(names[i].y, names[i-1].y+gap)
	}
	low := float64(top + tall)
	for i := len(names) - 1; i >= 0; i-- {
		names[i].y = min(names[i].y, low)
		low = names[i].y - gap
	}
	return names
}
