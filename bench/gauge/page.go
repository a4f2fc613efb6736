package gauge

import (
	"bytes"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/unbroken-llm/unbroken/bench/plot"
)

// Page is the report as one HTML file that fetches nothing: a table and bars for each
// scenario, and lines for each way in which something could grow.
func (r Report) Page() []byte {
	var data struct {
		Machine  Machine
		Sections []section
		Curves   []template.HTML
		Heal     *section
		Rate     *section
	}
	data.Machine = r.Machine
	for _, k := range r.Results {
		data.Sections = append(data.Sections, r.section(k))
	}
	for _, c := range []plot.Lines{
		r.growth("CPU per event against streams, 5,000 events a second in all", "streams", "streams", func(s Scenario) float64 { return float64(s.Clients) }),
		r.growth("CPU per event against the length of an answer, 64 at a time", "bytes", "answer", func(s Scenario) float64 { return float64(s.Shape.Events * s.Shape.textBytes()) }),
	} {
		if svg := c.SVG(); svg != "" {
			data.Curves = append(data.Curves, inline(svg))
		}
	}
	if len(r.Healed) > 0 {
		data.Heal = &section{Drawing: inline(r.ownBars()), Table: printed(Report{Healed: r.Healed})}
	}
	if len(r.Rated) > 0 {
		data.Rate = &section{Drawing: inline(r.completion().SVG()), Table: printed(Report{Rated: r.Rated})}
	}
	var b bytes.Buffer
	if err := sheet.Execute(&b, data); err != nil {
		panic("BUG: gauge: " + err.Error())
	}
	return b.Bytes()
}

// section is a part of the page.
type section struct {
	Name, Title string
	Drawing     template.HTML
	Table       string
}

// inline takes a drawing as it is: package plot escapes the words in it.
func inline(svg string) template.HTML { return template.HTML(svg) } //nolint:gosec // see above

func printed(r Report) string {
	var b strings.Builder
	r.Table(&b)
	return strings.TrimLeft(b.String(), "\n")
}

// section shows a scenario's first figure as bars.
func (r Report) section(k Result) section {
	s := section{Name: k.Scenario.Name, Title: k.Scenario.Title, Table: printed(Report{Results: []Result{k}})}
	f := k.Scenario.figures()[0]
	var bars []plot.Bar
	for _, p := range k.Peers {
		v := k.median(p, f)
		if v == 0 {
			continue
		}
		label := f.head + " " + fmt.Sprintf(f.form, v/f.scale)
		if x, ok := k.ratio(p, f); ok {
			label += fmt.Sprintf(", %.2f × %s", x, k.Reference)
		}
		bars = append(bars, plot.Bar{Name: p, Value: v, Label: label, Colour: r.colour(p)})
	}
	s.Drawing = inline(plot.Bars(bars))
	return s
}

func (r Report) colour(peer string) int { return max(0, slices.Index(r.peers(), peer)) }

// growth plots the CPU per unit of the linear scenarios whose names begin so.
func (r Report) growth(title, unit, prefix string, size func(Scenario) float64) plot.Lines {
	p := plot.Lines{Title: title, X: unit, Y: "µs", LogX: true}
	for _, peer := range r.peers() {
		l := plot.Line{Name: peer}
		for _, k := range r.Results {
			if v := k.median(peer, cpuFigure); v > 0 && strings.HasPrefix(k.Scenario.Name, prefix) {
				l.Points = append(l.Points, plot.Point{X: size(k.Scenario), Y: v})
			}
		}
		p.Lines = append(p.Lines, l)
	}
	return p
}

// completion plots what came through whole over the rate of faults.
func (r Report) completion() plot.Lines {
	p := plot.Lines{Title: "turns that are whole at their clients", X: "% of attempts cut", Y: "%"}
	for _, peer := range r.peers() {
		l := plot.Line{Name: peer}
		for _, k := range r.Rated {
			if k.Peer == peer {
				l.Points = append(l.Points, plot.Point{X: 100 * k.Rate, Y: 100 * k.Completion()})
			}
		}
		p.Lines = append(p.Lines, l)
	}
	return p
}

// ownBars show what healing adds of its own, at the 99th percentile.
func (r Report) ownBars() string {
	var bars []plot.Bar
	for _, h := range r.Healed {
		ms := float64(h.Own.P99) / 1e3
		bars = append(bars, plot.Bar{Name: h.Cause, Value: ms, Label: fmt.Sprintf("%.1f ms p99, %.1f p50, %s", ms, float64(h.Own.P50)/1e3, h.Peer), Colour: r.colour(h.Peer)})
	}
	return plot.Bars(bars)
}

var sheet = template.Must(template.New("sheet").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>What Unbroken costs</title>
<style>
:root{color-scheme:light dark}
body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
pre{overflow:auto;font-size:13px}
svg{max-width:100%;height:auto}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#16181c}}
</style></head><body>
<h1>What Unbroken costs</h1>
<p>CPU of each proxy's processes alone, by the kernel's books; all peers in one run, one after the other, round by round; medians, and
medians of the ratios of neighbours. Absolute numbers are the machine's: {{.Machine}}.</p>
{{range .Sections}}<h2>{{.Name}}: {{.Title}}</h2>
{{.Drawing}}<pre>{{.Table}}</pre>
{{end}}{{if .Curves}}<h2>How cost grows</h2>
{{range .Curves}}{{.}}{{end}}{{end}}{{with .Heal}}<h2>What healing adds of its own</h2>
<p>From the provider's last word to the first healed text at the client, without the provider's time to answer the continuation, and without the
configured silence where that is how a break is noticed.</p>
{{.Drawing}}<pre>{{.Table}}</pre>
{{end}}{{with .Rate}}<h2>What comes through</h2>
{{.Drawing}}<pre>{{.Table}}</pre>
{{end}}</body></html>
`))
