package main

import "strings"

// span is a stretch of a line in one colour; "" is the terminal's own.
type span struct{ colour, text string }

// The colours, by what they mean.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// The rows of a frame; all of it is viewHeight.
const (
	paneRows = 7
	factRows = 5
	doneRows = 4
	between  = " │ "
)

// frame lays the view out in viewHeight lines, none wider than width.
func (v *view) frame(width int) [][]span {
	half := (width - columns(between)) / 2
	lines := [][]span{
		{{bold, fit(" unbroken demo   "+v.title, width)}},
		{},
		{{dim, fit(" straight to the provider", half)}, {dim, between}, {dim, fit("through unbroken", half)}},
		{{dim, strings.Repeat("─", half+1) + "┼" + strings.Repeat("─", half+1)}},
	}
	left, right := v.panes[straight].rows(half), v.panes[healing].rows(half)
	for i := range left {
		lines = append(lines, append(append(left[i], span{dim, between}), right[i]...))
	}
	lines = append(lines, nil)
	for i := range factRows {
		var l []span
		if i < len(v.facts) {
			f := v.facts[i]
			l = []span{{dim, fit(" "+f.name, gutter)}, {yellow, fit(clean(f.text), width-gutter)}}
		}
		lines = append(lines, l)
	}
	lines = append(lines, nil)
	for i := range doneRows {
		var l []span
		if i < len(v.done) {
			colour := green
			if !strings.HasPrefix(v.done[i], mark(true)) {
				colour = red
			}
			l = []span{{colour, fit(" "+v.done[i], width)}}
		}
		lines = append(lines, l)
	}
	return append(lines, []span{{dim, fit(" Ctrl-C ends the demo.", width)}})
}

// rows are the last lines of the text, and the verdict below it. What came behind
// an interruption is green.
func (p pane) rows(wide int) (rows [][]span) {
	for _, l := range breakLines(p.text, wide-1) {
		cut := len(l.text)
		if p.seam > 0 {
			cut = min(max(p.seam-l.at, 0), cut)
		}
		rows = append(rows, []span{{"", " " + l.text[:cut]}, {green, l.text[cut:]}, {"", strings.Repeat(" ", wide-1-columns(l.text))}})
	}
	rows = rows[max(0, len(rows)-paneRows):]
	for len(rows) < paneRows {
		rows = append(rows, []span{{"", strings.Repeat(" ", wide)}})
	}
	colour := red
	if p.well {
		colour = green
	}
	return append(rows, []span{{colour, fit(" "+p.end, wide)}})
}
