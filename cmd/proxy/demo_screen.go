package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen shows a demo. On a terminal tokens appear as they come, in colour unless
// NO_COLOR is set (no-color.org); elsewhere it is plain text in which what is
// said of a turn always follows the turn, so that it can be compared.
type screen struct {
	w      io.Writer
	live   bool
	colour bool
	width  int

	label string // of the part being shown, until its first line is out
	col   int    // runes on the current line; 0: it has not begun
	word  string // held until it is known to fit
	later []string
}

const (
	plainWidth = 80
	gutter     = 12 // columns for the label
)

func newScreen(env environment) *screen {
	s := &screen{w: env.out, width: plainWidth}
	f, ok := env.out.(*written).w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.live = true
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 40 {
		s.width = min(width, 110)
	}
	noColour, _ := env.lookup("NO_COLOR")
	kind, _ := env.lookup("TERM")
	s.colour = noColour == "" && kind != "dumb"
	return s
}

// The colours, by what they mean.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (s *screen) paint(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *screen) line(format string, args ...any) {
	fmt.Fprintln(s.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

func (s *screen) heading(format string, args ...any) {
	fmt.Fprintln(s.w)
	fmt.Fprintln(s.w, s.paint(bold, strings.TrimRight(fmt.Sprintf(format, args...), " ")))
}

// begin starts a part under a label.
func (s *screen) begin(label string) { s.label, s.col, s.word, s.later = label, 0, "", nil }

// say shows a piece of what the model says.
func (s *screen) say(piece string) {
	for len(piece) > 0 {
		r, n := utf8.DecodeRuneInString(piece)
		switch {
		case r == '\n':
			s.flush()
			s.newline()
		case r == ' ':
			s.flush()
			s.word = " "
		default:
			s.word += piece[:n]
		}
		piece = piece[n:]
	}
	if s.live {
		s.flush()
	}
}

// flush puts the held word out, on the next line if it does not fit. On a
// terminal a piece of a word may break off its rest: better than to hold it.
func (s *screen) flush() {
	if s.word == "" {
		return
	}
	n := utf8.RuneCountInString(s.word)
	if s.col > 0 && s.col+n > s.width {
		s.newline()
		s.word = strings.TrimPrefix(s.word, " ")
	}
	s.open("│")
	io.WriteString(s.w, s.word)
	s.col += utf8.RuneCountInString(s.word)
	s.word = ""
}

// open begins a line if none is begun.
func (s *screen) open(edge string) {
	if s.col > 0 {
		return
	}
	fmt.Fprintf(s.w, "%s %s ", s.paint(dim, fmt.Sprintf("  %-*s", gutter-2, s.label)), s.paint(dim, edge))
	s.label, s.col = "", gutter+3
}

func (s *screen) newline() {
	if s.col > 0 {
		fmt.Fprintln(s.w)
	}
	s.col = 0
}

// aside tells what happened meanwhile, beside the text: at once on a terminal,
// else after the turn.
func (s *screen) aside(lines ...string) {
	if !s.live {
		s.later = append(s.later, lines...)
		return
	}
	s.flush()
	s.newline()
	for _, l := range lines {
		s.edge("╎", yellow, l)
	}
}

func (s *screen) edge(edge, colour, text string) {
	s.open(edge)
	fmt.Fprint(s.w, s.paint(colour, text))
	s.newline()
}

func (s *screen) bad(format string, args ...any) { s.verdict(red, "✗ "+fmt.Sprintf(format, args...)) }
func (s *screen) good(format string, args ...any) {
	s.verdict(green, "✓ "+fmt.Sprintf(format, args...))
}

// verdict ends a part.
func (s *screen) verdict(colour, text string) {
	s.flush()
	s.newline()
	for _, l := range s.later {
		s.edge("╎", yellow, l)
	}
	s.later = nil
	s.edge("│", colour, text)
}
