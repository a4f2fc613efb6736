package sse

import "bytes"

// Event is one unit of a stream. Its slices alias the scanner's memory or the pushed slice and are valid until the next
// Push. Unless several data lines had to be joined, Data is a two-index slice of Raw, so that jsonwalk.Offset finds the
// place in Raw of anything cut from Data; they share memory, so append to neither.
type Event struct {
	Name []byte // value of the last event field; nil when there was none
	Data []byte // data lines joined by LF; nil when there was no data field, empty but not nil for an empty one
	Raw  []byte // the exact bytes of the unit, its line ends included
}

// Comment reports whether the unit says nothing to an application: comment lines, blank lines, id or retry alone. Units
// of unknown fields count as such too; see Stray.
func (e Event) Comment() bool { return e.Name == nil && e.Data == nil }

// Stray returns Raw when the unit is a Comment in which some line is neither a comment nor one of the four fields, else
// nil. The standard ignores such lines, but some providers report errors that way: Gemini appends bare pretty-printed
// JSON to the stream, older llama.cpp builds send an "error: {...}" line (WIRE 1.4, 1.1).
func (e Event) Stray() []byte {
	if !e.Comment() {
		return nil
	}
	rest := bytes.TrimPrefix(e.Raw, bom)
	for len(rest) > 0 {
		end := bytes.IndexAny(rest, "\r\n")
		if end < 0 {
			end = len(rest)
		}
		if line := rest[:end]; len(line) > 0 && line[0] != ':' && !known(line) {
			return e.Raw
		}
		rest = rest[min(end+1, len(rest)):]
	}
	return nil
}

func known(line []byte) bool {
	name, _, _ := bytes.Cut(line, []byte(":"))
	switch string(name) {
	case "data", "event", "id", "retry":
		return true
	}
	return false
}

// Reframe appends Raw to dst with the line ends it lacks, so that what Scanner.Rest found can be forwarded as a whole
// unit (FIELD-REPORTS A5). A unit that is whole already is appended unchanged.
func (e Event) Reframe(dst []byte) []byte {
	dst = append(dst, e.Raw...)
	line := bytes.TrimPrefix(bytes.TrimPrefix(e.Raw, []byte("\n")), bom)
	if len(line) == 0 {
		return dst
	}
	body, ended := cutLineEnd(e.Raw)
	if ended && e.Raw[len(e.Raw)-1] == '\r' && bytes.Contains(e.Raw, []byte("\r\n")) {
		dst = append(dst, '\n') // the second half of a CRLF that never came
	}
	if line[0] == ':' { // A comment between events is one line and takes no blank line (FIELD-REPORTS B5).
		if !ended {
			dst = append(dst, '\n')
		}
		return dst
	}
	if !ended {
		return append(dst, "\n\n"...)
	}
	if _, blank := cutLineEnd(body); blank || len(body) == 0 {
		return dst
	}
	if dst[len(dst)-1] == '\r' {
		dst = append(dst, '\n') // else the LF below would be read as part of this line end
	}
	return append(dst, '\n')
}

// cutLineEnd removes one line end from the end of b.
func cutLineEnd(b []byte) ([]byte, bool) {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		return bytes.TrimSuffix(b[:n-1], []byte("\r")), true
	} else if n > 0 && b[n-1] == '\r' {
		return b[:n-1], true
	}
	return b, false
}
