package proxy

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/upstream"
)

// body is a response body as fasthttp takes it: it writes itself, so that the
// loop which reads from the provider is the one that writes to the client, with
// one write per read and no goroutine or pipe between them. An error out of run
// breaks the connection (HOUSE §12, points 1 and 9).
type body struct {
	stall time.Duration // for the last chunk to be taken
	conn  net.Conn
	run   func(io.Writer) error
	close func() // idempotent; also if run never was
	sized bool   // its length is known: it is not sent in chunks
}

func (b *body) SupportsBodyWriteTo() bool { return true }

func (b *body) WriteTo(w io.Writer) (int64, error) {
	// The handler armed a deadline for the head; streams have one per write,
	// which the watchdog keeps.
	_ = b.conn.SetWriteDeadline(time.Time{})
	c := counter{w: w}
	if !b.sized {
		c.conn = b.conn
	}
	err := b.run(&c)
	// What fasthttp still has to write is the last chunk.
	_ = b.conn.SetWriteDeadline(time.Now().Add(b.stall))
	return c.n, err
}

// Read is what a body without WriteTo would need. fasthttp never calls it on one
// that SupportsBodyWriteTo.
func (b *body) Read([]byte) (int, error) { return 0, errors.New("BUG: the body is written, not read") }

func (b *body) Close() error {
	b.close()
	return nil
}

// counter counts what is written of a body. The first write goes through fasthttp, behind
// the head; in a body of chunks the others go to the connection, each with its framing in
// one write and whatever its size, so that fasthttp's buffer need hold no more than a head.
// It is empty between two writes: it flushes each chunk, and writes the last one itself.
type counter struct {
	w    io.Writer
	conn net.Conn // nil: all goes through fasthttp
	n    int64
}

func (c *counter) Write(p []byte) (int, error) {
	if c.n == 0 || c.conn == nil {
		n, err := c.w.Write(p)
		c.n += int64(n)
		return n, err
	}
	buf := frames.Get().(*[]byte)
	*buf = appendChunk((*buf)[:0], p)
	_, err := c.conn.Write(*buf)
	if cap(*buf) <= maxFrame {
		frames.Put(buf)
	}
	if err != nil {
		return 0, err
	}
	c.n += int64(len(p))
	return len(p), nil
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

// respond sends the head and lets fasthttp drive the rest.
func (d *drive) respond(ctx *fasthttp.RequestCtx, head *relay.Head) {
	h := &ctx.Response.Header
	h.SetStatusCode(head.Status)
	up, _ := head.Upstream.(upstream.Header)
	for _, f := range up {
		switch {
		case strings.EqualFold(f.Name, "Content-Length"), strings.EqualFold(f.Name, headerRun):
		case head.ContentType != "" && strings.EqualFold(f.Name, "Content-Type"):
		case head.Final && strings.EqualFold(f.Name, "x-should-retry"):
		case head.Stream && (strings.EqualFold(f.Name, "X-Accel-Buffering") || strings.EqualFold(f.Name, "Content-Type")):
		case head.Stream && strings.EqualFold(f.Name, "Cache-Control"):
		default:
			h.Add(f.Name, f.Value)
		}
	}
	if head.ContentType != "" {
		h.SetContentType(head.ContentType)
	}
	if head.Stream {
		streamHeader(h, up, head.ContentType)
	}
	if head.Final {
		if last := d.req.lastStatus(head.Status); last != head.Status {
			h.SetStatusCode(last)
			h.Set(headerStatus, strconv.Itoa(head.Status))
		}
		h.Set("x-should-retry", "false")
	}
	if head.RetryAfter > 0 {
		d.comeBack(h, up, head)
	}
	h.Set(headerRun, string(d.req.run))
	if d.req.asks.Veiled {
		h.Set(headerBackground, "on")
	}
	if d.req.upgraded != "" {
		h.Set(headerUpgrade, d.req.upgraded)
	}

	size := int64(-1)
	if d.fx.End == relay.Clean && !head.Stream {
		size = int64(len(d.fx.Client))
	}
	d.srv.send(ctx, d.req, d.life, size, d.pump, d.finish)
	// A head that is let out before there is anything to say goes out at once.
	ctx.Response.ImmediateHeaderFlush = size < 0 && len(d.fx.Client) == 0
}

// spreads is over how long those are spread who are told to come back when a breaker
// lets a probe through, in its open times: who was turned away while it was open, and
// obeys, adds half to the healthy rate then, and no more.
const spreads = 2

// comeBack tells a caller when to ask again: not before somebody may be asked, and not
// all at that moment. SDKs take a hint of a minute at most (WIRE 4).
func (d *drive) comeBack(h *fasthttp.ResponseHeader, up upstream.Header, head *relay.Head) {
	if !up.Has("Retry-After") && !up.Has("retry-after-ms") {
		least := head.RetryAfter
		if room := min(spreads*d.req.under.cfg.Breaker.Open, planner.MaxRetryAfter-least); room > 0 {
			least += rand.N(room)
		}
		h.Set("Retry-After", strconv.FormatInt(int64((least+time.Second-1)/time.Second), 10))
	}
	if !head.Final {
		h.Set("x-should-retry", "true")
	}
}

// streamHeader labels a stream for what it is, whatever the provider called it
// (FIELD-REPORTS F23), and asks what is between us and the client not to hold it
// back (F14). framing is its media type, "" that of event streams.
func streamHeader(h *fasthttp.ResponseHeader, up upstream.Header, framing string) {
	kind := up.Get("Content-Type")
	switch {
	case framing != "" && !mediaType(kind, framing):
		kind = framing
	case framing == "" && !eventStream(kind):
		kind = "text/event-stream; charset=utf-8"
	}
	h.SetContentType(kind)
	cache := up.Get("Cache-Control")
	if !strings.Contains(cache, "no-cache") && !strings.Contains(cache, "no-store") {
		cache = "no-cache"
	}
	h.Add("Cache-Control", cache)
	h.Add("X-Accel-Buffering", "no")
}

func eventStream(contentType string) bool { return mediaType(contentType, "text/event-stream") }

// mediaType reports whether a Content-Type names that media type.
func mediaType(contentType, want string) bool {
	return len(contentType) >= len(want) && strings.EqualFold(contentType[:len(want)], want)
}

// send hands the body to fasthttp. size is its length, -1 if only its end will
// tell.
func (s *Server) send(ctx *fasthttp.RequestCtx, r *request, l *lifeline, size int64, run func(io.Writer) error, done func()) {
	if r.http10 && size < 0 {
		s.send10(ctx, l, run, done)
		return
	}
	ctx.Response.SetBodyStream(&body{stall: r.under.cfg.WriteStall, conn: l.conn, run: run, close: done, sized: size >= 0}, int(size))
}

// send10 serves a client that cannot read chunks: the end of the connection ends
// the body, and a reset is the only way to say that it was cut.
func (s *Server) send10(ctx *fasthttp.RequestCtx, l *lifeline, run func(io.Writer) error, done func()) {
	ctx.Response.Header.SetConnectionClose()
	head := ctx.Response.Header.AppendBytes(nil)
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(c net.Conn) {
		defer done()
		err := l.write(c, head)
		if err == nil {
			_ = l.conn.SetWriteDeadline(time.Time{})
			err = run(c)
		}
		if err != nil {
			reset(l.conn)
		}
	})
}

// reset makes the close that follows a reset.
func reset(c net.Conn) {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = t.NetConn()
	}
	if t, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = t.SetLinger(0)
	}
}

// hangUp closes the connection without a word: there is nobody to talk to.
func hangUp(ctx *fasthttp.RequestCtx) {
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(net.Conn) {})
}
