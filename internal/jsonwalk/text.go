package jsonwalk

import (
	"bytes"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A *body* is what stands between the quotes of a JSON string, escapes and all. The functions here speak of its decoded
// bytes, which are always valid UTF-8: as in encoding/json, a lone surrogate escape and each byte of invalid UTF-8
// decode to U+FFFD (three bytes).

// String cuts the body out of a trimmed raw string value; ok is false for any other kind.
func String(raw []byte) (body []byte, ok bool) {
	if len(raw) < 2 || raw[0] != '"' || stringEnd(raw, 0) != len(raw) {
		return nil, false
	}
	return raw[1 : len(raw)-1], true
}

// Unescape appends the decoded text of body to dst.
func Unescape(dst, body []byte) []byte {
	for len(body) > 0 {
		plain := bytes.IndexByte(body, '\\')
		if plain < 0 {
			plain = len(body)
		}
		if utf8.Valid(body[:plain]) {
			dst = append(dst, body[:plain]...)
		} else {
			dst = repair(dst, body[:plain])
		}
		if body = body[plain:]; len(body) > 0 {
			r, n := decode(body)
			dst = utf8.AppendRune(dst, r)
			body = body[n:]
		}
	}
	return dst
}

// repair appends b with U+FFFD for each byte of invalid UTF-8.
func repair(dst, b []byte) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		dst = utf8.AppendRune(dst, r)
		b = b[n:]
	}
	return dst
}

// DecodedLen returns the number of bytes Unescape would append.
func DecodedLen(body []byte) int {
	n := 0
	for i := 0; i < len(body); {
		if c := body[i]; c < utf8.RuneSelf && c != '\\' {
			i++
			n++
			continue
		}
		r, size := decode(body[i:])
		i += size
		n += utf8.RuneLen(r)
	}
	return n
}

// CutBody returns the rest of body behind its first plain decoded bytes, aliasing body. It never splits a code point or
// an escape: a cut that falls inside one is rounded up, so that the whole code point goes. It returns an empty slice at
// the end of body when body has no more than that.
func CutBody(body []byte, plain int) []byte {
	i := 0
	for i < len(body) && plain > 0 {
		if c := body[i]; c < utf8.RuneSelf && c != '\\' {
			i++
			plain--
			continue
		}
		r, size := decode(body[i:])
		i += size
		plain -= utf8.RuneLen(r)
	}
	return body[i:]
}

// KeyIs reports whether the escaped body of a key decodes to name.
func KeyIs(body []byte, name string) bool {
	if string(body) == name && bytes.IndexByte(body, '\\') < 0 {
		return true
	}
	for len(body) > 0 {
		r, size := decode(body)
		want, n := utf8.DecodeRuneInString(name)
		if n == 0 || r != want {
			return false
		}
		body, name = body[size:], name[n:]
	}
	return name == ""
}

// EndsInHighSurrogate reports whether body ends in an escape \uD800..\uDBFF: the first half of a pair whose second half,
// if the provider was not cut there, opens the next delta (FIELD-REPORTS C6).
func EndsInHighSurrogate(body []byte) bool {
	at := len(body) - 6
	if at < 0 {
		return false
	}
	r, ok := hex4(body[at:])
	if !ok || r < 0xD800 || r > 0xDBFF {
		return false
	}
	slashes := 0
	for i := at; i >= 0 && body[i] == '\\'; i-- {
		slashes++
	}
	return slashes%2 == 1 // An even run means that the last backslash is itself escaped, and "uD83D" is text.
}

// Paired leaves out the first half of a surrogate pair at the end of body whose second half never came: alone it is no
// character.
func Paired(body []byte) []byte {
	if EndsInHighSurrogate(body) {
		return body[:len(body)-len(`\ud83d`)]
	}
	return body
}

// Blank reports whether body decodes to white space only, or to nothing.
func Blank(body []byte) bool { return len(bytes.TrimSpace(Unescape(nil, body))) == 0 }

// TrimRight cuts white space off the end of body and keeps the rest as it was spelled, aliasing it.
func TrimRight(body []byte) []byte {
	kept := bytes.TrimRightFunc(Unescape(nil, body), unicode.IsSpace)
	return body[:len(body)-len(CutBody(body, len(kept)))]
}

// decode reads the code point at the start of body and the number of body bytes it takes. A malformed escape, which a
// valid document cannot hold, gives U+FFFD for its backslash alone.
func decode(body []byte) (r rune, n int) {
	if body[0] != '\\' {
		return utf8.DecodeRune(body)
	}
	if r, ok := hex4(body); ok {
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if low, ok := hex4(body[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	if len(body) > 1 {
		if c, ok := shortEscape(body[1]); ok {
			return rune(c), 2
		}
	}
	return utf8.RuneError, 1
}

// shortEscape decodes the character behind a backslash in a two-character escape.
func shortEscape(c byte) (byte, bool) {
	switch c {
	case '"', '\\', '/':
		return c, true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}

// hex4 reads the escape \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
