package relay

import "bytes"

// lineEnds are the characters that some clients take for line ends inside an
// event (FIELD-REPORTS C7), and how JSON spells them.
var lineEnds = [...]struct{ raw, escaped []byte }{
	{[]byte("\u2028"), []byte(`\u2028`)},
	{[]byte("\u2029"), []byte(`\u2029`)},
	{[]byte("\u0085"), []byte(`\u0085`)},
}

// oneLine spells them out in an event of ours. Outside of strings JSON knows none
// of them, so that wherever they stand they are text.
func oneLine(b []byte) []byte {
	for _, l := range lineEnds {
		if bytes.Contains(b, l.raw) {
			b = bytes.ReplaceAll(b, l.raw, l.escaped)
		}
	}
	return b
}
