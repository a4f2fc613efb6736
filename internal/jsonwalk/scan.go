package jsonwalk

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
)

// The same byte eight times over: ones holds 1, tops the highest bit.
const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// plainEnd returns the index of the first byte at or after i that is more than text in a string, which are a quote, a
// backslash and a control character; len(b) if there is none. It looks at eight bytes at once: a byte less n has its
// highest bit when it was below n, and a byte that was looked for is 0 behind the exclusive or. What such a byte lends
// from makes mistakes in those above it only, and the lowest is the first.
func plainEnd(b []byte, i int) int {
	for ; len(b)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		q, s := w^ones*'"', w^ones*'\\'
		if hit := ((w-ones*' ')&^w | (q-ones)&^q | (s-ones)&^s) & tops; hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
		i++
	}
	return i
}

// Has reports whether word stands anywhere in doc, as bytes.Contains does. That looks for the first byte of a word, and
// byte by byte where it finds many; in JSON the quote that many a word begins with is among the most frequent. This looks
// for the first byte of word that is neither a quote nor a small letter, if there is one.
func Has(doc []byte, word string) bool {
	at := strings.IndexFunc(word, rare)
	if at < 0 {
		return bytes.Contains(doc, []byte(word))
	}
	for i := at; i < len(doc); i++ {
		n := bytes.IndexByte(doc[i:], word[at])
		if n < 0 {
			return false
		}
		i += n
		if start := i - at; len(doc)-start >= len(word) && string(doc[start:start+len(word)]) == word {
			return true
		}
	}
	return false
}

func rare(c rune) bool { return c != '"' && (c < 'a' || c > 'z') }
