package splice

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// blankWindow bounds the white space at the end of what was said that is compared with that of the continuation.
const blankWindow = 1 << 10

// trailing returns the white space text ends with.
func trailing(text []byte) []byte {
	return text[len(bytes.TrimRightFunc(text, unicode.IsSpace)):]
}

// doubled counts the bytes at the front of lead, the white space a continuation begins with, that repeat shown, the white
// space the client already has at that place. The model chose its white space without seeing ours, so either
// both begin alike ("\n\n" shown, "\n" said) or the end of ours is the start of its ("\n    " shown, "    " said); the
// larger of both goes.
func doubled(shown, lead []byte) int {
	if cut := len(shown) - blankWindow; cut > 0 {
		shown = shown[cut:]
	}
	alike := 0
	for alike < min(len(shown), len(lead)) && shown[alike] == lead[alike] {
		alike++
	}
	for alike > 0 && alike < len(lead) && !utf8.RuneStart(lead[alike]) {
		alike--
	}
	for n := min(len(shown), len(lead)); n > alike; n-- {
		if bytes.HasSuffix(shown, lead[:n]) {
			return n
		}
	}
	return alike
}
