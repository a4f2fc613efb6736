package relay

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/dialect"
)

// lineEnds are the characters that some clients take for line ends inside an
// event (FIELD-REPORTS C7), and how JSON spells them.
var lineEnds = [...]struct{ raw, escaped []byte }{
	{[]byte("\u2028"), []byte(`\u2028`)},
	{[]byte("\u2029"), []byte(`\u2029`)},
	{[]byte("\u0085"), []byte(`\u0085`)},
}

// oneLine spells them out in events of ours, which d rendered. Outside of strings
// JSON knows none of them, so that wherever they stand they are text. Other framings
// than event streams are not read by the line, and may hold such bytes as no text at
// all: in a length, in a checksum.
func oneLine(d dialect.Dialect, b []byte) []byte {
	if _, framed := d.(dialect.Framed); framed {
		return b
	}
	for _, l := range lineEnds {
		if bytes.Contains(b, l.raw) {
			b = bytes.ReplaceAll(b, l.raw, l.escaped)
		}
	}
	return b
}
