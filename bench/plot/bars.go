package plot

import (
	"fmt"
	"html"
	"strings"
)

// Bar is one of a chart.
type Bar struct {
	Name   string
	Value  float64
	Label  string // behind it
	Colour int    // of Colours
}

// Bars draws them from left to right, one below the other; "" if no value is positive.
func Bars(bars []Bar) string {
	const row, from, long = 22, 132, 380
	most := 0.0
	for _, k := range bars {
		most = max(most, k.Value)
	}
	if most == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" fill="currentColor">`+"\n", Width, row*len(bars), Width, row*len(bars))
	for i, k := range bars {
		wide := long * k.Value / most
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.1f" height="18" fill="%s"/><text x="%.1f" y="%d">%s</text>`+"\n",
			from-8, row*i+15, html.EscapeString(k.Name), from, row*i, wide, Colours[k.Colour%len(Colours)], from+wide+8, row*i+15, html.EscapeString(k.Label))
	}
	b.WriteString("</svg>\n")
	return b.String()
}
