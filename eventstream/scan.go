package eventstream

import (
	"slices"

	"github.com/unbroken-llm/unbroken/sse"
)

// DefaultLimit is the size in bytes of the longest frame a Scanner accepts unless told otherwise (DESIGN §13).
const DefaultLimit = sse.DefaultLimit

// idleBuffer is the most memory in bytes that a scanner keeps between frames.
const idleBuffer = 64 << 10

// Scanner finds the frames in a stream that arrives in pieces, split anywhere. The zero value is ready:
//
//	s.Push(p)
//	for e, ok := s.Next(); ok; e, ok = s.Next() { ... }
//
// An event's Name is the frame's, its Data the payload (nil when empty), its Raw the frame; see [Read] for what else it
// says. While whole frames arrive they are cut from the pushed slice itself; only an unfinished rest is copied. The work
// is linear in the input however it is split.
type Scanner struct {
	Limit int // bytes of one frame; 0 means DefaultLimit. Set before the first Push.

	in   []byte // in[at:] has not been handed out. It is the pushed slice, or buf when a rest had to be kept (kept).
	buf  []byte
	kept bool
	at   int
	need int // bytes of the frame at at, 0 while not known
	err  error
}

// Push hands the next bytes to the scanner, which reads them in Next. It invalidates the events handed out before. The
// caller may use p again as soon as Next has returned false. After an error Push does nothing.
func (s *Scanner) Push(p []byte) {
	if s.err != nil || len(p) == 0 {
		return
	}
	if s.at == len(s.in) {
		if cap(s.buf) > idleBuffer {
			s.buf = nil // A huge frame has just passed; do not carry its buffer through the rest of the stream.
		}
		s.in, s.kept, s.at = p, false, 0
		return
	}
	s.keep()
	if s.need > cap(s.in) {
		// The length is known, but only a peer's word: grow with what really comes.
		s.in = slices.Grow(s.in, min(s.need-len(s.in), max(len(p), len(s.in))))
	}
	s.in = append(s.in, p...)
	s.buf = s.in
}

// keep moves the unread rest to the start of the scanner's own buffer.
func (s *Scanner) keep() {
	if s.kept && s.at == 0 {
		return
	}
	rest := s.in[s.at:]
	if cap(s.buf) > idleBuffer && len(rest) < idleBuffer/2 {
		s.buf = nil
	}
	s.buf = append(s.buf[:0], rest...)
	s.in, s.kept, s.at = s.buf, true, 0
}

// Next returns the next complete frame of what was pushed; false when more bytes are needed, or after an error.
func (s *Scanner) Next() (sse.Event, bool) {
	rest := s.in[s.at:]
	if s.err != nil || len(rest) == 0 {
		return sse.Event{}, false
	}
	if s.need > len(rest) {
		return s.wait()
	}
	f, size, err := Read(rest, s.Limit)
	switch s.need = size; {
	case err != nil:
		s.err = err
		return sse.Event{}, false
	case size == 0 || size > len(rest):
		return s.wait()
	}
	s.at, s.need = s.at+size, 0
	e := sse.Event{Name: f.Name, Data: f.Payload, Raw: f.Raw}
	if len(e.Data) == 0 {
		e.Data = nil
	}
	return e, true
}

// wait keeps the rest: the caller may use what it pushed again. A rest that is in the buffer already stays where it is,
// since the frames in front of it are still valid.
func (s *Scanner) wait() (sse.Event, bool) {
	if !s.kept {
		s.keep()
	}
	return sse.Event{}, false
}

// Unfinished is the number of bytes in hand that no complete frame has claimed.
func (s *Scanner) Unfinished() int { return len(s.in) - s.at }

// Rest is the event of a stream that ended without its last line end. Half a frame says nothing: there is none here.
func (s *Scanner) Rest() (sse.Event, bool) { return sse.Event{}, false }

// Err is why the scanner stopped, nil while it goes on. It is final.
func (s *Scanner) Err() error { return s.err }

// Reset makes the scanner ready for another stream. It keeps its buffer and its limit.
func (s *Scanner) Reset() {
	buf := s.buf
	if cap(buf) > idleBuffer {
		buf = nil
	}
	*s = Scanner{Limit: s.Limit, buf: buf}
}
