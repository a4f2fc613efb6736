package proxy

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/upstream"
)

// body is a response body as fasthttp takes it, of a known length, or for a request of
// which the client still sends the rest. It writes itself.
type body struct {
	exchange
	small bool          // it is at hand, and fasthttp's buffer has room for it
	stall time.Duration // for what fasthttp writes behind it
	conn  net.Conn
	out   counter
}

func (b *body) SupportsBodyWriteTo() bool { return true }

func (b *body) WriteTo(w io.Writer) (int64, error) {
	b.out.w = w
	if b.small { // the handler armed a deadline for the one write that it leaves with
		err := b.pump(&b.out)
		return b.out.n, err
	}
	// Others have a deadline for each write, which the watchdog keeps.
	_ = b.conn.SetWriteDeadline(time.Time{})
	err := b.pump(&b.out)
	// What fasthttp still has to write is in its buffer, or the last chunk.
	_ = b.conn.SetWriteDeadline(time.Now().Add(b.stall))
	return b.out.n, err
}

// Read is what a body without WriteTo would need. fasthttp never calls it on one
// that SupportsBodyWriteTo.
func (b *body) Read([]byte) (int, error) { return 0, errors.New("BUG: the body is written, not read") }

func (b *body) Close() error {
	b.finish()
	return nil
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// answer drives to the head of the response; false: there is nobody to send one to.
func (d *drive) answer(h *fasthttp.ResponseHeader) (a response, ok bool) {
	head := d.toHead()
	if head == nil {
		return a, false
	}
	d.header(h, head)
	a = response{head: h, size: -1, prompt: len(d.fx.Client) == 0, exchange: d}
	if d.fx.End == relay.Clean && !head.Stream {
		a.size, a.whole = int64(len(d.fx.Client)), true
	}
	return a, true
}

// header writes the response head into h.
func (d *drive) header(h *fasthttp.ResponseHeader, head *relay.Head) {
	h.SetStatusCode(head.Status)
	var up upstream.Header
	if from, ok := head.Upstream.(*upstream.Header); ok {
		up = *from
	}
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

// send writes a response whose header is that of ctx: through fasthttp, but for a stream,
// whose request was read, and for one that HTTP/1.0 could not tell the end of.
func (s *Server) send(ctx *fasthttp.RequestCtx, r *request, l *lifeline, a response) {
	if a.size < 0 && (r.rest == nil || r.http10) {
		a.head = blank()
		ctx.Response.Header.CopyTo(a.head)
		s.stream(ctx, r, l, a.finish, func() (response, bool) { return a, true })
		return
	}
	ctx.Response.SetBodyStream(&body{
		exchange: a.exchange, small: a.whole && a.size <= writeBuffer, stall: r.under.cfg.WriteStall, conn: l.conn,
	}, int(a.size))
	ctx.Response.ImmediateHeaderFlush = a.prompt
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
