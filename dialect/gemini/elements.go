package gemini

import (
	"strings"

	"github.com/unbroken-llm/unbroken/sse"
)

// elements finds the elements of a streamed array. Raw is an element with what
// stands in front of it, the bracket or comma and white space; the closing bracket is a
// unit of its own. An element is handed out with its last byte. What is no JSON is cut
// where an element could begin; the decoder says what it is.
type elements struct {
	limit int

	in   []byte // in[unit:] is not handed out; the pushed slice, or buf
	buf  []byte
	kept bool

	unit, at int  // the current unit's first byte; the next byte to look at
	from     int  // the element's first byte, counted from unit; -1: it is not begun
	begun    bool // the opening bracket was seen

	depth          int
	quoted, escape bool
	err            error
}

const (
	bom   = "\xef\xbb\xbf"
	blank = " \t\r\n"
)

// idleBuffer is the most memory in bytes that is kept between elements.
const idleBuffer = 64 << 10

// Push implements dialect.Scanner.
func (s *elements) Push(p []byte) {
	switch {
	case s.err != nil || len(p) == 0:
	case s.unit == len(s.in):
		if cap(s.buf) > idleBuffer {
			s.buf = nil
		}
		s.in, s.kept, s.unit, s.at, s.from = p, false, 0, 0, -1
	default:
		s.keep()
		s.in = append(s.in, p...)
		s.buf = s.in
	}
}

// keep moves what is not handed out to the scanner's own memory.
func (s *elements) keep() {
	if s.kept && s.unit == 0 {
		return
	}
	s.buf = append(s.buf[:0], s.in[s.unit:]...)
	s.in, s.kept = s.buf, true
	s.at -= s.unit
	s.unit = 0
}

// Next implements dialect.Scanner.
func (s *elements) Next() (sse.Event, bool) {
	for s.err == nil && s.at < len(s.in) {
		c := s.in[s.at]
		switch {
		case s.from >= 0:
			if s.step(c) {
				return s.cut(s.at)
			}
			continue
		case isBlank(c), !s.begun && strings.IndexByte(bom, c) >= 0:
		case c == ',', c == '[' && !s.begun:
			s.begun = true
		case c == ']':
			s.from = s.at - s.unit
			return s.cut(s.at + len(closing))
		default:
			s.from = s.at - s.unit
			continue
		}
		s.at++
	}
	return s.wait()
}

// step looks at the next byte of an element, c, and reports whether the element ends
// in front of s.at.
func (s *elements) step(c byte) (whole bool) {
	switch {
	case s.escape:
		s.escape = false
	case s.quoted:
		s.escape = c == '\\'
		s.quoted = c != '"'
		whole = !s.quoted && s.depth == 0
	case c == '"':
		s.quoted = true
	case c == '{', c == '[':
		s.depth++
	case s.depth > 0 && (c == '}' || c == ']'):
		s.depth--
		whole = s.depth == 0
	case s.depth == 0 && (c == ',' || c == ']' || isBlank(c)):
		return true // behind a word or number
	}
	s.at++
	return whole
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// cut hands out the unit that ends at next. Behind the closing bracket the white
// space that is in hand belongs to it.
func (s *elements) cut(next int) (sse.Event, bool) {
	to := next
	if string(s.in[s.unit+s.from:to]) == closing {
		for next < len(s.in) && isBlank(s.in[next]) {
			next++
		}
	}
	e := sse.Event{Data: s.in[s.unit+s.from : to], Raw: s.in[s.unit:next]}
	if s.limit > 0 && len(e.Raw) > s.limit {
		return s.fail()
	}
	s.unit, s.at, s.from = next, next, -1
	s.depth, s.quoted, s.escape = 0, false, false
	return e, true
}

// wait ends a round: what is left is copied, since the caller's slice is not ours any
// longer. In our own it stays where it is, since the elements in front of it are valid
// until the next Push.
func (s *elements) wait() (sse.Event, bool) {
	n := len(s.in) - s.unit
	switch {
	case s.err != nil:
	case s.limit > 0 && n > s.limit:
		return s.fail()
	case s.kept:
	case n > 0:
		s.keep()
	default:
		s.in, s.unit, s.at = nil, 0, 0
	}
	return sse.Event{}, false
}

func (s *elements) fail() (sse.Event, bool) {
	*s = elements{limit: s.limit, err: sse.ErrTooLong}
	return sse.Event{}, false
}

// Rest implements dialect.Scanner. What is left is half an element, or white space.
func (s *elements) Rest() (sse.Event, bool) {
	return sse.Event{Raw: s.in[s.unit:]}, s.unit < len(s.in)
}

// Err implements dialect.Scanner.
func (s *elements) Err() error { return s.err }
