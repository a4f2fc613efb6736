package sse

import (
	"bytes"
	"errors"
	"slices"
)

// ErrTooLong is the error of a scanner that met a unit longer than its limit. It is final.
var ErrTooLong = errors.New("sse: event exceeds the size limit")

// DefaultLimit is the size in bytes of the longest unit a Scanner accepts unless told otherwise (DESIGN §13).
const DefaultLimit = 64 << 20

// idleBuffer is the most memory in bytes that a scanner keeps between events.
const idleBuffer = 64 << 10

var bom = []byte("\xef\xbb\xbf")

// Scanner finds the units in a stream that arrives in pieces, split anywhere. The zero value is ready:
//
//	s.Push(p)
//	for e, ok := s.Next(); ok; e, ok = s.Next() { ... }
//
// While whole units arrive they are cut from the pushed slice itself; only an unfinished rest is copied. The work is
// linear in the input however it is split.
type Scanner struct {
	// What the short way (whole) touches comes first, in one cache line.

	// in[unit:] is what has not been handed out. It is the pushed slice, or buf when a rest had to be kept (kept).
	in   []byte
	unit int // start of the current unit in in
	line int // start of the current line in in; everything before has been read
	lf   int // first LF at or after line; len(in) when there is none
	cr   int // first CR at or after line; len(in) when there is none

	kept   bool
	begun  bool    // the BOM question is settled
	skipLF bool    // the last unit ended in a CR at the very end of a push: an LF here belongs to it
	ends   lineEnd // what a CR has meant so far
	open   bool    // the current unit holds a line, so the next blank line ends it

	Limit int // bytes of one unit; 0 means DefaultLimit. Set before the first Push.
	err   error
	buf   []byte
	join  []byte // joined data of units with several data lines, until the next Push

	// The current unit so far. Positions count from unit, so that moving the rest does not disturb them.
	name      span
	data      span // the last data line
	dataLines int
	dataFrom  int // start of the first data line

	dropped int // bytes of the unit that exceeded Limit
}

// span is a part of the current unit; set is false when there is no such part (as opposed to an empty one).
type span struct {
	from, to int
	set      bool
}

type lineEnd uint8

const (
	endUnknown lineEnd = iota // no CR seen yet
	endCR                     // lines have ended in a lone CR, and none in CRLF
	endCRLF                   // at least one line has ended in CRLF
)

// Push hands the next bytes to the scanner, which reads them in Next. It invalidates the events handed out before. The
// caller may use p again as soon as Next has returned false. After an error Push does nothing.
func (s *Scanner) Push(p []byte) {
	if s.err != nil || len(p) == 0 {
		return
	}
	if cap(s.join) > idleBuffer {
		s.join = nil
	}
	s.join = s.join[:0]
	if s.unit == len(s.in) {
		if cap(s.buf) > idleBuffer {
			s.buf = nil
		}
		s.in, s.kept, s.unit, s.line = p, false, 0, 0
		s.lf, s.cr = index(p, 0, '\n'), index(p, 0, '\r')
		return
	}
	s.keep()
	had := len(s.in)
	if had > idleBuffer && had+len(p) > cap(s.in) {
		// Doubling, where append would grow by a quarter and copy a huge event five times; but not past the limit.
		s.in = slices.Grow(s.in, max(len(p), min(had, s.limit()-had)))
	}
	s.in = append(s.in, p...)
	s.buf = s.in
	if s.lf == had {
		s.lf = index(s.in, had, '\n')
	}
	if s.cr == had {
		s.cr = index(s.in, had, '\r')
	}
}

// keep moves the unread rest to the start of the scanner's own buffer.
func (s *Scanner) keep() {
	if s.kept && s.unit == 0 {
		return
	}
	rest := s.in[s.unit:]
	if cap(s.buf) > idleBuffer && len(rest) < idleBuffer/2 {
		s.buf = nil // A huge unit has just passed; do not carry its buffer through the rest of the stream.
	}
	s.buf = append(s.buf[:0], rest...)
	s.in, s.kept = s.buf, true
	s.line -= s.unit
	s.lf -= s.unit
	s.cr -= s.unit
	s.unit = 0
}

// Next returns the next complete unit of what was pushed; false when more bytes are needed, or after an error.
func (s *Scanner) Next() (Event, bool) {
	if s.begun && !s.skipLF && s.line == s.unit && s.cr == len(s.in) {
		if e, ok := s.whole(); ok {
			return e, true
		}
	}
	if !s.begin() {
		return s.wait()
	}
	for {
		end := min(s.lf, s.cr)
		if end == len(s.in) {
			return s.wait()
		}
		next := end + 1
		lone := false // a CR with nothing known behind it
		if end == s.cr {
			if next < len(s.in) {
				if s.in[next] == '\n' {
					next++
				}
			} else {
				lone = true
			}
		}
		line := s.in[s.line:end]
		single := !s.open && (len(line) == 0 || line[0] == ':')
		ends := single || len(line) == 0
		// Whether an LF follows is unknown. It matters only when the unit ends here: then waiting would delay a stream
		// of lone CRs for ever, and not waiting would split a CRLF. The stream's own habit decides.
		if lone && (!ends || s.ends != endCR) {
			return s.wait()
		}
		if !ends {
			s.field(line)
		}
		s.advance(end, next, lone)
		if ends {
			return s.dispatch(next, single)
		}
	}
}

// begin settles what precedes the first line of a unit: a BOM, or the LF of a CRLF whose CR ended the last unit.
func (s *Scanner) begin() bool {
	if s.begun && !s.skipLF || s.line != s.unit || s.line == len(s.in) || s.err != nil {
		return s.err == nil
	}
	if !s.begun {
		if rest := s.in; len(rest) < len(bom) && bytes.HasPrefix(bom, rest) {
			return false
		} else if bytes.HasPrefix(rest, bom) {
			s.line = len(bom)
		}
		s.begun = true
	}
	if s.skipLF {
		s.skipLF = false
		if s.in[s.line] == '\n' {
			s.advance(s.line, s.line+1, false)
			s.ends = endCRLF
		}
	}
	return true
}

// advance moves behind a line that ended at end and whose successor starts at next.
func (s *Scanner) advance(end, next int, lone bool) {
	s.line = next
	s.skipLF = lone
	if next-end == 2 {
		s.ends = endCRLF
	} else if s.ends == endUnknown && s.in[end] == '\r' {
		s.ends = endCR
	}
	if s.lf < next {
		s.lf = index(s.in, next, '\n')
	}
	if s.cr < next {
		s.cr = index(s.in, next, '\r')
	}
}

// field reads one line that is not blank. A field is its name, then a colon and at most one space, then its value; a
// line without a colon is a field without a value.
func (s *Scanner) field(line []byte) {
	s.open = true
	switch line[0] {
	case 'd':
		if from, ok := value(line, "data"); ok {
			at := s.line - s.unit
			if s.dataLines++; s.dataLines == 1 {
				s.dataFrom = at
			}
			s.data = span{at + from, at + len(line), true}
		}
	case 'e':
		if from, ok := value(line, "event"); ok {
			at := s.line - s.unit
			s.name = span{at + from, at + len(line), true}
		}
	}
}

// value returns where in line the value of the named field starts.
func value(line []byte, name string) (from int, ok bool) {
	n := len(name)
	switch {
	case len(line) < n || string(line[:n]) != name:
		return 0, false
	case len(line) == n:
		return n, true
	case line[n] != ':':
		return 0, false
	case len(line) > n+1 && line[n+1] == ' ':
		return n + 2, true
	}
	return n + 1, true
}

// dispatch hands out the unit that ends at next.
func (s *Scanner) dispatch(next int, single bool) (Event, bool) {
	raw := s.in[s.unit:next]
	if len(raw) > s.limit() {
		return s.fail(len(s.in) - s.unit)
	}
	e := Event{Raw: raw}
	if !single {
		e = s.event(raw)
		s.open, s.name, s.data, s.dataLines = false, span{}, span{}, 0
	}
	s.unit = next
	return e, true
}

// event builds the event of the current unit, whose lines have been read.
func (s *Scanner) event(raw []byte) Event {
	e := Event{Raw: raw}
	if s.name.set {
		e.Name = raw[s.name.from:s.name.to]
	}
	switch {
	case s.dataLines == 1:
		e.Data = raw[s.data.from:s.data.to]
	case s.dataLines > 1:
		e.Data = s.joined(raw)
	}
	return e
}

// joined reads the unit again to join its data lines: rare enough to keep the common path free of copying.
func (s *Scanner) joined(raw []byte) []byte {
	start := len(s.join)
	lines := raw[s.dataFrom:]
	for first, more := true, true; more; {
		var line []byte
		line, lines, more = cutLine(lines)
		if from, ok := value(line, "data"); ok {
			if !first {
				s.join = append(s.join, '\n')
			}
			first = false
			s.join = append(s.join, line[from:]...)
		}
	}
	return s.join[start:len(s.join):len(s.join)] // three indices: the next event's data is appended behind it
}

// wait ends a round: what is left is copied, since the caller's slice is not ours any longer.
func (s *Scanner) wait() (Event, bool) {
	if s.err != nil {
		return Event{}, false
	}
	if n := len(s.in) - s.unit; n > s.limit() {
		return s.fail(n)
	} else if n > 0 && !s.kept {
		s.keep()
	} else if n == 0 && !s.kept {
		s.in, s.unit, s.line, s.lf, s.cr = nil, 0, 0, 0, 0
	}
	return Event{}, false
}

func (s *Scanner) limit() int {
	if s.Limit > 0 {
		return s.Limit
	}
	return DefaultLimit
}

// fail gives everything back; the n bytes in hand are only counted from here on.
func (s *Scanner) fail(n int) (Event, bool) {
	*s = Scanner{Limit: s.Limit, dropped: n, err: ErrTooLong}
	return Event{}, false
}

// Err returns ErrTooLong once a unit exceeded the limit, else nil.
func (s *Scanner) Err() error { return s.err }

// Unfinished is the number of pushed bytes that belong to no unit handed out: after Next returned false, the bytes of a
// half unit in hand. At the end of input anything but 0 means that the stream was cut, unless Rest says otherwise.
func (s *Scanner) Unfinished() int { return len(s.in) - s.unit + s.dropped }

// Rest reads the unfinished bytes at the end of input as if their line end and blank line had come; false when there are
// none. The standard would discard them, but a last event without its blank line is common and an event cut in half is
// too (FIELD-REPORTS A5, A6): the caller tells them apart by whether Data is whole, and forwards the former with Reframe.
// Call it after Next returned false. It consumes nothing.
func (s *Scanner) Rest() (Event, bool) {
	if s.unit >= len(s.in) {
		return Event{}, false
	}
	end := *s // The last line is read on a copy, so that Rest changes nothing.
	raw := s.in[s.unit:]
	if line, _ := cutLineEnd(s.in[s.line:]); len(line) > 0 && (s.open || line[0] != ':') {
		end.field(line)
	}
	return end.event(raw), true
}

// Reset makes the scanner ready for a new stream, keeping Limit and a buffer of ordinary size.
func (s *Scanner) Reset() {
	buf, join := s.buf, s.join
	if cap(buf) > idleBuffer {
		buf = nil
	}
	if cap(join) > idleBuffer {
		join = nil
	}
	*s = Scanner{Limit: s.Limit, buf: buf, join: join}
}

// index returns the position of the first c in b at or after from, or len(b).
func index(b []byte, from int, c byte) int {
	if i := bytes.IndexByte(b[from:], c); i >= 0 {
		return from + i
	}
	return len(b)
}
