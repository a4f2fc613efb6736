package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/unbroken-llm/unbroken/dialect"
)

// stream is the exchange of a streaming response, in a goroutine of its own: the loop that
// reads from the provider is the one that writes to the client, with one write for each
// read and nothing between them.
type stream struct {
	// immutable
	srv    *Server
	life   *lifeline
	http10 bool
	stall  time.Duration   // for one write
	tongue dialect.Dialect // in which it is told of a bug; nil: none is known
	drop   func()          // idempotent; lets go of everything, whatever was done of it
	// answer is what to say; false: there is nobody to answer.
	answer func() (response, bool)

	// once it is taken
	conn  net.Conn
	early []byte // of the next request
	last  bool   // the connection is closed behind it
	told  bool   // the response has begun
}

// response is one whose head is known.
type response struct {
	exchange
	head   *fasthttp.ResponseHeader
	size   int64 // of the body; -1: only its end will tell
	prompt bool  // the head does not wait for the first byte of the body
	whole  bool  // the body is at hand
}

// exchange is what a response is the end of.
type exchange interface {
	// pump writes the body. An error breaks the connection (HOUSE §12, points 1 and 9).
	pump(io.Writer) error
	// finish lets go of what the exchange has; idempotent, and also called if pump never was.
	finish()
}

// says is an exchange that has nothing.
type says func(io.Writer) error

func (s says) pump(w io.Writer) error { return s(w) }
func (says) finish()                  {}

// blank is a header as fasthttp has it for this server's responses.
func blank() *fasthttp.ResponseHeader {
	h := &fasthttp.ResponseHeader{}
	bare(h)
	return h
}

// bare has h say what it is told to and nothing else, as it is spelled.
func bare(h *fasthttp.ResponseHeader) {
	h.DisableNormalizing()
	h.SetNoDefaultContentType(true)
}

// stream moves the exchange of ctx to a goroutine of its own.
func (s *Server) stream(ctx *fasthttp.RequestCtx, r *request, l *lifeline, drop func(), to func() (response, bool)) {
	st := &stream{
		srv: s, life: l, http10: r.http10, stall: r.under.cfg.WriteStall, tongue: r.tongue(), drop: drop, answer: to,
		last: r.http10 || ctx.Request.Header.ConnectionClose(),
	}
	if r.rest == nil {
		take(ctx, st)
		return
	}
	// The client still sends, through fasthttp's buffer: it goes when the response is over.
	st.conn, st.last = l.conn, true
	st.hijack(ctx, callerOf(ctx.Conn()), func(net.Conn) {
		defer s.work.Done()
		_ = st.exchange()
	})
}

// Close begins the stream: its connection has become its own.
func (st *stream) Close() error {
	go st.serve()
	return nil
}

// serve answers. Behind that the connection serves the next request.
func (st *stream) serve() {
	err := st.exchange()
	st.srv.work.Done() // what is left to do is not worth a wait
	if err != nil || st.last {
		_ = st.conn.Close()
		return
	}
	st.srv.resume(&caller{Conn: st.conn, early: st.early})
}

var errNobody = errors.New("there is nobody to answer")

// exchange is one request and its response; it ends in an error if the connection is of no
// use behind it. It lasts as long as the stream does, as all do that it is in: see advance.
func (st *stream) exchange() (err error) {
	defer st.end(&err)
	a, ok := st.answer()
	if !ok {
		return errNobody
	}
	return st.write(&a)
}

// end lets go of everything, behind a panic too.
func (st *stream) end(err *error) {
	defer st.drop()
	defer func() {
		if *err != nil || st.last {
			st.srv.idlers.leave(st.conn)
		}
	}()
	if what := recover(); what != nil {
		st.srv.cfg.Log.Error("BUG: a stream panicked", "panic", fmt.Sprint(what), "stack", string(debug.Stack()))
		*err = errAborted
		if !st.told {
			st.last = true
			a := refusal(st.tongue, bug.Status, bug.Message)
			_ = st.write(&a)
		}
	}
}

// write writes the response. To a client of HTTP/1.0 only a reset can say that a body of
// unknown length was cut.
func (st *stream) write(a *response) (err error) {
	cut := true // by a panic, too
	defer func() {
		if cut && a.size < 0 && st.http10 {
			reset(st.conn)
		}
	}()
	w, err := st.begin(a)
	if err != nil {
		return err
	}
	if err := a.pump(w); err != nil {
		return err
	}
	st.srv.idlers.enter(st.conn, st.stall) // the watchdog has let go of it
	err = w.close()
	cut = err != nil
	return err
}

// begin writes the response's head, or keeps it for the first bytes of the body.
func (st *stream) begin(a *response) (*chunks, error) {
	w := &chunks{conn: st.conn, framed: a.size < 0 && !st.http10}
	st.told = true
	st.last = st.last || a.head.ConnectionClose()
	if st.last {
		a.head.SetConnectionClose()
	}
	if a.size >= 0 || w.framed {
		a.head.SetContentLength(int(a.size)) // -1: chunked
	}
	w.head = a.head.AppendBytes(nil)
	a.head = nil // a body may take long
	// Each write has a deadline, which the watchdog keeps; the handler may have left one.
	_ = st.conn.SetWriteDeadline(time.Time{})
	if !a.prompt {
		return w, nil
	}
	head := w.head
	w.head = nil
	return w, st.life.write(st.conn, head)
}

// chunks writes each piece of a body in one write of the connection, with its framing,
// and the first one behind the head.
type chunks struct {
	conn   net.Conn
	head   []byte // not yet written
	framed bool
}

func (c *chunks) Write(p []byte) (int, error) {
	buf := frames.Get().(*[]byte)
	*buf = append((*buf)[:0], c.head...)
	if c.framed {
		*buf = appendChunk(*buf, p)
	} else {
		*buf = append(*buf, p...)
	}
	c.head = nil
	_, err := c.conn.Write(*buf)
	if cap(*buf) <= maxFrame {
		frames.Put(buf)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// close writes what ends the body.
func (c *chunks) close() error {
	end := c.head
	if c.framed {
		end = append(end, "0\r\n\r\n"...)
	}
	if len(end) == 0 {
		return nil
	}
	_, err := c.conn.Write(end)
	return err
}

// appendChunk appends p as a chunk of RFC 9112, section 7.1. An empty one would be the last.
func appendChunk(dst, p []byte) []byte {
	if len(p) == 0 {
		return dst
	}
	dst = append(strconv.AppendInt(dst, int64(len(p)), 16), "\r\n"...)
	return append(append(dst, p...), "\r\n"...)
}

// frames holds buffers for chunks on their way out, up to maxFrame bytes each.
var frames = sync.Pool{New: func() any { return new([]byte) }}

const maxFrame = 32 << 10
