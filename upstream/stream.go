package upstream

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// stream is an HTTP/1.1 response body.
type stream struct {
	// immutable
	c         *conn
	up        *upload
	exclusive bool          // the connection ends with this response
	idle      time.Duration // how long it may idle afterwards

	// reader only
	frame framing
	end   error // the last word, once it is known; bytes in hand go out first
	rerr  error // a read error that came with bytes

	// shared
	woken    atomic.Bool // a wake nobody has seen; written under mu
	complete atomic.Bool // the framing proved the end; set once, by the reader, after its last touch of c.buf
	mu       sync.Mutex
	state    streamState // guarded by mu
}

type streamState uint8

const (
	streamLive     streamState = iota
	streamReleased             // the connection belongs to the pool, or is closed for good
	streamAborted              // closed before the end
)

// past is a deadline that is always over.
var past = time.Unix(1, 0)

func (s *stream) next() ([]byte, error) {
	if s.woken.Load() {
		s.takeWake()
		return nil, ErrWoken
	}
	for s.end == nil {
		if s.c.start == s.c.end {
			if err := s.fill(); err == ErrWoken {
				return nil, err
			}
			continue
		}
		raw := s.c.buf[s.c.start:s.c.end]
		p, n, err := s.frame.take(raw)
		s.c.start += n
		switch {
		case err != nil:
			s.end = &Error{Op: OpBody, Safety: Partial, Kind: Protocol, Err: err}
		case s.frame.done():
			s.finish()
		}
		if len(p) > 0 {
			return p, nil
		}
	}
	s.release()
	return nil, s.end
}

// fill reads once. It sets end when there is nothing more to come.
func (s *stream) fill() error {
	if s.frame.done() {
		s.finish()
		return nil
	}
	if s.rerr == nil {
		var n int
		if n, s.rerr = s.c.await(); n > 0 {
			if s.rerr != nil && errors.Is(s.rerr, os.ErrDeadlineExceeded) {
				s.rerr = nil // the wake is told by its flag
			}
			return nil // any other error that came along is for the next call
		}
	}
	err := s.rerr
	switch {
	case err == nil:
	case err == io.EOF && s.frame.ended() == io.EOF:
		s.finish()
	case err == io.EOF:
		s.end = &Error{Op: OpBody, Safety: Partial, Kind: Truncated, Err: io.ErrUnexpectedEOF}
	case errors.Is(err, os.ErrDeadlineExceeded) && s.takeWake():
		s.rerr = nil
		return ErrWoken
	default:
		s.end = &Error{Op: OpBody, Safety: Partial, Kind: kindOf(err), Err: err}
	}
	return nil
}

// finish notes the proven end. The reader does not touch the connection again.
func (s *stream) finish() {
	s.end = io.EOF
	s.complete.Store(true)
}

// wake sets a deadline that is over, which a blocked read returns from at once and a later one does not start with. Flag and deadline
// change together under mu, so there is never one without the other.
func (s *stream) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.woken.Load() || s.state == streamAborted {
		return
	}
	s.woken.Store(true)
	if s.state == streamLive {
		_ = s.c.nc.SetReadDeadline(past)
	}
}

func (s *stream) takeWake() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.woken.Load() {
		return false
	}
	s.woken.Store(false)
	if s.state == streamLive {
		_ = s.c.nc.SetReadDeadline(time.Time{})
	}
	return true
}

// release ends a live stream from the reader's side, where no slice of the buffer is held any more.
func (s *stream) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == streamLive {
		s.state = streamReleased
		s.c.recycle()
		s.giveBack()
	}
}

// giveBack decides what becomes of the connection. mu is held.
func (s *stream) giveBack() {
	if s.woken.Load() {
		_ = s.c.nc.SetReadDeadline(time.Time{})
	}
	// Bytes behind the end belong to no request of ours: such a connection is out of step.
	if !s.complete.Load() || s.exclusive || s.c.start != s.c.end || s.rerr != nil || s.idle <= 0 || !s.up.complete() {
		s.c.abort()
		return
	}
	s.c.host.putIdle(s.c, s.idle)
}

func (s *stream) close() error {
	s.mu.Lock()
	if s.state == streamLive {
		if s.complete.Load() {
			s.state = streamReleased
			s.c.buf = nil // the reader may still hold its last slice
			s.giveBack()
		} else {
			s.state = streamAborted
			s.c.abort()
		}
	}
	s.mu.Unlock()
	s.up.wait()
	return nil
}
