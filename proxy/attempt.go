package proxy

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/upstream"
)

// opening is an attempt that the machine asked for, and then one whose response head is
// awaited: by a goroutine of its own, so that its driver can send heartbeats and be roused
// meanwhile, or by the driver.
type opening struct {
	n       int
	leg     *leg
	queued  bool
	request upstream.Request

	// once it is made
	by *upstream.Client
	to *upstream.Target

	// of the goroutine; nil: there is none
	cancel context.CancelFunc
	done   chan struct{} // closed when res and err are set
	res    *upstream.Response
	err    error
	taken  atomic.Bool // by the driver's giving up, or by the result
}

// launch makes the attempt behind the driver's back, once.
func (s *Server) launch(o *opening) {
	if o.cancel != nil {
		return
	}
	var ctx context.Context
	ctx, o.cancel = context.WithCancel(context.Background())
	o.done = make(chan struct{})
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		o.await(ctx, o.by)
	}()
}

func (o *opening) await(ctx context.Context, c *upstream.Client) {
	defer o.cancel()
	o.res, o.err = c.Open(ctx, o.to, &o.request)
	if !o.taken.CompareAndSwap(false, true) && o.res != nil {
		_ = o.res.Close() // nobody waits for it any more
	}
	close(o.done)
}

// abandon gives an attempt up, whatever became of it.
func (o *opening) abandon() {
	if o.cancel == nil {
		return
	}
	o.cancel()
	if !o.taken.CompareAndSwap(false, true) {
		<-o.done
		if o.res != nil {
			_ = o.res.Close()
		}
	}
}

// single reports whether the driver may await a head itself: that of a call that does
// not stream. Nothing is written to its client before it is whole, and it ends with its
// client, so whatever else can happen meanwhile ends the attempt too.
func (d *drive) single() bool { return !d.req.asks.Stream && d.req.asks.Upgraded == nil }

// awaitHead makes the attempt, without the goroutine and the two switches to and from it
// that launch costs. The watchdog ends it when it takes too long, when its client leaves
// and when the process must stop; the machine is told of those first.
func (d *drive) awaitHead() relay.Input {
	o := d.open
	d.open = nil
	ctx, giveUp := callerOf(d.life.conn).call()
	d.life.due(d.m.Deadline())
	d.life.opens(giveUp)
	o.res, o.err = o.by.Open(ctx, o.to, &o.request)
	d.life.opens(nil)
	d.now = time.Now()
	in := d.openedBy(o)
	if o.err == nil || ctx.Err() == nil {
		return in
	}
	d.said = in // for a machine that goes on waiting
	if d.life.flags.Load() != 0 {
		return nil
	}
	return relay.Tick{}
}

// request builds what goes upstream for an attempt. The client's own body and
// header go up as they came, again on a whole restart; what Unbroken wrote
// itself carries neither the coding nor the idempotency key of the client's.
func (d *drive) request(a *relay.Attempt) upstream.Request {
	l := &d.legs[a.Target]
	if a.Method != "" {
		return d.errand(l, a)
	}
	r := upstream.Request{Method: d.req.method, Path: l.path, Body: d.first, Decode: true}
	if a.Whole && l.own != "" {
		r.Path = l.own
	}
	upgraded := d.folds() && !a.Whole
	own := a.Derived || d.repaired
	if a.Derived {
		r.Body = a.Body
	}
	r.Header = l.header(d.req, func(name string) bool {
		return acceptEncoding(name) || own && ofTheBody(name) || upgraded && strings.EqualFold(name, "Accept") || a.Derived && strings.EqualFold(name, "Idempotency-Key")
	})
	r.Header = append(r.Header, upstream.Field{Name: "Accept-Encoding", Value: "identity"})
	if upgraded {
		r.Header = append(r.Header, upstream.Field{Name: "Accept", Value: d.req.accepts()})
	}
	if a.Derived {
		r.Header = append(r.Header, upstream.Field{Name: "Idempotency-Key", Value: token("ub-")})
	}
	return r
}

// errand builds a request about a generation that the provider holds: below the path
// of the client's request, with the client's header but for what tells of a body.
func (d *drive) errand(l *leg, a *relay.Attempt) upstream.Request {
	path, query, _ := strings.Cut(l.path, "?")
	path = strings.TrimSuffix(path, "/") + a.Below
	if a.Query != "" && query != "" {
		query += "&"
	}
	if query += a.Query; query != "" {
		path += "?" + query
	}
	r := upstream.Request{Method: a.Method, Path: path, Decode: true}
	r.Header = l.header(d.req, func(name string) bool {
		return acceptEncoding(name) || ofTheBody(name) || strings.EqualFold(name, "Content-Type") || strings.EqualFold(name, "Idempotency-Key")
	})
	r.Header = append(r.Header, upstream.Field{Name: "Accept-Encoding", Value: "identity"})
	return r
}

const (
	// abandonTime bounds what is done about a generation that nobody reads.
	abandonTime = 10 * time.Second
	// abandonMost bounds how much of it is done at a time; what is more is left
	// undone.
	abandonMost = 256
)

// abandon ends, as well as it goes, a generation that the provider would carry on. It
// waits for nothing and nobody waits for it.
func (s *Server) abandon(by *upstream.Client, to *upstream.Target, r upstream.Request) {
	select {
	case s.abandoning <- struct{}{}:
	default:
		s.counts.unabandoned.Add(1)
		return
	}
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		defer func() { <-s.abandoning }()
		ctx, cancel := context.WithTimeout(context.Background(), abandonTime)
		defer cancel()
		res, err := by.Open(ctx, to, &r)
		if err == nil {
			ok := res.Status/100 == 2
			drain(res)
			if ok {
				return
			}
		}
		s.counts.unabandoned.Add(1)
	}()
}

// worded tells how an attempt failed, and which setting names an authority that
// nobody here has heard of: it is the one thing that can be done about it.
func worded(err error) string {
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		return err.Error() + "; ca_file names a private authority"
	}
	return err.Error()
}

// endOf tells in relay's words how an attempt ended.
func endOf(err error) interrupt.Ended {
	if err == io.EOF {
		return interrupt.Ended{How: interrupt.EOF}
	}
	var e *upstream.Error
	if !errors.As(err, &e) {
		return interrupt.Ended{How: interrupt.Reset, Detail: err.Error()}
	}
	end := interrupt.Ended{How: interrupt.Reset, NotSent: e.Safety == upstream.NotSent, Detail: worded(e)}
	switch {
	case e.Kind == upstream.Untrusted:
		end.How = interrupt.Untrusted
	case e.Kind == upstream.GoAway, e.Kind == upstream.NotProcessed:
		end.How = interrupt.GoneAway
	case e.Op == upstream.OpHead && e.Kind == upstream.Timeout:
		end.How = interrupt.HeadTimeout
	case e.Op != upstream.OpBody:
		end.How = interrupt.NoConnection
	case e.Kind == upstream.Truncated:
		end.How = interrupt.Short
	case e.Kind == upstream.Protocol, e.Kind == upstream.Corrupt:
		end.How = interrupt.Garbled
	}
	return end
}
