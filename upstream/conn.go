package upstream

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// conn is one HTTP/1.1 connection. It has one owner at a time: the Open that took it, then the stream, then the pool.
type conn struct {
	// immutable
	nc   net.Conn // what is read and written
	raw  net.Conn // the transport below TLS, nc itself without: closing it never blocks and never sends a close_notify
	host *host

	sys syscall.RawConn // raw's; nil: it has none

	// methods of the connection as values, made once
	ending func()           // abort
	look   func(fd uintptr) // peek

	// owner only
	reused  bool
	ready   func(fd uintptr) bool // c.take; nil: the buffer is kept while waiting
	full    bool                  // the last read filled its buffer
	silent  bool                  // peek's
	rerr    error                 // take's
	buf     []byte                // pooled while the connection is in use; nil while it idles
	start   int                   // buf[start:end] was read and not yet consumed
	end     int
	expires time.Time // pool only: when an unused connection is closed
}

// newConn owns nc; raw is the transport below its TLS, nc itself without.
func newConn(h *host, nc, raw net.Conn) *conn {
	c := &conn{nc: nc, raw: raw, host: h}
	c.ending = c.abort
	if sc, ok := raw.(syscall.Conn); ok {
		c.sys, _ = sc.SyscallConn()
	}
	c.watch()
	c.lend()
	return c
}

// buffers and bigBuffers hold read buffers of the default size and of one for streams that flood, as pointers to arrays so that putting one
// back does not allocate. A buffer is put back only by the goroutine that reads from it: one that was aborted from elsewhere is left to
// the collector instead.
var (
	buffers    = sync.Pool{New: func() any { return new([defaultRead]byte) }}
	bigBuffers = sync.Pool{New: func() any { return new([largeRead]byte) }}
)

const (
	defaultRead = 4 << 10
	largeRead   = 16 << 10
)

func (c *conn) prepare(size int) {
	c.start, c.end = 0, 0
	switch size {
	case defaultRead:
		c.buf = buffers.Get().(*[defaultRead]byte)[:]
	case largeRead:
		c.buf = bigBuffers.Get().(*[largeRead]byte)[:]
	default:
		c.buf = make([]byte, size)
	}
}

// recycle gives the buffer away. Nobody may hold a slice of it.
func (c *conn) recycle() {
	switch len(c.buf) {
	case defaultRead:
		buffers.Put((*[defaultRead]byte)(c.buf))
	case largeRead:
		bigBuffers.Put((*[largeRead]byte)(c.buf))
	}
	c.buf = nil
}

// fill reads once behind what is unconsumed, growing the buffer up to limit. n > 0 with an error happens with TLS.
func (c *conn) fill(limit int) (n int, err error) {
	if c.start == c.end {
		c.start, c.end = 0, 0
	}
	if c.end == len(c.buf) {
		if c.end >= limit {
			return 0, errHeadSize
		}
		c.buf = append(c.buf, make([]byte, min(len(c.buf), limit-len(c.buf)))...)
	}
	n, err = c.nc.Read(c.buf[c.end:])
	c.end += n
	return n, err
}

func (c *conn) abort() { _ = c.raw.Close() }

// exchange is a request under way and its response, which live as long as each other.
type exchange struct {
	up  upload
	in  stream
	res Response
}

// roundtrip sends r and returns the response behind its final head. The caller has bound its context to c.abort.
func (c *conn) roundtrip(t *Target, r *Request) (*Response, *upload, *Error) {
	cfg := &c.host.client.cfg
	c.prepare(cfg.ReadBuffer)
	x := &exchange{}
	up := &x.up
	c.send(up, t, r)
	h, e := c.finalHead(cfg.MaxHeaderBytes, up)
	if e != nil {
		return nil, up, e
	}
	f, exclusive, err := framingOf(r.method(), &h)
	if err != nil {
		return nil, up, &Error{Op: OpHead, Safety: Partial, Kind: Protocol, Err: err}
	}
	s := &x.in
	s.c, s.frame, s.up = c, f, up
	s.exclusive, s.idle = exclusive || !h.persistent(), h.idleHint(cfg.IdleConnTimeout)
	if f.done() {
		s.finish()
	}
	res := &x.res
	*res = Response{Status: h.status, Proto: "HTTP/1.0", Reused: c.reused, closeDelimited: f.kind == framedClose, body: s}
	if h.minor == 1 {
		res.Proto = "HTTP/1.1"
	}
	res.Header = h.endToEnd()
	return res, up, nil
}

// finalHead reads heads until one is final. limit bounds them together.
func (c *conn) finalHead(limit int, up *upload) (head, *Error) {
	for {
		h, used, err := c.readHead(limit)
		if err != nil {
			return h, c.headError(err, up)
		}
		up.answered.Store(h.status >= 200)
		if h.status >= 200 {
			return h, nil
		}
		if h.status == 101 {
			return h, &Error{Op: OpHead, Safety: Partial, Kind: Protocol, Err: errSwitch}
		}
		limit -= used
	}
}

func (c *conn) readHead(limit int) (h head, used int, err error) {
	var rerr error
	for searched := 0; ; {
		for used == 0 && c.start < c.end && searched == 0 && (c.buf[c.start] == '\r' || c.buf[c.start] == '\n') {
			c.start++ // empty lines before the status line: RFC 9112, section 2.2
			limit--
		}
		p := c.buf[c.start:c.end]
		if n := headEnd(p, searched); n > 0 {
			if n > limit {
				return h, 0, errHeadSize
			}
			h, err = parseHead(string(p[:n]))
			c.start += n
			return h, n, err
		}
		if len(p) >= 7 && string(p[:7]) != "HTTP/1." {
			return h, 0, errStatusLine // not HTTP: do not wait for a line that may never end
		}
		if len(p) >= limit {
			return h, 0, errHeadSize
		}
		if rerr != nil {
			return h, 0, rerr
		}
		searched = len(p)
		_, rerr = c.fill(c.start + limit)
	}
}

// headError says what a failure before the final head means. A connection that was reused and dies before one byte of an answer is the
// keep-alive race (FIELD-REPORTS F5, F7): most likely the provider had closed it and never saw the request, but nothing proves that, so
// it is Sent and the caller decides; only a request of which no byte left is NotSent.
func (c *conn) headError(err error, up *upload) *Error {
	switch err {
	case errHeadSize:
		return &Error{Op: OpHead, Safety: Sent, Kind: TooLarge, Err: err}
	case errStatusLine, errHeaderLine:
		return &Error{Op: OpHead, Safety: Sent, Kind: Protocol, Err: err}
	}
	silent := c.start == c.end
	e := &Error{Op: OpHead, Safety: Sent, Kind: kindOf(err), Err: err}
	if werr, sent, source := up.failure(); werr != nil {
		e.Op, e.Err = OpWrite, werr
		switch {
		case source:
			e.Kind = Source
		case e.Kind == Truncated:
			e.Kind = kindOf(werr)
		}
		if sent == 0 {
			e.Safety = NotSent
		}
	}
	if c.reused && silent && (e.Kind == Reset || e.Kind == Truncated) {
		e.Kind = StaleConn
	}
	return e
}
