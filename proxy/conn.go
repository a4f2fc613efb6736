package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// caller is the connection of a client while fasthttp serves it. A response that streams
// takes the connection away, and gives it back as a new caller when it is over and the
// next request begins. In between fasthttp holds nothing for it: a read buffer has room
// for the largest request head, and would lie idle for all of a stream.
type caller struct {
	net.Conn

	// of whoever reads, one at a time
	early []byte // was read already
	dry   bool   // nothing else is to be read

	// set by take, one after the other
	lost func()    // runs if fasthttp drops the connection before it is taken
	then io.Closer // closed in the connection's place, once it is
}

// errDry ends the reading of what is in hand.
var errDry = errors.New("nothing more is in hand")

func (c *caller) Read(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	if c.dry {
		return 0, errDry
	}
	return c.Conn.Read(p)
}

// Close closes the connection, unless it was taken.
func (c *caller) Close() error {
	if then := c.then; then != nil {
		c.then = nil
		return then.Close()
	}
	if lost := c.lost; lost != nil {
		c.lost = nil
		lost()
	}
	return c.Conn.Close()
}

// NetConn is what is below TLS.
func (c *caller) NetConn() net.Conn {
	if t, ok := c.Conn.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c.Conn
}

// secure is a client whose handshake fasthttp sees to.
type secure struct {
	*caller
	tls *tls.Conn
}

func (s secure) Handshake() error                     { return s.tls.Handshake() }
func (s secure) ConnectionState() tls.ConnectionState { return s.tls.ConnectionState() }

// conn is c as fasthttp is to see it.
func (c *caller) conn() net.Conn {
	if t, ok := c.Conn.(*tls.Conn); ok {
		return secure{c, t}
	}
	return c
}

// callerOf is what is behind a conn.
func callerOf(c net.Conn) *caller {
	if s, ok := c.(secure); ok {
		return s.caller
	}
	return c.(*caller)
}

// callers are the connections that a listener accepts.
type callers struct{ net.Listener }

func (l callers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return (&caller{Conn: c}).conn(), nil
}

// take has fasthttp let go of the connection of ctx behind its handler, without a
// response; st goes on with it. What came already of the next request is kept. The
// request's own body must have been read.
func take(ctx *fasthttp.RequestCtx, st *stream) {
	c := callerOf(ctx.Conn())
	c.lost = st.drop
	st.conn = c.Conn
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(rest net.Conn) {
		c.dry = true
		for p := make([]byte, 64); ; { // nearly always nothing: SDKs do not pipeline
			n, err := rest.Read(p)
			if st.early = append(st.early, p[:n]...); err != nil {
				break
			}
		}
		// fasthttp closes the connection behind this, when it has put its buffers back.
		c.lost, c.then = nil, st
	})
}

// resume serves the requests that follow on a connection.
func (s *Server) resume(c *caller) {
	if len(c.early) == 0 && !s.idlers.wait(c, s.cfg.IdleTimeout) {
		_ = c.Conn.Close()
		return
	}
	_ = s.http.ServeConn(c.conn()) // it closes the connection
}

// idlers are the connections that wait for their next request outside of fasthttp.
type idlers struct {
	mu     sync.Mutex
	all    map[*caller]struct{}
	closed bool
}

// wait reads the first byte of the next request; false: none came in time.
func (i *idlers) wait(c *caller, limit time.Duration) bool {
	if !i.enter(c) {
		return false
	}
	defer i.leave(c)
	_ = c.Conn.SetReadDeadline(time.Now().Add(limit))
	b := make([]byte, 1)
	n, err := c.Conn.Read(b)
	if n == 0 || err != nil {
		return false
	}
	_ = c.Conn.SetReadDeadline(time.Time{})
	c.early = b
	return true
}

func (i *idlers) enter(c *caller) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return false
	}
	if i.all == nil {
		i.all = map[*caller]struct{}{}
	}
	i.all[c] = struct{}{}
	return true
}

func (i *idlers) leave(c *caller) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.all, c)
}

// close ends the wait of all, now and later.
func (i *idlers) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	for c := range i.all {
		_ = c.Conn.Close()
	}
}
