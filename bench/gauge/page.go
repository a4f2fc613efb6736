package gauge

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
)

// Page is the report as one HTML file that fetches nothing: a table and bars for each
// scenario, and a curve for each way in which cost could grow.
func Page(peers []Peer, results []Result) []byte {
	type bar struct {
		Name   string
		Y      int
		Width  float64
		Label  string
		Colour string
	}
	type section struct {
		Name, Title string
		Table       string
		Height      int
		Bars        []bar
	}
	var data struct {
		Sections []section
		Curves   []template.HTML
	}
	for _, r := range results {
		var table bytes.Buffer
		Table(&table, peers, []Result{r})
		s := section{Name: r.Scenario.Name, Title: r.Scenario.Title, Table: table.String()}
		most := 0.0
		for _, p := range peers {
			most = max(most, r.Median(p.Name, PerUnit))
		}
		for i, p := range peers {
			v := r.Median(p.Name, PerUnit)
			if v == 0 {
				continue
			}
			label := fmt.Sprintf("%.2f µs", v)
			if x, ok := r.Ratio(p.Name, Against, PerUnit); ok {
				label += fmt.Sprintf(", %.2f ×", x)
			}
			s.Bars = append(s.Bars, bar{p.Name, 22 * len(s.Bars), 420 * v / most, label, colours[i%len(colours)]})
		}
		s.Height = 22 * len(s.Bars)
		data.Sections = append(data.Sections, s)
	}
	for _, names := range [][]string{{"streams100", "streams1000", "streams10000"}, {"answer1KB", "answer100KB", "answer5MB"}} {
		if c := curve(peers, results, names); c != "" {
			data.Curves = append(data.Curves, c)
		}
	}
	var b bytes.Buffer
	if err := sheet.Execute(&b, data); err != nil {
		panic("BUG: gauge: " + err.Error())
	}
	return b.Bytes()
}

var colours = []string{"#8a8a8a", "#1f5fa8", "#2c8a4b", "#d9822b", "#8c6bb1", "#c0392b"}

// curve draws the CPU per unit over scenarios that differ in one size; "": they were not run.
func curve(peers []Peer, results []Result, names []string) template.HTML {
	const left, width, height = 60.0, 440.0, 160.0
	most := 0.0
	var at []Result
	for _, n := range names {
		for _, r := range results {
			if r.Scenario.Name == n {
				at = append(at, r)
				for _, p := range peers {
					most = max(most, r.Median(p.Name, PerUnit))
				}
			}
		}
	}
	if len(at) < 2 || most == 0 {
		return ""
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg viewBox="0 0 760 %g" width="760" font-size="12">`, height+50)
	x := func(i int) float64 { return left + width*float64(i)/float64(len(at)-1) }
	y := func(v float64) float64 { return 10 + height*(1-v/most) }
	for i, r := range at {
		fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">%s</text>`, x(i), height+30, template.HTMLEscapeString(r.Scenario.Name))
	}
	fmt.Fprintf(&b, `<text x="%g" y="14" text-anchor="end">%.2f µs</text><path d="M%g 10V%gH%g" fill="none" stroke="#999"/>`, left-6, most, left, height+10, left+width)
	for k, p := range peers {
		d, end := "", math.NaN()
		for i, r := range at {
			if v := r.Median(p.Name, PerUnit); v > 0 {
				mark := "L"
				if d == "" {
					mark = "M"
				}
				end = y(v)
				d += fmt.Sprintf("%s%.1f %.1f", mark, x(i), end)
			}
		}
		if d != "" {
			colour := colours[k%len(colours)]
			fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/><text x="%g" y="%.1f" fill="%s">%s</text>`,
				d, colour, left+width+8, end+4, colour, template.HTMLEscapeString(p.Name))
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // made of numbers and escaped names
}

var sheet = template.Must(template.New("sheet").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>What Unbroken costs</title>
<style>body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}pre{overflow:auto;font-size:13px}</style>
<h1>What Unbroken costs</h1>
<p>CPU of each proxy's processes alone, by the kernel's books; all peers in one run, one after the other, round by round; medians, and
medians of the ratios of neighbours. Absolute numbers are the machine's.</p>
{{range .Sections}}<h2>{{.Name}}: {{.Title}}</h2>
<svg viewBox="0 0 760 {{.Height}}" width="760" font-size="12">{{range .Bars}}<text x="125" y="{{.Y}}" dy="15" text-anchor="end">{{.Name}}</text><rect x="132" y="{{.Y}}" width="{{printf "%.1f" .Width}}" height="18" fill="{{.Colour}}"/><text x="140" dx="{{printf "%.1f" .Width}}" y="{{.Y}}" dy="15">{{.Label}}</text>{{end}}</svg>
<pre>{{.Table}}</pre>
{{end}}{{if .Curves}}<h2>How cost grows</h2>
<p>CPU per event.</p>
{{range .Curves}}{{.}}
{{end}}{{end}}</html>
`))
