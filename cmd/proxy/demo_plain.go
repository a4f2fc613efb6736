package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// screen shows a demo in plain lines, for a file, a pipe or a person who wants no
// more. What is said of a turn follows the turn, so that its text can be compared.
type screen struct {
	w     io.Writer
	width int

	label string // of the part being shown, until its first line is out
	col   int    // columns of the current line; 0: it has not begun
	word  string // held until it is known to fit
	facts []fact
}

const (
	plainWidth = 80
	gutter     = 12 // columns for the label
)

func (s *screen) begin(n, of int, sc scene) {
	if n == 1 {
		fmt.Fprintln(s.w, "A provider breaks its stream in every turn: once with the client connected to")
		fmt.Fprintln(s.w, "it, once with unbroken in between. The client is the same, and knows nothing of")
		fmt.Fprintln(s.w, "either.")
	}
	fmt.Fprintf(s.w, "\n%d/%d  %s\n", n, of, clean(sc.title()))
}

func (s *screen) start(w way) { s.label, s.col, s.word, s.facts = w.String(), 0, "", nil }

func (s *screen) say(piece string) {
	for _, r := range clean(piece) {
		switch r {
		case '\n':
			s.flush()
			s.newline()
		case ' ':
			s.flush()
			s.word = " "
		default:
			s.word += string(r)
		}
	}
}

// flush puts the held word out, on the next line if it does not fit.
func (s *screen) flush() {
	if s.word == "" {
		return
	}
	if s.col > 0 && s.col+columns(s.word) > s.width {
		s.newline()
		s.word = strings.TrimPrefix(s.word, " ")
	}
	s.open("│")
	io.WriteString(s.w, s.word)
	s.col += columns(s.word)
	s.word = ""
}

// open begins a line if none is begun.
func (s *screen) open(edge string) {
	if s.col > 0 {
		return
	}
	fmt.Fprintf(s.w, "  %-*s %s ", gutter-2, s.label, edge)
	s.label, s.col = "", gutter+3
}

func (s *screen) newline() {
	if s.col > 0 {
		fmt.Fprintln(s.w)
	}
	s.col = 0
}

func (s *screen) tell(facts []fact) { s.facts = facts }

func (s *screen) verdict(well bool, text string) {
	s.flush()
	s.newline()
	for _, f := range s.facts {
		s.edge("╎", f.name+": "+f.text)
	}
	s.edge("│", mark(well)+" "+text)
}

func (s *screen) edge(edge, text string) {
	s.open(edge)
	io.WriteString(s.w, clean(text))
	s.newline()
}

// end may come in the middle of a turn: somebody has seen enough, and is told so on a line of its own.
func (s *screen) end(results []*result) {
	s.flush()
	s.newline()
	summary(s.w, results)
}

func (s *screen) pause(context.Context) error { return nil }

func mark(well bool) string {
	if well {
		return "✓"
	}
	return "✗"
}
