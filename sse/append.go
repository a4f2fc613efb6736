package sse

import "bytes"

// Append appends an event to dst in LF framing. An empty name writes no event field and nil data no data field, the
// mirror of Event. Data is split into one field a line; CR and CRLF in it become LF, since no framing can carry them. A
// name that holds a line break would be a second field: that is a mistake of the program and panics.
func Append(dst []byte, name string, data []byte) []byte {
	if name != "" {
		oneLine(name)
		dst = append(dst, "event: "...)
		dst = append(dst, name...)
		dst = append(dst, '\n')
	}
	for more := data != nil; more; {
		var line []byte
		line, data, more = cutLine(data)
		dst = append(dst, "data: "...)
		dst = append(dst, line...)
		dst = append(dst, '\n')
	}
	return append(dst, '\n')
}

// AppendComment appends the comment line ":text\n" to dst: one line and no blank line behind it, because a blank line
// makes some decoders dispatch an empty event (FIELD-REPORTS B5). It belongs between events only. A text that holds a
// line break panics.
func AppendComment(dst []byte, text string) []byte {
	oneLine(text)
	dst = append(dst, ':')
	dst = append(dst, text...)
	return append(dst, '\n')
}

func oneLine(s string) {
	for i := range len(s) {
		if s[i] == '\n' || s[i] == '\r' {
			panic("BUG: sse: line break in an event name or comment")
		}
	}
}

// cutLine cuts b behind its first line end; more is false when there was none.
func cutLine(b []byte) (line, rest []byte, more bool) {
	end := bytes.IndexByte(b, '\n')
	head := b
	if end >= 0 {
		head = b[:end]
	}
	if cr := bytes.IndexByte(head, '\r'); cr >= 0 && cr+1 != end {
		return b[:cr], b[cr+1:], true
	} else if cr >= 0 {
		return b[:cr], b[end+1:], true
	}
	if end < 0 {
		return b, nil, false
	}
	return head, b[end+1:], true
}
