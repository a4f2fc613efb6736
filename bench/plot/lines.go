package plot

import (
	"fmt"
	"html"
	"strings"
)

// The measures of a drawing, in pixels.
const (
	Width  = 760
	left   = 64
	right  = 150 // for the names of the lines
	top    = 34
	bottom = 44
	tall   = 170 // of the plot itself
)

// Colours of lines and bars, in order; all of them are read on white and on black.
var Colours = []string{"#8a8a8a", "#4a90d9", "#3fa45b", "#e08a2e", "#9b7fc7", "#d9534f", "#2fa8a0", "#c27ba0"}

// Point of a line.
type Point struct{ X, Y float64 }

// Line is a name and its points, by X.
type Line struct {
	Name   string
	Points []Point
}

// Span is a stretch of X that is marked, and why.
type Span struct {
	From, To float64
	Name     string
}

// Level is a value of Y that is marked, and why.
type Level struct {
	Y    float64
	Name string
}

// Lines is a plot of lines over one axis. Y begins at zero.
type Lines struct {
	Title, X, Y string // X and Y name the axes
	LogX        bool   // every X is positive
	Lines       []Line
	Spans       []Span
	Levels      []Level
}

// SVG draws it; "" if there are no two values of X.
func (p Lines) SVG() string {
	x := scale{low: left, all: Width - left - right, log: p.LogX}
	y := scale{low: top + tall, all: -tall}
	first := true
	for _, l := range p.Lines {
		for _, at := range l.Points {
			if first {
				x.from, x.to, first = at.X, at.X, false
			}
			x.from, x.to, y.to = min(x.from, at.X), max(x.to, at.X), max(y.to, at.Y)
		}
	}
	if x.from == x.to {
		return ""
	}
	for _, l := range p.Levels {
		y.to = max(y.to, l.Y)
	}
	if y.to *= 1.08; y.to == 0 {
		y.to = 1
	}
	var b strings.Builder
	height := top + tall + bottom
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" fill="currentColor">`+"\n", Width, height, Width, height)
	fmt.Fprintf(&b, `<text x="%d" y="14" font-weight="bold">%s</text>`+"\n", left, html.EscapeString(p.Title))
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><text x="%d" y="%d" text-anchor="end">%s</text>`+"\n",
		left-6, top-8, html.EscapeString(p.Y), Width-right, top+tall+34, html.EscapeString(p.X))
	p.mark(&b, x, y)
	for _, v := range y.ticks() {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="currentColor" stroke-opacity=".2"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, y.at(v), Width-right, left-6, y.at(v)+4, number(v))
	}
	for _, v := range x.ticks() {
		fmt.Fprintf(&b, `<path d="M%.1f %dv5" stroke="currentColor"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			x.at(v), top+tall, x.at(v), top+tall+18, number(v))
	}
	p.draw(&b, x, y)
	b.WriteString("</svg>\n")
	return b.String()
}

// mark draws what is marked, which the lines go over.
func (p Lines) mark(b *strings.Builder, x, y scale) {
	for _, s := range p.Spans {
		from, to := x.at(s.From), x.at(s.To)
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#d9534f" fill-opacity=".18"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			from, top, to-from, tall, (from+to)/2, top+14, html.EscapeString(s.Name))
	}
	for _, l := range p.Levels {
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="currentColor" stroke-dasharray="6 4"/><text x="%d" y="%.1f">%s</text>`+"\n",
			left, y.at(l.Y), Width-right, left+6, y.at(l.Y)-4, html.EscapeString(l.Name))
	}
}

// draw draws the lines, and their names beside their ends, none over another.
func (p Lines) draw(b *strings.Builder, x, y scale) {
	var names []name
	for i, l := range p.Lines {
		if len(l.Points) == 0 {
			continue
		}
		colour := Colours[i%len(Colours)]
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.8" points="`, colour)
		for _, at := range l.Points {
			fmt.Fprintf(b, "%.1f,%.1f ", x.at(at.X), y.at(at.Y))
		}
		b.WriteString(`"/>` + "\n")
		names = append(names, name{l.Name, colour, y.at(l.Points[len(l.Points)-1].Y) + 4})
	}
	for _, n := range spread(names, 14) {
		fmt.Fprintf(b, `<text x="%d" y="%.1f" fill="%s">%s</text>`+"\n", Width-right+8, n.y, n.colour, html.EscapeString(n.text))
	}
}

// Standalone is SVGs, one below the other, as one file that is read in the light and in the
// dark.
func Standalone(svgs ...string) string {
	var b strings.Builder
	height := top + tall + bottom
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">
<style>svg{color:#222;background:#fff}@media(prefers-color-scheme:dark){svg{color:#ddd;background:#16181c}}</style>
`, Width, height*len(svgs))
	for i, s := range svgs {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">%s</g>`+"\n", i*height, strings.TrimSpace(s))
	}
	b.WriteString("</svg>\n")
	return b.String()
}
