package jsonwalk

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// Escape appends plain as the body of a JSON string: quote, backslash and control characters escaped, invalid UTF-8 as
// \ufffd. The separators U+2028, U+2029 and U+0085 are escaped too, because some clients split an event stream at them
// (FIELD-REPORTS C7). The characters < > & stay as they are: nothing here is HTML.
func Escape(dst, plain []byte) []byte {
	from := 0 // start of the run that is copied as it is
	for i := 0; i < len(plain); {
		c := plain[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, plain[from:i]...)
			dst = escapeASCII(dst, c)
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRune(plain[i:])
		if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' || r == '\u0085' {
			dst = append(dst, plain[from:i]...)
			dst = append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
			from = i + n
		}
		i += n
	}
	return append(dst, plain[from:]...)
}

func escapeASCII(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
