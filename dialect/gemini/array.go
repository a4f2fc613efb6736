package gemini

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/sse"
)

// Without alt=sse the answer is one JSON array whose elements arrive one by one
// (WIRE 1.4). Unwrap turns its bytes into the event stream that the same request
// would have got with alt=sse, and Wrap turns that back; the machine in between
// knows event streams only. The bytes of an element survive both but for its line
// ends. A cut inside an element is a cut inside an event; the closing bracket is,
// like every end that is not a finishReason, worth nothing.

// Unwrap reads an array's bytes. The zero value is ready. It keeps no bytes: what
// bounds an event bounds an element.
type Unwrap struct {
	depth  int  // brackets open, the array's own included
	bare   bool // the body is no array: an error object on its own
	inside bool // an element is begun
	quoted bool // inside a string
	escape bool // behind a backslash
}

// Append appends the event bytes that p is worth to dst.
func (u *Unwrap) Append(dst, p []byte) []byte {
	for _, c := range p {
		switch {
		case !u.inside && (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ','):
			continue
		case !u.inside && u.depth == 0 && c == '[' && !u.bare:
			u.depth = 1
			continue
		case !u.inside && c == ']':
			u.depth = 0
			continue
		case !u.inside:
			u.inside, u.bare = true, u.bare || u.depth == 0
			dst = append(dst, "data: "...)
		}
		if c == '\r' {
			continue
		}
		if dst = append(dst, c); c == '\n' {
			dst = append(dst, "data: "...)
		}
		if u.step(c) {
			u.inside = false
			dst = append(dst, "\n\n"...)
		}
	}
	return dst
}

// step follows the nesting and reports the end of an element.
func (u *Unwrap) step(c byte) bool {
	switch {
	case u.escape:
		u.escape = false
	case u.quoted:
		u.escape = c == '\\'
		u.quoted = c != '"'
	case c == '"':
		u.quoted = true
	case c == '{' || c == '[':
		u.depth++
	case c == '}' || c == ']':
		u.depth--
		return u.depth <= u.top()
	}
	return false
}

// top is the depth at which elements stand.
func (u *Unwrap) top() int {
	if u.bare {
		return 0
	}
	return 1
}

// Wrap renders an event stream as an array. The zero value is ready.
type Wrap struct {
	scan  sse.Scanner
	begun bool // the opening bracket is out
	one   bool // so is an element
}

// Append appends the array bytes of p, event bytes, to dst. What is no element (a
// comment, a drip) becomes white space, which JSON allows between elements: it keeps
// the connection awake and nobody sees it.
func (w *Wrap) Append(dst, p []byte) []byte {
	if len(p) == 0 {
		return dst
	}
	if !w.begun {
		w.begun = true
		dst = append(dst, '[')
	}
	was := len(dst)
	w.scan.Push(p)
	for e, ok := w.scan.Next(); ok; e, ok = w.scan.Next() {
		data := bytes.TrimSpace(e.Data)
		if len(data) == 0 {
			continue
		}
		if w.one {
			dst = append(dst, ",\r\n"...)
		}
		w.one = true
		dst = append(append(dst, data...), '\n')
	}
	if len(dst) == was {
		dst = append(dst, '\n')
	}
	return dst
}

// Close appends the end of an array whose stream ended well. A stream that is
// aborted gets none, so that nobody takes it for whole.
func (w *Wrap) Close(dst []byte) []byte {
	if !w.begun {
		dst = append(dst, '[')
	}
	return append(dst, "]\n"...)
}
