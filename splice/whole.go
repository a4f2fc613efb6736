package splice

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// whole follows the answer from its start while the continuation says it again. It keeps nothing but a place in it.
type whole struct {
	said  []byte // without white space at either end
	need  int    // non-space characters that make a complete repetition one
	at    int    // said[:at] was said again
	solid int    // non-space characters of it
	cut   int    // offset in the continuation behind it
	state fate
}

// push takes the next solid rune, which ends at offset end of the continuation; space says whether white space
// stood before it.
func (w *whole) push(raw []byte, space bool, end int) {
	if w.state != alive {
		return
	}
	at := w.at
	for at < len(w.said) {
		r, size := utf8.DecodeRune(w.said[at:])
		if !unicode.IsSpace(r) {
			break
		}
		at += size
	}
	run := at - w.at
	if w.at > 0 && (run > 0) != space || run > spaceRun || !bytes.HasPrefix(w.said[at:], raw) {
		w.state = dead
		return
	}
	w.at, w.cut = at+len(raw), end
	w.solid++
	if w.at == len(w.said) {
		w.state = dead
		if w.solid >= w.need {
			w.state = found
		}
	}
}

// restarted reports whether what was said again, though not all of it, is too much for chance. What the answer itself
// says more than once is no sign.
func (w *whole) restarted() bool {
	if w.at == len(w.said) {
		return false
	}
	if w.solid < enough && (w.solid < few || solid(w.said, 2*w.solid+1) > 2*w.solid) {
		return false
	}
	return !bytes.Contains(w.said[1:], w.said[:w.at])
}

// periodic reports whether text is one piece said over and over, at least twice. Longer texts than folded tails are not
// looked at: nobody says 16 KiB in a circle by design.
func periodic(text []byte) bool {
	if len(text) == 0 || len(text) > tailWindow {
		return false
	}
	fall := make([]int32, len(text))
	for i := 1; i < len(text); i++ {
		k := fall[i-1]
		for k > 0 && text[k] != text[i] {
			k = fall[k-1]
		}
		if text[k] == text[i] {
			k++
		}
		fall[i] = k
	}
	return int(fall[len(text)-1])*2 >= len(text)
}
