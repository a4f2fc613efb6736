package faultinject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// frame builds one SSE event around a payload.
func frame(v Variant, name, payload string) []byte {
	eol, space := "\n", " "
	if v.CRLF {
		eol = "\r\n"
	}
	if v.NoSpace {
		space = ""
	}
	var b strings.Builder
	if name != "" {
		b.WriteString("event:" + space + name + eol)
	}
	for _, line := range dataLines(v, payload) {
		b.WriteString("data:" + space + line + eol)
	}
	b.WriteString(eol)
	return []byte(b.String())
}

// dataLines splits a JSON payload after its first two top-level commas, which
// is legal because the lines are joined by a newline and JSON ignores it there.
func dataLines(v Variant, payload string) []string {
	if !v.MultiData || !strings.HasPrefix(payload, "{") {
		return []string{payload}
	}
	var lines []string
	depth, quoted, start := 0, false, 0
	for i := 0; i < len(payload) && len(lines) < 2; i++ {
		switch c := payload[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth == 1:
			lines = append(lines, payload[start:i+1])
			start = i + 1
		}
	}
	return append(lines, payload[start:])
}

// finishFrames applies what concerns the stream as a whole.
func finishFrames(v Variant, events []Event) []Event {
	if v.Comments {
		comment := Event{KindPing, []byte(": PROCESSING\n\n")}
		if v.CRLF {
			comment.Raw = []byte(": PROCESSING\r\n\r\n")
		}
		var all []Event
		for _, e := range events {
			all = append(all, comment, e)
		}
		events = all
	}
	if v.BOM && len(events) > 0 {
		events[0].Raw = append([]byte("\xef\xbb\xbf"), events[0].Raw...)
	}
	return events
}

// quote renders s as a JSON string the way providers do: no HTML escaping.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("BUG: a string has no JSON form: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// pieces returns the deltas of text as quoted JSON strings.
func pieces(text string, o Options) []string {
	var out []string
	for _, t := range tokens(text, o.Seed) {
		switch {
		case o.Variant.SplitPairs:
			out = append(out, splitPairs(t)...)
		case o.Variant.ASCII:
			out = append(out, asciiOnly(quote(t)))
		default:
			out = append(out, quote(t))
		}
	}
	return out
}

// asciiOnly escapes everything outside ASCII in a quoted JSON string.
func asciiOnly(quoted string) string {
	var b strings.Builder
	for _, r := range quoted {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	return b.String()
}

// splitPairs renders a token as one or more quoted strings, each astral code
// point divided between two of them: neither half is valid text alone.
func splitPairs(token string) []string {
	var out []string
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range token {
		if r < 0x10000 {
			q := asciiOnly(quote(string(r)))
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		u := utf16.Encode([]rune{r})
		fmt.Fprintf(&b, `\u%04x"`, u[0])
		out = append(out, b.String())
		b.Reset()
		fmt.Fprintf(&b, `"\u%04x`, u[1])
	}
	b.WriteByte('"')
	return append(out, b.String())
}
