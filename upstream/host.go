package upstream

import (
	"context"
	"crypto/tls"
	"net/url"
	"slices"
	"sync"
	"time"
)

// hostKey is what connections of one pool have in common.
type hostKey struct {
	scheme, address, serverName, proxy string
	http1                              bool
	tls                                *TLSOptions
}

// host is the pool of one target.
type host struct {
	// immutable
	client    *Client
	key       hostKey
	proxy     *url.URL    // nil: direct
	forward   bool        // requests are sent to the proxy in absolute form; otherwise it is asked for a tunnel
	tlsConfig *tls.Config // nil in clear

	mu     sync.Mutex
	closed bool
	idle   []*conn // unused HTTP/1.1 connections; the last one was used last
	h2     []*shared
	room   int // streams that may share a connection of h2 now
	well   int // streams that came to their end since it was changed
	proto  proto
	dials  []*dial // that run, and whose result others may share
}

// dial is a connection on its way that as many requests may wait for as it has seats.
type dial struct {
	seats  int           // guarded by the host
	over   chan struct{} // closed at its end
	failed bool          // set before
}

// proto is what the provider speaks, learned from the first connection.
type proto uint8

const (
	protoUnknown proto = iota
	protoH1
	protoH2
)

// key is the pool of a target, and the forward proxy that leads there; nil: none does.
func (c *Client) key(t *Target) (key hostKey, proxy *url.URL, err error) {
	if proxy, err = c.cfg.Proxy(proxyURL(t.URL)); err != nil {
		return key, nil, err
	}
	key = hostKey{scheme: t.URL.Scheme, address: t.address(), http1: t.HTTP1, tls: t.TLS}
	if proxy != nil {
		key.proxy = proxy.String()
	}
	if t.URL.Scheme == "https" {
		key.serverName = t.serverName()
	}
	return key, proxy, nil
}

func (c *Client) host(t *Target) (*host, *Error) {
	key, proxy, err := c.key(t)
	if err != nil {
		return nil, &Error{Op: OpRequest, Safety: NotSent, Kind: Proxy, Err: errProxyConfig} // err may quote its password
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, &Error{Op: OpRequest, Safety: NotSent, Kind: Canceled, Err: errClientClosed}
	}
	h := c.hosts[key]
	if h == nil {
		h = &host{client: c, key: key, proxy: proxy, room: c.cfg.StreamsPerConn}
		h.forward = proxy != nil && key.scheme == "http" && (proxy.Scheme == "http" || proxy.Scheme == "https")
		switch key.scheme {
		case "https":
			h.tlsConfig = tlsConfig(key)
			if key.http1 {
				h.proto = protoH1
			}
		case "h2c":
			h.proto = protoH2
		default:
			h.proto = protoH1
		}
		c.hosts[key] = h
	}
	return h, nil
}

// link returns a connection to send one request on: a pooled one that looks alive unless fresh is asked for, or a new one.
func (h *host) link(ctx context.Context, fresh bool) (link, *Error) {
	alone := false // a shared dial failed for somebody else: do not queue behind the next one
	for {
		h.mu.Lock()
		if !fresh {
			if l := h.pooledLocked(); l != nil {
				h.mu.Unlock()
				return l, nil
			}
		}
		var others, own *dial
		if h.proto != protoH1 && !alone {
			others, own = h.boardLocked()
		}
		h.mu.Unlock()

		if others != nil {
			select {
			case <-others.over:
				alone, fresh = others.failed, false
				continue
			case <-ctx.Done():
				return nil, ended(ctx, OpDial, NotSent)
			}
		}
		l, e := h.connect(ctx)
		if own != nil {
			h.land(own, e != nil)
		}
		return l, e
	}
}

// boardLocked takes a seat in somebody else's dial, or begins one for itself and those who come behind it.
func (h *host) boardLocked() (others, own *dial) {
	for _, d := range h.dials {
		if d.seats > 0 {
			d.seats--
			return d, nil
		}
	}
	own = &dial{seats: h.room - 1, over: make(chan struct{})}
	h.dials = append(h.dials, own)
	return nil, own
}

func (h *host) land(d *dial, failed bool) {
	h.mu.Lock()
	h.dials = slices.DeleteFunc(h.dials, func(other *dial) bool { return other == d })
	h.mu.Unlock()
	d.failed = failed
	close(d.over)
}

// pooledLocked prefers HTTP/2, where a connection serves many, then the warmest HTTP/1.1 connection.
func (h *host) pooledLocked() link {
	for _, s := range h.h2 {
		if s.enterLocked() {
			return &h2link{shared: s, reused: true}
		}
	}
	now := time.Now()
	for len(h.idle) > 0 {
		c := h.idle[len(h.idle)-1]
		h.idle[len(h.idle)-1] = nil
		h.idle = h.idle[:len(h.idle)-1]
		if now.Before(c.expires) && c.quiet() {
			c.reused = true
			return c
		}
		c.abort()
	}
	return nil
}

func (h *host) putIdle(c *conn, keep time.Duration) {
	c.expires = time.Now().Add(keep)
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		c.abort()
		return
	}
	var oldest *conn
	if len(h.idle) >= h.client.cfg.MaxIdlePerHost {
		oldest = h.idle[0]
		h.idle = append(h.idle[:0], h.idle[1:]...)
	}
	h.idle = append(h.idle, c)
	h.mu.Unlock()
	if oldest != nil {
		oldest.abort()
	}
	h.client.armReaper(keep)
}

// close ends the pool: what idles is closed, what is in use will not come back.
func (h *host) close() {
	h.mu.Lock()
	idle, h2 := h.idle, h.h2
	h.idle, h.h2, h.closed = nil, nil, true
	for _, s := range h2 {
		retire(s.cc)
	}
	h.mu.Unlock()
	for _, c := range idle {
		c.abort()
	}
}

// armReaper makes sure that reap runs at some time soon after d. One timer serves all connections of the client.
func (c *Client) armReaper(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.armed && !c.closed {
		c.armed = true
		c.reaper.Reset(d)
	}
}

// reap closes the connections that have idled for too long. It runs in the timer's goroutine.
func (c *Client) reap() {
	c.mu.Lock()
	c.armed = false
	hosts := make([]*host, 0, len(c.hosts))
	for _, h := range c.hosts {
		hosts = append(hosts, h)
	}
	c.mu.Unlock()
	now := time.Now()
	next := time.Duration(-1)
	for _, h := range hosts {
		if d := h.reap(now); d >= 0 && (next < 0 || d < next) {
			next = d
		}
	}
	if next >= 0 {
		c.armReaper(max(next, 10*time.Millisecond))
	}
}

// reap returns how long the next connection has left, negative when none idles.
func (h *host) reap(now time.Time) time.Duration {
	next := time.Duration(-1)
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.idle[:0]
	for _, c := range h.idle {
		d := c.expires.Sub(now)
		if d <= 0 {
			c.abort()
			continue
		}
		if next < 0 || d < next {
			next = d
		}
		kept = append(kept, c)
	}
	clear(h.idle[len(kept):])
	h.idle = kept
	return next
}
