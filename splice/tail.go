package splice

import "bytes"

// tail looks for the longest tail of what was said that the continuation begins with. It is the search of
// Knuth, Morris and Pratt turned around: the text (text, what was said) is complete and the pattern (the head of the
// continuation) grows. The leftmost place where the pattern so far occurs is the longest tail still possible; when a
// byte does not fit there the search moves right, and once it reaches the end of the text, what it has
// matched is the longest tail that was repeated. Every byte of either is looked at a constant number of times.
type tail struct {
	text   []byte  // folded
	least  int     // a tail shorter than this, in folded bytes, is no repetition
	anchor int     // folded length of the demanded anchor, 0 without one
	pat    []byte  // folded head of the continuation
	fall   []int32 // fall[i]: longest proper prefix of pat[:i+1] that also ends it
	ends   []int   // ends[i]: offset in the continuation behind pat[i]
	at     int     // text[:at] has been searched
	got    int     // pat[:got] matches text[at-got:at]
	circle bool    // a tail that is one piece said over and over counts too
	fit    bool    // the whole pattern occurs in the text
	state  fate
}

// fate is what became of a reading.
type fate uint8

const (
	alive fate = iota
	dead
	found
)

// push takes the next folded byte, which ends at offset end of the continuation.
func (t *tail) push(b byte, end int) {
	if t.state != alive {
		return
	}
	if n := len(t.pat); n == 0 {
		t.fall = append(t.fall, 0)
	} else {
		k := int(t.fall[n-1])
		for k > 0 && t.pat[k] != b {
			k = int(t.fall[k-1])
		}
		if t.pat[k] == b {
			k++
		}
		t.fall = append(t.fall, int32(k))
	}
	t.pat = append(t.pat, b)
	t.ends = append(t.ends, end)
	t.search(len(t.pat))
	t.fit = t.got == len(t.pat)
	if t.state == alive && t.saidAnchor() && int(t.fall[t.anchor-1])*2 >= t.anchor {
		// A text of period ("ha ha ha") repeats its anchor everywhere: no longer tail can be told from new text, and
		// the anchor is what was asked for.
		t.got, t.state = t.anchor, found
	}
}

// search moves on until the first want bytes of the pattern match, or to the end of the text.
func (t *tail) search(want int) {
	for t.got < want && t.at < len(t.text) {
		switch {
		case t.text[t.at] == t.pat[t.got]:
			t.at++
			t.got++
		case t.got > 0:
			t.got = int(t.fall[t.got-1])
		default:
			t.at++
		}
		if t.at-t.got > len(t.text)-t.least {
			t.state = dead
			return
		}
	}
	if t.at == len(t.text) {
		t.state = found
		if !t.circle && t.got != t.anchor && int(t.fall[t.got-1])*2 >= t.got {
			t.state = dead // "--------" behind "--------" is a longer line.
		}
	}
}

// end says that the continuation is over: only a place at the very end of the text still counts. Places where the
// pattern is complete elsewhere are let go of, one after the other.
func (t *tail) end() {
	if len(t.pat) == 0 {
		t.state = dead
	}
	for t.state == alive {
		if t.got == len(t.pat) {
			t.got = int(t.fall[t.got-1])
		}
		t.search(len(t.pat))
	}
}

// saidAnchor reports whether the pattern is exactly the anchor.
func (t *tail) saidAnchor() bool {
	return t.anchor > 0 && len(t.pat) == t.anchor && bytes.HasSuffix(t.text, t.pat)
}

// cut is the offset behind the repetition that was found.
func (t *tail) cut() int { return t.ends[t.got-1] }

// agreed returns the folded head that occurs in the text: all of it, except for the byte that did not fit.
func (t *tail) agreed(over bool) []byte {
	if len(t.pat) == 0 || over && t.fit {
		return t.pat
	}
	return t.pat[:len(t.pat)-1]
}

// twice reports whether text says part more than once.
func twice(text, part []byte) bool {
	at := bytes.Index(text, part)
	return at >= 0 && bytes.Contains(text[at+1:], part)
}
