package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// clean makes text of whatever it is given: what a terminal would obey is shown
// as a sign of its own. That is every control character but the line feed, the
// marks that turn the direction of writing, and bytes that are no UTF-8.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r < 0x20:
			return '␀' + r // Unicode has a picture of each
		case r == 0x7f:
			return '␡'
		case obeyed(r):
			return unicode.ReplacementChar
		}
		return r // strings.Map reads what is no UTF-8 as ReplacementChar
	}, text)
}

// obeyed reports whether a terminal or an editor does something at a rune beyond ASCII, in
// place of showing it: C1 controls, direction marks and separators of lines.
func obeyed(r rune) bool {
	return r >= 0x80 && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// escaping writes JSON that a terminal shows as it is. Encoders escape the control characters
// of ASCII and leave the others, which JSON allows.
type escaping struct{ w io.Writer }

// Write takes whole records, as log handlers write them.
func (e escaping) Write(p []byte) (int, error) {
	if bytes.IndexFunc(p, obeyed) < 0 {
		return e.w.Write(p)
	}
	var b bytes.Buffer
	for _, r := range string(p) {
		if obeyed(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	if _, err := e.w.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// cleanLine is clean for what is to stay within its line.
func cleanLine(text string) string { return strings.ReplaceAll(clean(text), "\n", "␊") }
