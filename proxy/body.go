package proxy

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unbroken-llm/unbroken/upstream"
)

// source reads a request body from its client, with a limit on silence, for as
// long as the request lasts. A provider may still be taking the body when its
// answer is over; fasthttp reuses what is underneath as soon as the response is
// written, so a source is revoked first.
type source struct {
	// immutable
	r     io.Reader
	from  *caller
	stall time.Duration

	last atomic.Int64 // when a Read began, in Unix nanoseconds
	gone atomic.Bool

	mu    sync.Mutex // held while reading
	armed bool       // the connection has a deadline of ours
}

var errRevoked = errors.New("the request is over")

// newSource is what r reads of from, until it is revoked.
func newSource(r io.Reader, from *caller, stall time.Duration) *source {
	s := &source{r: r, from: from, stall: stall}
	from.body = s
	return s
}

func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone.Load() {
		return 0, errRevoked
	}
	s.last.Store(time.Now().UnixNano())
	return s.r.Read(p)
}

// arm is called before the connection is read, which a body that came with its head needs
// not; false: it is not to be. The deadline is set before the question, so that a revoke
// in between either is seen here or sets its own deadline after this one. mu is held.
func (s *source) arm() bool {
	s.armed = true
	_ = s.from.SetReadDeadline(time.Now().Add(s.stall))
	return !s.gone.Load()
}

// quiet is for how long nothing was asked of the source; a nil one is quiet for
// ever.
func (s *source) quiet() time.Duration {
	if s == nil {
		return math.MaxInt64
	}
	return time.Since(time.Unix(0, s.last.Load()))
}

// revoke ends a Read that is blocked, waits for it, and fails later ones.
func (s *source) revoke() {
	if s.gone.Swap(true) {
		return
	}
	if !s.mu.TryLock() {
		_ = s.from.SetReadDeadline(past)
		s.mu.Lock() // the reader is out
		s.armed = true
	}
	defer s.mu.Unlock()
	s.from.body = nil
	if s.armed {
		_ = s.from.SetReadDeadline(time.Time{})
	}
}

// errTooLarge: the body exceeds the limit.
var errTooLarge = errors.New("body is too large")

// slurp reads up to limit bytes. size is the declared length, negative if there
// is none. With errTooLarge, what was read comes along.
func slurp(r io.Reader, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, errTooLarge
	}
	// A declared length is believed in steps, since it costs the client nothing: eight times
	// what has come, so that of a large body little is copied again.
	room := min(size, 1<<20) + 1
	if size < 0 {
		room = 4 << 10
	}
	buf := make([]byte, 0, room)
	for {
		if len(buf) == cap(buf) {
			more := min(len(buf), 16<<20)
			if size >= int64(len(buf)) {
				more = int(min(size+1-int64(len(buf)), 7*int64(len(buf))))
			}
			buf = slices.Grow(buf, more)
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return buf, errTooLarge
		case err == io.EOF:
			if size >= 0 && int64(len(buf)) < size {
				return nil, io.ErrUnexpectedEOF
			}
			return buf, nil
		case err != nil:
			return nil, err
		}
	}
}

// decoded undoes a request's content coding for reading, up to limit bytes.
func decoded(body []byte, coding string, limit int64) ([]byte, error) {
	d, err := upstream.NewDecoder(coding)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	d.Push(body)
	var out bytes.Buffer
	for ending := false; ; {
		p, err := d.Next()
		out.Write(p)
		switch {
		case int64(out.Len()) > limit:
			return nil, errTooLarge
		case err == io.EOF:
			return out.Bytes(), nil
		case err != nil:
			return nil, err
		case len(p) == 0 && ending:
			return nil, io.ErrUnexpectedEOF
		case len(p) == 0:
			d.End()
			ending = true
		}
	}
}
