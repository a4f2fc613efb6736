package main

import "github.com/unbroken-llm/unbroken/bench/plot"

// plot draws the drill as SVG: what the provider was asked, what the proxy had in
// hand, and what the agents got.
func (r *result) plot() string {
	seconds := r.seconds()
	curve := func(name string, value func(second) int) plot.Line {
		l := plot.Line{Name: name}
		for _, s := range seconds {
			l.Points = append(l.Points, plot.Point{X: float64(s.At), Y: float64(value(s))})
		}
		return l
	}
	sum := func(value func(second) int) func(second) int {
		n := 0
		return func(s second) int { n += value(s); return n }
	}
	away := []plot.Span{{From: r.died.Sub(r.began).Seconds(), To: r.returned.Sub(r.began).Seconds(), Name: "away"}}
	return plot.Standalone(
		plot.Lines{Title: "requests a second, as the provider counts them", X: "s", Spans: away,
			Levels: []plot.Level{{Y: 1.5 * r.numbers().HealthyRate, Name: "1.5 × the healthy rate"}},
			Lines: []plot.Line{
				curve("all", func(s second) int { return s.Requests }),
				curve("recoveries", func(s second) int { return s.Again }),
			}}.SVG(),
		plot.Lines{Title: "streams", X: "s", Spans: away, Lines: []plot.Line{
			curve("live", func(s second) int { return s.Live }),
			curve("in line", func(s second) int { return s.Waiting }),
			curve("being recovered", func(s second) int { return s.Recovering }),
		}}.SVG(),
		plot.Lines{Title: "turns", X: "s", Spans: away, Lines: []plot.Line{
			curve("completed", sum(func(s second) int { return s.Completed })),
			curve("lost", sum(func(s second) int { return s.Failed })),
		}}.SVG(),
	)
}
