package dialect

import "unicode/utf8"

// What stands around the anchor in the words of Ask. Models that were told to leave it out
// repeat it nevertheless, so whoever reads the answer must know it.
const (
	AnchorOpens  = '→'
	AnchorCloses = '←'
)

// Ask words the user message of an asked continuation. It quotes the tail and has
// it repeated, so that the seam can be found rather than guessed; it names a word
// for "nothing is missing", so that a turn that was cut behind its last character
// does not grow a second ending. It says nothing of who is speaking to whom: the
// caller's system prompt keeps its authority (FIELD-REPORTS D10).
func Ask(r *Request, c Continuation, text []byte) []byte {
	out := []byte("Your previous reply was cut off in transmission.")
	if tail := anchor(text, c.Anchor); len(tail) > 0 {
		out = append(out, " Its last characters are, between the two arrows:\n"...)
		out = utf8.AppendRune(out, AnchorOpens)
		out = append(out, tail...)
		out = utf8.AppendRune(out, AnchorCloses)
		out = append(out, "\nBegin with exactly these characters again, without the arrows, and go on from there"...)
	} else {
		out = append(out, " Go on exactly where it stops"...)
	}
	out = append(out, " as if it had never stopped: no preamble, no comment, no repetition of what comes before them, no newly opened code fence."...)
	if r.Structured {
		out = append(out, " The whole is one JSON document; write only the rest of it."...)
	}
	if c.Sentinel != "" {
		out = append(out, " If nothing is missing, answer only "...)
		out = append(out, c.Sentinel...)
		out = append(out, '.')
	}
	return out
}

// anchor returns about the last n bytes of text, beginning on a code point.
func anchor(text []byte, n int) []byte {
	if n <= 0 {
		return nil
	}
	at := max(0, len(text)-n)
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return text[at:]
}
