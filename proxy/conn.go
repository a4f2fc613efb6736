package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
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
	early []byte  // was read already
	dry   bool    // nothing else is to be read
	heard bool    // something was
	from  *idlers // whom it leaves for fasthttp by the first read
	body  *source // what is read now, and how long a read of it may take

	// of its requests, one after the other
	sys    syscall.RawConn // see socket
	waits  *calling        // see call
	giveUp func()          // its end

	// set by take, one after the other
	lost func()    // runs if fasthttp drops the connection before it is taken
	then io.Closer // closed in the connection's place, once it is
}

// errDry ends the reading of what is in hand.
var errDry = errors.New("nothing more is in hand")

func (c *caller) Read(p []byte) (int, error) {
	if from := c.from; from != nil {
		c.from = nil
		if !from.leave(c.Conn) {
			return 0, net.ErrClosed // of it fasthttp says nothing
		}
	}
	if len(c.early) > 0 {
		n := copy(p, c.early)
		c.early, c.heard = c.early[n:], true
		return n, nil
	}
	if c.dry {
		return 0, errDry
	}
	if s := c.body; s != nil && !s.arm() {
		return 0, errRevoked
	}
	n, err := c.Conn.Read(p)
	c.heard = c.heard || n > 0
	return n, err
}

// call returns the context of a call that the driver of a request waits for itself, and
// what ends it. They are those of the connection's last call, if that was not ended.
func (c *caller) call() (to *calling, giveUp func()) {
	if c.waits == nil || c.waits.Err() != nil {
		c.waits = &calling{}
		c.giveUp = c.waits.end
	}
	return c.waits, c.giveUp
}

// socket is the one below TLS, for those who only look at it; nil: there is none.
func (c *caller) socket() syscall.RawConn {
	if c.sys == nil {
		if sc, ok := c.NetConn().(syscall.Conn); ok {
			c.sys, _ = sc.SyscallConn()
		}
	}
	return c.sys
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
	st.conn = c.Conn
	st.hijack(ctx, c, func(rest net.Conn) {
		c.dry = true
		for p := make([]byte, 64); ; { // nearly always nothing: SDKs do not pipeline
			n, err := rest.Read(p)
			if st.early = append(st.early, p[:n]...); err != nil {
				break
			}
		}
		// fasthttp closes the connection behind this, when it has put its buffers back.
		c.then = st
	})
}

// hijack has f run behind the handler of ctx. A Shutdown waits for the stream from here
// on: who is counted only when it begins could begin when nobody waits any more.
func (st *stream) hijack(ctx *fasthttp.RequestCtx, c *caller, f func(net.Conn)) {
	st.srv.work.Add(1)
	c.lost = func() {
		st.drop()
		st.srv.work.Done()
	}
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(rest net.Conn) {
		c.lost = nil
		f(rest)
	})
}

// resume serves the requests that follow on a connection, which is among the idlers.
func (s *Server) resume(c *caller) {
	if !s.idlers.rest(c.Conn, s.cfg.IdleTimeout) || len(c.early) == 0 && !c.await() {
		s.idlers.leave(c.Conn)
		_ = c.Conn.Close()
		return
	}
	c.from = &s.idlers
	if err := s.http.ServeConn(c.conn()); err != nil { // it closes the connection
		s.idlers.leave(c.Conn) // it was not even read from
	}
}

// await reads the first byte of the next request; false: none came in time.
func (c *caller) await() bool {
	b := make([]byte, 1)
	n, err := c.Conn.Read(b)
	c.early = b[:n]
	return n > 0 && err == nil
}

// idlers are the connections that nobody looks after: from the end of a stream's body,
// when the watchdog lets go of them, until fasthttp has counted them in, which it has when
// it reads. In between the last bytes of a response are written, and the next request is
// waited for.
type idlers struct {
	mu     sync.Mutex
	all    map[net.Conn]struct{}
	closed bool
}

// enter takes c in. What is still to be written has as long as stall.
func (i *idlers) enter(c net.Conn, stall time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		stall = min(stall, lastWords)
	}
	_ = c.SetWriteDeadline(time.Now().Add(stall))
	if i.all == nil {
		i.all = map[net.Conn]struct{}{}
	}
	i.all[c] = struct{}{}
}

// rest has c wait for limit. Nothing is left of the deadline for what was written: it
// would be over when a "100 Continue" or a refusal of a head is, which fasthttp writes
// without one. false: c is to be closed.
func (i *idlers) rest(c net.Conn, limit time.Duration) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return false
	}
	_ = c.SetWriteDeadline(time.Time{})
	_ = c.SetReadDeadline(time.Now().Add(limit))
	return true
}

// leave reports whether c may go on.
func (i *idlers) leave(c net.Conn) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.all, c)
	return !i.closed
}

// close ends the wait of all, now and later, and bounds what is still written. It waits
// for nobody: to close a connection of TLS can take seconds.
func (i *idlers) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	for c := range i.all {
		_ = c.SetReadDeadline(past)
		_ = c.SetWriteDeadline(time.Now().Add(lastWords))
	}
}
