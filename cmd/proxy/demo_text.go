package main

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// columns is how many columns of a terminal a cleaned text takes.
func columns(text string) (n int) {
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// piece is a part of a text, and where it begins there.
type piece struct {
	at   int
	text string
}

// breakLines breaks a text into lines of at most so many columns: at blanks where there
// are any, else anywhere. Only those blanks are left out.
func breakLines(text string, most int) (lines []piece) {
	at := 0
	for line := range strings.SplitSeq(text, "\n") {
		for columns(line) > most {
			cut, blank, n := 0, 0, 0
			for i, r := range line {
				if n += runeColumns(r); n > most {
					cut = i
					break
				}
				if r == ' ' {
					blank = i
				}
			}
			if line[cut] == ' ' {
				blank = cut
			}
			end, next := cut, cut
			if blank > 0 {
				end, next = blank, blank+1
			}
			lines = append(lines, piece{at, line[:end]})
			at, line = at+next, line[next:]
		}
		lines = append(lines, piece{at, line})
		at += len(line) + len("\n")
	}
	return lines
}

// fit cuts a text to so many columns, or fills it up with blanks.
func fit(text string, wide int) string {
	n := 0
	for i, r := range text {
		if n+runeColumns(r) > wide {
			return text[:i] + strings.Repeat(" ", wide-n)
		}
		n += runeColumns(r)
	}
	return text + strings.Repeat(" ", wide-n)
}
