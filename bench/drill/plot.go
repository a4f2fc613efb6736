package main

import (
	"fmt"
	"strings"
)

// The plot's measures, in pixels.
const (
	plotWidth   = 900
	plotLeft    = 60
	plotRight   = 20
	panelHeight = 150
	panelGap    = 55
	plotTop     = 40
)

// curve is one line of a panel.
type curve struct {
	name, colour string
	value        func(second) float64
}

// plot draws the drill as SVG: what the provider was asked, what the proxy had in
// hand, and what the agents got.
func (r *result) plot() string {
	n := r.numbers()
	seconds := r.seconds()
	done, failed := 0, 0
	completed, lost := make([]float64, len(seconds)), make([]float64, len(seconds))
	for i, s := range seconds {
		done, failed = done+s.Completed, failed+s.Failed
		completed[i], lost[i] = float64(done), float64(failed)
	}
	p := &drawing{last: len(seconds) - 1, died: r.died.Sub(r.began).Seconds(), back: r.returned.Sub(r.began).Seconds()}
	p.panel("requests a second, as the provider counts them", seconds, 1.5*n.HealthyRate, "1.5 × the healthy rate", []curve{
		{"all", "#1f5fa8", func(s second) float64 { return float64(s.Requests) }},
		{"recoveries", "#d9822b", func(s second) float64 { return float64(s.Again) }},
	})
	p.panel("streams", seconds, 0, "", []curve{
		{"live", "#1f5fa8", func(s second) float64 { return float64(s.Live) }},
		{"in line", "#8c6bb1", func(s second) float64 { return float64(s.Waiting) }},
		{"being recovered", "#d9822b", func(s second) float64 { return float64(s.Recovering) }},
	})
	p.panel("turns", seconds, 0, "", []curve{
		{"completed", "#2c8a4b", func(s second) float64 { return completed[s.At] }},
		{"lost", "#c0392b", func(s second) float64 { return lost[s.At] }},
	})
	height := plotTop + p.panels*(panelHeight+panelGap)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="#fff"/>
%s</svg>
`, plotWidth, height, p.b.String())
}

// drawing is an SVG under way.
type drawing struct {
	b          strings.Builder
	panels     int
	last       int // second
	died, back float64
}

func (p *drawing) x(at float64) float64 {
	return plotLeft + at/float64(max(1, p.last))*(plotWidth-plotLeft-plotRight)
}

// panel draws curves over the seconds. limit is a line across, 0 for none.
func (p *drawing) panel(title string, seconds []second, limit float64, limitName string, curves []curve) {
	top := float64(plotTop + p.panels*(panelHeight+panelGap))
	p.panels++
	most := limit
	for _, c := range curves {
		for _, s := range seconds {
			most = max(most, c.value(s))
		}
	}
	most = max(1, most*1.1)
	y := func(v float64) float64 { return top + panelHeight*(1-v/most) }
	fmt.Fprintf(&p.b, `<text x="%d" y="%.0f" font-weight="bold">%s</text>`+"\n", plotLeft, top-22, title)
	fmt.Fprintf(&p.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="#f6dcd9"/>`+"\n", p.x(p.died), top, p.x(p.back)-p.x(p.died), panelHeight)
	fmt.Fprintf(&p.b, `<text x="%.1f" y="%.1f" fill="#a33" text-anchor="middle">away</text>`+"\n", p.x((p.died+p.back)/2), top+14)
	for _, v := range ticks(most) {
		fmt.Fprintf(&p.b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end" fill="#555">%g</text>`+"\n",
			plotLeft, y(v), plotWidth-plotRight, plotLeft-6, y(v)+4, v)
	}
	for at := 0; at <= p.last; at += 30 {
		fmt.Fprintf(&p.b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="#555">%d s</text>`+"\n", p.x(float64(at)), top+panelHeight+16, at)
	}
	if limit > 0 {
		fmt.Fprintf(&p.b, `<path d="M%d %.1fH%d" stroke="#c0392b" stroke-dasharray="6 4"/><text x="%d" y="%.1f" text-anchor="end" fill="#c0392b">%s</text>`+"\n",
			plotLeft, y(limit), plotWidth-plotRight, plotWidth-plotRight, y(limit)-4, limitName)
	}
	for i, c := range curves {
		fmt.Fprintf(&p.b, `<polyline fill="none" stroke="%s" stroke-width="1.6" points="`, c.colour)
		for _, s := range seconds {
			fmt.Fprintf(&p.b, "%.1f,%.1f ", p.x(float64(s.At)), y(c.value(s)))
		}
		fmt.Fprintf(&p.b, `"/><text x="%d" y="%.0f" fill="%s">%s</text>`+"\n", plotLeft+330+i*110, top-22, c.colour, c.name)
	}
}

// ticks are three to six round values up to most.
func ticks(most float64) (at []float64) {
	step := 1.0
	for _, factor := range []float64{2, 2.5, 2, 2, 2.5, 2, 2, 2.5, 2, 2, 2.5, 2} { // 2 5 10 20 50 …
		if most/step <= 6 {
			break
		}
		step *= factor
	}
	for v := 0.0; v <= most; v += step {
		at = append(at, v)
	}
	return at
}
