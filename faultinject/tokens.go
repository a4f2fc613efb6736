package faultinject

import (
	"hash/fnv"
	"math/rand/v2"
	"unicode"
	"unicode/utf8"
)

// tokens splits text the way a model's tokeniser does: a token is a few runes,
// a space belongs to the word after it, a code point is never split. The split
// depends on the seed and the text alone.
func tokens(text string, seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, hash64(text)))
	var out []string
	for len(text) > 0 {
		n := tokenLen(text, 2+r.IntN(6))
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

// tokenLen returns the byte length of the first token of text: at most limit
// runes, ending before the next space once a letter was taken.
func tokenLen(text string, limit int) int {
	n, letters := 0, false
	for i, r := range text {
		if limit == 0 || (letters && unicode.IsSpace(r)) {
			break
		}
		letters = letters || !unicode.IsSpace(r)
		n = i + utf8.RuneLen(r)
		if r == utf8.RuneError {
			n = i + 1
		}
		limit--
	}
	return n
}

// hash64 is a stable hash of its parts.
func hash64(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	// FNV leaves neighbours close together; these shifts and multiplications
	// spread them (Stafford's mix 13).
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
