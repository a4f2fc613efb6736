package golden

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	around   = 2   // unchanged lines shown beside a change
	maxLines = 200 // of a diff, so that a failure stays readable
	maxTable = 4 << 20
)

// Diff returns the lines in which two texts differ, marked - (only in a) and + (only
// in b), with a few lines around them. Bytes that do not show, also those at the
// end of a line, are escaped, so that no two different texts look alike.
func Diff(a, b []byte) string {
	x, y := lines(a), lines(b)
	var out []string
	for _, l := range align(x, y) {
		out = append(out, l.mark+" "+l.text)
	}
	return strings.Join(fold(out), "\n")
}

// line is one row of a diff.
type line struct{ mark, text string }

// align finds a longest common subsequence of lines. Equal ends are cut off first;
// where the rest is too large for the quadratic table, all of it is taken as changed.
func align(x, y []string) []line {
	var head, mid, tail []line
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		head = append(head, line{" ", x[0]})
		x, y = x[1:], y[1:]
	}
	n := 0
	for n < len(x) && n < len(y) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	for _, s := range x[len(x)-n:] {
		tail = append(tail, line{" ", s})
	}
	x, y = x[:len(x)-n], y[:len(y)-n]
	common := table(x, y)
	for i, j := 0, 0; i < len(x) || j < len(y); {
		switch {
		case common != nil && i < len(x) && j < len(y) && x[i] == y[j]:
			mid = append(mid, line{" ", x[i]})
			i, j = i+1, j+1
		case i < len(x) && (j == len(y) || common == nil || common[i+1][j] >= common[i][j+1]):
			mid = append(mid, line{"-", x[i]})
			i++
		default:
			mid = append(mid, line{"+", y[j]})
			j++
		}
	}
	return append(append(head, mid...), tail...)
}

// table holds, for each pair of ends, the length of their longest common subsequence.
func table(x, y []string) [][]int32 {
	if (len(x)+1)*(len(y)+1) > maxTable {
		return nil
	}
	t := make([][]int32, len(x)+1)
	for i := range t {
		t[i] = make([]int32, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				t[i][j] = t[i+1][j+1] + 1
			} else {
				t[i][j] = max(t[i+1][j], t[i][j+1])
			}
		}
	}
	return t
}

// fold leaves out unchanged lines far from any change, and what is too much.
func fold(rows []string) []string {
	near := make([]bool, len(rows))
	for i, r := range rows {
		if r[0] == ' ' {
			continue
		}
		for j := max(0, i-around); j <= min(len(rows)-1, i+around); j++ {
			near[j] = true
		}
	}
	var out []string
	skipped := 0
	for i, r := range rows {
		if !near[i] {
			skipped++
			continue
		}
		if len(out) >= maxLines {
			return append(out, fmt.Sprintf("  … %d more lines", len(rows)-i))
		}
		if skipped > 0 {
			out = append(out, fmt.Sprintf("  … %d lines the same", skipped))
			skipped = 0
		}
		out = append(out, r)
	}
	return out
}

// lines splits a text at line feeds. A last line that has none ends in a single
// backslash.
func lines(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	s := strings.Split(string(b), "\n")
	last := len(s) - 1
	whole := s[last] == ""
	if whole {
		s = s[:last]
	}
	for i := range s {
		s[i] = show(s[i])
	}
	if !whole {
		s[last] += `\` // no escape: every backslash of the text is doubled
	}
	return s
}

// show escapes what does not show.
func show(s string) string {
	text := len(strings.TrimRight(s, " "))
	var out strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\\':
			out.WriteString(`\\`)
		case r == utf8.RuneError && n == 1, r == ' ' && i >= text:
			fmt.Fprintf(&out, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		i += n
	}
	return out.String()
}
