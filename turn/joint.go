package turn

import (
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// Joint tells what stands beside an attempt's text (an annotation, a citation) where
// that text joined the client's.
type Joint struct {
	// Block and Answer are to be added to a place in the attempt's text: to get the
	// same place in the block's text, or in the text of the whole answer. Negative where
	// the attempt said again more than the block (the answer) holds.
	Block, Answer Extent
	// Said is the extent of the answer when the attempt joined it.
	Said Extent
	// Had is the length of the block's escaped text when the attempt joined it; 0 for a
	// block of its own.
	Had int
	// Repeats says that the attempt has not yet come to its new text.
	Repeats bool
}

// Extent is the length of a text: in bytes of UTF-8, and in code points.
type Extent struct{ Bytes, Chars int }

// Measure returns the extent of a decoded text.
func Measure(plain []byte) Extent { return Extent{len(plain), utf8.RuneCount(plain)} }

// Minus is what is left of x behind y.
func (x Extent) Minus(y Extent) Extent { return Extent{x.Bytes - y.Bytes, x.Chars - y.Chars} }

// Before is the extent of what b said before the attempt that j tells of.
func (j *Joint) Before(b *Block) Extent {
	return Measure(jsonwalk.Unescape(nil, b.Text[:min(j.Had, len(b.Text))]))
}
