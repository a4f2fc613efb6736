package splice

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is compared, in bytes.
const (
	tailWindow = 16 << 10 // folded tail of what was said in which a repeated tail is looked for
	spaceRun   = 1 << 10  // longest run of white space that still folds into one space
)

// Evidence, in non-space characters.
const (
	enough = 24 // DESIGN §4: a repetition this long is one
	few    = 8  // below this even half of what was said may be chance
	glued  = 2  // enough where the exact reading would glue two words
)

// foldTail returns the last bytes of text with each run of white space made one space and none at either end. A longer
// text is cut at a code point.
func foldTail(text []byte) []byte {
	if cut := len(text) - tailWindow; cut > 0 {
		for cut < len(text) && !utf8.RuneStart(text[cut]) {
			cut++
		}
		text = text[cut:]
	}
	return bytes.Join(bytes.FieldsFunc(text, unicode.IsSpace), []byte{' '})
}

// solid counts the characters of text that are not white space, from its end and not beyond limit.
func solid(text []byte, limit int) (n int) {
	for len(text) > 0 && n < limit {
		r, size := utf8.DecodeLastRune(text)
		text = text[:len(text)-size]
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}

// leastTail is the shortest tail of folded, in bytes, that holds need non-space characters, or more than all of it.
func leastTail(folded []byte, need int) int {
	at := len(folded)
	for at > 0 {
		r, size := utf8.DecodeLastRune(folded[:at])
		at -= size
		if r != ' ' {
			if need--; need <= 0 {
				return len(folded) - at
			}
		}
	}
	return len(folded) + 1
}

// folder turns a text that arrives rune by rune into folded bytes.
type folder struct {
	run   int  // bytes of the white space run being read
	begun bool // something solid was seen: white space before it folds into nothing
}

// fold appends to dst what r (read as the bytes raw) adds to the folded text. White space is held back until something
// follows it. ok is false when a run of it is too long to be folded.
func (f *folder) fold(dst []byte, r rune, raw []byte) (out []byte, ok bool) {
	if unicode.IsSpace(r) {
		f.run += len(raw)
		return dst, !f.begun || f.run <= spaceRun
	}
	if f.run > 0 && f.begun {
		dst = append(dst, ' ')
	}
	f.run, f.begun = 0, true
	return append(dst, raw...), true
}
