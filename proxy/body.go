package proxy

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
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
	conn  net.Conn
	stall time.Duration

	last atomic.Int64 // when a Read began, in Unix nanoseconds

	mu   sync.Mutex // held while reading
	gone chan struct{}
	once sync.Once
}

var errRevoked = errors.New("the request is over")

func newSource(r io.Reader, conn net.Conn, stall time.Duration) *source {
	return &source{r: r, conn: conn, stall: stall, gone: make(chan struct{})}
}

func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The deadline is set before the question, so that a revoke in between
	// either is seen here or sets its own deadline after this one.
	now := time.Now()
	s.last.Store(now.UnixNano())
	_ = s.conn.SetReadDeadline(now.Add(s.stall))
	select {
	case <-s.gone:
		return 0, errRevoked
	default:
	}
	return s.r.Read(p)
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
	s.once.Do(func() {
		close(s.gone)
		_ = s.conn.SetReadDeadline(past)
		s.mu.Lock() // the reader is out
		defer s.mu.Unlock()
		_ = s.conn.SetReadDeadline(time.Time{})
	})
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
