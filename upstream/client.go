package upstream

import (
	"context"
	"errors"
	"io"
	"maps"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// Client opens attempts and keeps the connections between them. It is safe for concurrent use.
type Client struct {
	// immutable
	cfg Config
	h2  *http2.Transport

	mu     sync.Mutex
	hosts  map[hostKey]*host
	reaper *time.Timer // armed while some connection idles
	armed  bool
	closed bool
}

var errClientClosed = errors.New("client is closed")

// New returns a client. It panics on a Config that Validate refuses: the caller has had its chance to say so nicely.
func New(cfg Config) *Client {
	if err := cfg.Validate(); err != nil {
		panic("BUG: " + err.Error())
	}
	c := &Client{cfg: cfg.withDefaults(), hosts: map[hostKey]*host{}}
	c.h2 = newTransport(c.cfg)
	c.reaper = time.AfterFunc(time.Hour, c.reap)
	c.reaper.Stop()
	return c
}

// Close closes the connections that carry nothing and lets those that do end with their streams. Later Opens fail.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.reaper.Stop()
	hosts := make([]*host, 0, len(c.hosts))
	for _, h := range c.hosts {
		hosts = append(hosts, h)
	}
	c.mu.Unlock()
	for _, h := range hosts {
		h.close()
	}
}

// Keep closes the pools of all targets but these: what idles there at once, what carries streams behind the last of them. An Open to
// another target still works, on connections that are closed when they have idled.
func (c *Client) Keep(ts []*Target) {
	kept := map[hostKey]bool{}
	for _, t := range ts {
		if k, _, err := c.key(t); err == nil {
			kept[k] = true
		}
	}
	var gone []*host
	c.mu.Lock()
	maps.DeleteFunc(c.hosts, func(k hostKey, h *host) bool {
		if !kept[k] {
			gone = append(gone, h)
		}
		return !kept[k]
	})
	c.mu.Unlock()
	for _, h := range gone {
		h.close()
	}
}

// Open sends r to t and blocks until the final response head; informational heads are swallowed. The context governs Open alone: it
// returns promptly when the context ends, with Kind Timeout for a deadline and Canceled otherwise, and the context's cause; a Response
// once returned lives until its Close. Every error is an *Error.
//
// Open sends at most one request that may be processed. If a pooled connection turns out dead before a byte of r has left, a fresh
// one is dialled, once.
func (c *Client) Open(ctx context.Context, t *Target, r *Request) (*Response, error) {
	res, err := c.open(ctx, t, r)
	if err != nil {
		if t != nil {
			err.Target = t.Name
		}
		return nil, err
	}
	res.target = t.Name
	if r.Decode {
		res.decoded()
	}
	return res, nil
}

func (c *Client) open(ctx context.Context, t *Target, r *Request) (*Response, *Error) {
	if err := t.Validate(); err != nil {
		return nil, invalid(err)
	}
	if err := r.validate(); err != nil {
		return nil, invalid(err)
	}
	if ctx.Err() != nil {
		return nil, ended(ctx, OpRequest, NotSent)
	}
	h, e := c.host(t)
	if e != nil {
		return nil, e
	}
	var source *touched // nil: the body is in memory
	if r.BodyStream != nil {
		source = &touched{r: r.BodyStream}
		copied := *r
		copied.BodyStream = source
		r = &copied
	}
	for fresh := false; ; fresh = true {
		l, e := h.link(ctx, fresh)
		if e != nil {
			return nil, e
		}
		res, e := l.open(ctx, t, r)
		if e == nil {
			return res, nil
		}
		if fresh || e.Safety != NotSent || e.Kind != StaleConn || source.touched() {
			return nil, e
		}
	}
}

func invalid(err error) *Error {
	return &Error{Op: OpRequest, Safety: NotSent, Kind: Invalid, Err: err}
}

// link is a connection that Open got hold of, of either protocol.
type link interface {
	open(ctx context.Context, t *Target, r *Request) (*Response, *Error)
}

// open runs an attempt on an HTTP/1.1 connection, which it owns.
func (c *conn) open(ctx context.Context, t *Target, r *Request) (*Response, *Error) {
	unbind := afterFunc(ctx, c.ending)
	res, up, e := c.roundtrip(t, r)
	if !unbind() {
		// The context ended, perhaps as the head came in: the connection is closed or about to be.
		c.abort()
		up.wait()
		s := Sent
		switch {
		case e == nil:
			s = Partial
		case up.nothingLeft():
			s = NotSent
		default:
			s = e.Safety
		}
		return nil, ended(ctx, OpHead, s)
	}
	if e != nil {
		c.abort()
		up.wait()
		return nil, e
	}
	return res, nil
}

// afterFunc is [context.AfterFunc], which makes a context of its own even around one that has the method itself.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if has, ok := ctx.(interface {
		AfterFunc(f func()) (stop func() bool)
	}); ok {
		return has.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// touched tells whether a body reader was read from, after which the body cannot be sent again.
type touched struct {
	r    io.Reader
	mu   sync.Mutex
	once bool
}

func (t *touched) Read(p []byte) (int, error) {
	t.mu.Lock()
	t.once = true
	t.mu.Unlock()
	return t.r.Read(p)
}

func (t *touched) touched() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.once
}
