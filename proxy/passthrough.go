package proxy

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/upstream"
)

// pass relays a request untouched, in a stream of any size both ways. reason is
// not empty when the request would have been protected.
//
// It neither feeds the breakers nor obeys them, and has no part in an upstream's pace:
// one request of the caller is one request upstream, whatever comes of it, so that
// nothing is hammered; and what the provider says of its files, of its models or of a
// request that we cannot read is the caller's to know (docs/ROUTES.md).
func (s *Server) pass(ctx *fasthttp.RequestCtx, r *request, l *lifeline, reason string) {
	p := &passing{srv: s, r: r, life: l}
	body, stream := s.upload(ctx, r)
	if stream == nil {
		r.size = 0
	}
	res, err := p.open(&upstream.Request{
		Method: r.method, Path: r.path, Header: r.to.upward(r.header, nil),
		Body: body, BodyStream: stream, BodySize: r.size,
	})
	switch {
	case reason == "":
	case err == nil && interrupt.FromStatus(res.Status, nil, nil, time.Now()).Blame() == interrupt.Request:
		s.counts.unprotectable.Add(1)
	default:
		s.counts.unprotected.Add(1)
	}
	if err != nil {
		p.finish()
		p.failed(ctx, err)
		return
	}
	p.res = res
	l.reads(res)
	h := &ctx.Response.Header
	h.SetStatusCode(res.Status)
	size := int64(-1)
	for _, f := range res.Header {
		if !strings.EqualFold(f.Name, "Content-Length") {
			h.Add(f.Name, f.Value)
		} else if n, err := strconv.ParseInt(f.Value, 10, 64); err == nil {
			size = n
		}
	}
	if reason != "" {
		h.Set(headerProtection, "off; reason="+reason)
	}
	if r.method == fasthttp.MethodHead || res.Status == fasthttp.StatusNoContent || res.Status == fasthttp.StatusNotModified {
		p.finish()
		ctx.Response.SkipBody = true
		if size >= 0 {
			h.SetContentLength(int(size))
		}
		return
	}
	if eventStream(res.Header.Get("Content-Type")) {
		size = -1 // fasthttp flushes chunks; a body of known length waits for a full buffer
	}
	s.send(ctx, r, l, response{size: size, prompt: true, exchange: p})
}

// passing is a request on its way through untouched.
type passing struct {
	srv  *Server
	r    *request
	life *lifeline
	res  *upstream.Response
	over bool
}

// open waits for the response head, for as long as the client does, and while a
// body still goes up, however long that takes.
func (p *passing) open(r *upstream.Request) (*upstream.Response, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	p.life.opens(func() { cancel(errRevoked) })
	defer p.life.opens(nil)
	limit := p.r.under.cfg.PassHead
	var t *time.Timer
	t = time.AfterFunc(limit, func() {
		if left := limit - p.r.rest.quiet(); left > 0 {
			t.Reset(left)
			return
		}
		cancel(context.DeadlineExceeded)
	})
	defer t.Stop()
	return p.r.under.client.Open(ctx, p.r.destination(), r)
}

// failed answers a request that got no answer.
func (p *passing) failed(ctx *fasthttp.RequestCtx, err error) {
	switch p.life.flags.Load() {
	case 0:
	case flagStopped:
		refuse(ctx, p.r.tongue(), fasthttp.StatusServiceUnavailable, errDraining.Error())
		return
	default:
		hangUp(ctx)
		return
	}
	var e *upstream.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		p.srv.decline(ctx, p.r.tongue(), fasthttp.StatusGatewayTimeout, "no response head within "+p.r.under.cfg.PassHead.String())
	case errors.As(err, &e) && e.Kind == upstream.Source:
		hangUp(ctx) // the client's body broke off
	case errors.As(err, &e) && e.Kind == upstream.Invalid:
		p.srv.decline(ctx, p.r.tongue(), fasthttp.StatusBadRequest, err.Error())
	default:
		p.srv.decline(ctx, p.r.tongue(), fasthttp.StatusBadGateway, worded(err))
	}
}

// pump copies the response body. A cut one ends in an abort.
func (p *passing) pump(w io.Writer) error {
	defer p.finish()
	for {
		if p.life.signal() != nil {
			return errAborted
		}
		b, err := p.res.Next()
		switch err {
		case nil:
			if err := p.life.write(w, b); err != nil {
				return err
			}
		case upstream.ErrWoken:
		case io.EOF:
			return nil
		default:
			return errAborted
		}
	}
}

func (p *passing) finish() {
	if p.over {
		return
	}
	p.over = true
	if p.res != nil {
		_ = p.res.Close()
	}
	if p.r.rest != nil {
		p.r.rest.revoke()
	}
	p.srv.release(p.life, p.r.who)
}
