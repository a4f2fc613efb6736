package proxy

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// gate bounds the requests in flight, in all and per caller. What is too much waits
// in line for a while, first come, first served, past those that only their own
// caller's limit holds up.
type gate struct {
	mu                  sync.Mutex
	most, each, longest int // requests, requests per caller (0: any number), the line
	wait                time.Duration
	live                int
	callers             map[checkpoint.Scope]int
	line                []*waiter
	shut                bool
}

type waiter struct {
	who   *checkpoint.Scope
	in    chan struct{} // closed when it is admitted, or never will be
	err   error
	extra bool // there was room for it without anybody's leaving
}

var (
	errDraining = errors.New("the proxy is shutting down")
	errBusy     = errors.New("too many requests in flight (MaxStreams)")
	errGreedy   = errors.New("too many requests of this caller in flight (MaxPerCaller)")
	errLeft     = errors.New("the client left")
)

func newGate(c *Config) *gate {
	g := &gate{callers: map[checkpoint.Scope]int{}}
	g.limit(c)
	return g
}

// limit sets the bounds, and lets in from the line whom they have room for. Those that
// are in stay in, however many.
func (g *gate) limit(c *Config) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most, g.each, g.longest, g.wait = c.MaxStreams, c.MaxPerCaller, c.MaxQueue, c.QueueWait
	g.line = slices.DeleteFunc(g.line, func(w *waiter) bool {
		if g.room(w.who) != nil {
			return false
		}
		g.admit(w.who)
		w.extra = true
		close(w.in)
		return true
	})
}

// room says why who cannot come in; nil: it can. A caller that is not told apart is nil.
// mu is held.
func (g *gate) room(who *checkpoint.Scope) error {
	switch {
	case g.shut:
		return errDraining
	case g.live >= g.most:
		return errBusy
	case g.each > 0 && who != nil && g.callers[*who] >= g.each:
		return errGreedy
	}
	return nil
}

func (g *gate) admit(who *checkpoint.Scope) {
	g.live++
	if who != nil {
		g.callers[*who]++
	}
}

// enter counts a request in, at once or from the line. left is closed when its
// client leaves. queued tells that it took the place of one that left. The error
// says why it is not let in.
func (g *gate) enter(who *checkpoint.Scope, left func() (gone <-chan struct{}, over func())) (queued bool, err error) {
	g.mu.Lock()
	err = g.room(who)
	if err == nil {
		g.admit(who)
	}
	if err == nil || err == errDraining || g.wait <= 0 || len(g.line) >= g.longest {
		g.mu.Unlock()
		return false, err
	}
	wait := g.wait
	w := &waiter{who: who, in: make(chan struct{})}
	g.line = append(g.line, w)
	g.mu.Unlock()

	gone, over := left()
	defer over()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-w.in:
		return !w.extra, w.err
	case <-t.C:
	case <-gone:
		err = errLeft
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.line, w)
	if i < 0 { // it was decided meanwhile
		return !w.extra, w.err
	}
	g.line = slices.Delete(g.line, i, i+1)
	return false, err
}

// leave counts a request out. handed reports that somebody in line has its place,
// so that the number in flight is what it was.
func (g *gate) leave(who *checkpoint.Scope) (handed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live--
	if who != nil {
		if g.callers[*who]--; g.callers[*who] <= 0 {
			delete(g.callers, *who)
		}
	}
	for i, w := range g.line {
		if g.room(w.who) == nil {
			g.line = slices.Delete(g.line, i, i+1)
			g.admit(w.who)
			close(w.in)
			return true
		}
	}
	return false
}

// close lets nobody in any more.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	for _, w := range g.line {
		w.err = errDraining
		close(w.in)
	}
	g.line = nil
}

func (g *gate) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.line)
}

// admit counts a request in, or answers why not.
func (s *Server) admit(ctx *fasthttp.RequestCtx, r *request) bool {
	if r.under.cfg.MaxPerCaller > 0 {
		who := s.caller(r)
		r.who = &who
	}
	queued, err := s.gate.enter(r.who, func() (<-chan struct{}, func()) {
		gone := make(chan struct{})
		l, once := newLifeline(s.dog, ctx.Conn()), sync.Once{}
		l.opens(func() { once.Do(func() { close(gone) }) })
		return gone, func() { l.end() }
	})
	switch err {
	case nil:
		if !queued {
			s.live.Add(1)
		}
		s.counts.accepted.Add(1)
		return true
	case errLeft:
		hangUp(ctx)
	case errDraining:
		refuse(ctx, r.tongue(), fasthttp.StatusServiceUnavailable, err.Error())
		ctx.Response.Header.Set("Retry-After", "1")
	default:
		refuse(ctx, r.tongue(), fasthttp.StatusTooManyRequests, err.Error())
		ctx.Response.Header.Set("Retry-After", "1")
		ctx.Response.Header.Set("x-should-retry", "true")
	}
	s.counts.refused.Add(1)
	return false
}

// release counts a request out, once: its body has ended (FIELD-REPORTS I2).
func (s *Server) release(l *lifeline, who *checkpoint.Scope) {
	if l != nil && !l.end() {
		return
	}
	if !s.gate.leave(who) && s.live.Add(-1) == 0 && s.draining.Load() {
		select {
		case s.idled <- struct{}{}:
		default:
		}
	}
}
