package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// errRetryWish is what the library meets wherever it would repeat a request by itself: it repeats up to seven times, sleeping in between,
// outside any budget (HOUSE 12.12). It wants to only when the request was not processed, so its wish is the proof.
var errRetryWish = errors.New("not processed by the provider")

// newTransport makes the one transport behind all HTTP/2 connections. It never dials: each request brings its connection along.
func newTransport(cfg Config) *http2.Transport {
	// The detour through http.Transport is the only way to set the window: what a slow reader lets pile up in memory per stream.
	t1 := &http.Transport{HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 1 << 20}}
	t, err := http2.ConfigureTransports(t1)
	if err != nil {
		panic("BUG: configure http2: " + err.Error())
	}
	t.ConnPool = bringYourOwn{}
	t.AllowHTTP = true
	t.DisableCompression = true
	t.MaxHeaderListSize = uint32(cfg.MaxHeaderBytes)
	t.IdleConnTimeout = cfg.IdleConnTimeout
	t.ReadIdleTimeout = max(cfg.PingInterval, 0)
	t.PingTimeout = cfg.PingTimeout
	if t.ReadIdleTimeout > 0 {
		t.WriteByteTimeout = cfg.PingTimeout
	}
	return t
}

// bringYourOwn is the transport's view of our pool: a request finds its connection in its context, once.
type bringYourOwn struct{}

type connKey struct{}

// brought is a connection for one use. The second time the library asks, it wants to repeat.
type brought struct {
	cc   *http2.ClientConn
	used bool // only touched by the goroutine in RoundTrip
}

func (bringYourOwn) GetClientConn(r *http.Request, _ string) (*http2.ClientConn, error) {
	b, _ := r.Context().Value(connKey{}).(*brought)
	if b == nil || b.used {
		return nil, errRetryWish
	}
	b.used = true
	return b.cc, nil
}

func (bringYourOwn) MarkDead(*http2.ClientConn) {}

// shared is an HTTP/2 connection of a host.
type shared struct {
	host *host
	cc   *http2.ClientConn
	live int  // streams that are reserved or open; guarded by the host, as is dead
	dead bool // it died under one of them
}

// enterLocked reserves a stream; false: there is no room for another one, or the connection takes none any more.
func (s *shared) enterLocked() bool {
	if s.live >= s.host.room || !s.cc.ReserveNewRequest() {
		return false
	}
	s.live++
	return true
}

// leave makes room for another stream. whole: this one came to its end.
func (s *shared) leave(whole bool) {
	h := s.host
	h.mu.Lock()
	defer h.mu.Unlock()
	s.live--
	if h.room == h.client.cfg.StreamsPerConn || !whole {
		return
	}
	if h.well++; h.well >= h.room {
		h.room, h.well = h.room+1, 0
	}
}

// failed is what the library reports of one of the streams, which has not left yet.
func (s *shared) failed(err error, op string, safety Safety) *Error {
	e := h2Error(err, s.cc, op, safety)
	if e.Conn != nil && e.Safety != NotSent {
		s.die()
	}
	return e
}

// die has fewer streams share a connection when one died under several: a peer that ends connections does it again.
func (s *shared) die() {
	h := s.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.dead && s.live > 1 {
		h.room, h.well = max(1, h.room/2), 0
	}
	s.dead = true
}

// addH2 starts HTTP/2 on a connection, reserves the first stream for the caller and shares the rest.
func (h *host) addH2(nc, raw net.Conn) (link, *Error) {
	cc, err := h.client.h2.NewClientConn(nc)
	if err != nil {
		_ = raw.Close()
		return nil, &Error{Op: OpDial, Safety: NotSent, Kind: kindOf(err), Err: err}
	}
	cc.ReserveNewRequest()
	s := &shared{host: h, cc: cc, live: 1}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.proto = protoH2
	live := h.h2[:0]
	for _, old := range h.h2 {
		if s := old.cc.State(); !s.Closed && !s.Closing {
			live = append(live, old)
		}
	}
	clear(h.h2[len(live):])
	h.h2 = live
	if h.closed {
		retire(cc)
	} else {
		h.h2 = append(h.h2, s)
	}
	return &h2link{shared: s}, nil
}

// retire closes an unused connection at once and a used one behind its last stream. No new stream is reserved meanwhile.
func retire(cc *http2.ClientConn) {
	cc.SetDoNotReuse()
	if s := cc.State(); s.StreamsActive == 0 && s.StreamsReserved == 0 && s.StreamsPending == 0 {
		_ = cc.Close()
	}
}

// deaf is how long a request may have waited for its response head in vain before its connection is held to be at fault,
// too, and takes no further one: a middlebox that answers pings for a dead server would swallow every retry.
const deaf = time.Second

// h2link is a reserved stream on a connection.
type h2link struct {
	*shared
	reused bool
}

func (l *h2link) open(ctx context.Context, t *Target, r *Request) (*Response, *Error) {
	// The stream outlives ctx, so it has a context of its own, which ends it with RST_STREAM CANCEL.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unbind := context.AfterFunc(ctx, cancel)
	own = context.WithValue(own, connKey{}, &brought{cc: l.cc})
	up := &h2upload{}
	began := time.Now()
	res, err := l.host.client.h2.RoundTrip(l.request(own, t, r, up))
	if !unbind() {
		cancel()
		s := Sent
		if err == nil {
			s = Partial
			_ = res.Body.Close()
		}
		l.leave(false)
		if time.Since(began) > deaf {
			retire(l.cc)
		}
		return nil, ended(ctx, OpHead, s)
	}
	if err != nil {
		cancel()
		e := l.openError(err, up)
		l.leave(false)
		return nil, e
	}
	out := &Response{Status: res.StatusCode, Proto: "HTTP/2.0", Reused: l.reused, Header: make(Header, 0, len(res.Header))}
	for name, values := range res.Header {
		for _, v := range values {
			out.Header = append(out.Header, Field{name, v})
		}
	}
	slices.SortStableFunc(out.Header, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	out.body = newH2Body(res.Body, l.shared, up, cancel)
	return out, nil
}

// request renders r for the library. The names of its own that it would add, User-Agent and Accept-Encoding, are held back.
func (l *h2link) request(ctx context.Context, t *Target, r *Request, up *h2upload) *http.Request {
	scheme := "https"
	if t.URL.Scheme == "h2c" {
		scheme = "http"
	}
	host := t.authority()
	req := &http.Request{
		Method: r.method(), Host: host, Header: make(http.Header, len(r.Header)+1), Proto: "HTTP/2.0", ProtoMajor: 2,
		// This form makes the library send the path as it is, "//" and bad escapes included: it strips its own prefix from it.
		URL: &url.URL{Scheme: scheme, Host: host, Opaque: "//" + host + r.Path},
	}
	for f := range r.endToEnd() {
		name := http.CanonicalHeaderKey(f.Name)
		req.Header[name] = append(req.Header[name], f.Value)
	}
	if req.Header["User-Agent"] == nil {
		req.Header["User-Agent"] = []string{""}
	}
	switch size := r.size(); {
	case r.BodyStream != nil && size != 0:
		up.r, up.left = r.BodyStream, size
		req.Body, req.ContentLength = up, size
	case size > 0:
		up.r, up.left = bytes.NewReader(r.Body), size
		req.Body, req.ContentLength = up, size
	}
	req.GetBody = func() (io.ReadCloser, error) { return nil, errRetryWish }
	return req.WithContext(ctx)
}

// openError says what a failure before the response head means.
func (l *h2link) openError(err error, up *h2upload) *Error {
	if serr, read := up.failure(); serr != nil {
		s := Sent
		if !read {
			s = NotSent
		}
		return &Error{Op: OpWrite, Safety: s, Kind: Source, Err: serr}
	}
	e := l.failed(err, OpHead, Sent)
	if errors.Is(err, errRetryWish) {
		e.Safety, e.Kind, e.Code = NotSent, NotProcessed, int(http2.ErrCodeRefusedStream)
		if l.cc.State().Closing {
			e.Code = int(http2.ErrCodeNo) // a GOAWAY, or a connection that closed before the stream existed
		}
	}
	return e
}

// h2upload is the request body as the library reads it. After Close, which the library calls when a stream ends, the caller's bytes
// are not touched again.
type h2upload struct {
	mu     sync.Mutex
	r      io.Reader
	left   int64 // bytes still to be read, -1 when only the reader knows
	closed bool
	read   bool
	err    error
}

func (u *h2upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return 0, io.ErrClosedPipe
	}
	if u.left == 0 {
		return 0, io.EOF
	}
	if u.left > 0 && int64(len(p)) > u.left {
		p = p[:u.left]
	}
	n, err := u.r.Read(p)
	u.read = u.read || n > 0
	if u.left > 0 {
		u.left -= int64(n)
		if err == io.EOF && u.left > 0 {
			err = errShortSource // the library would end the stream politely
		}
	}
	if err != nil && err != io.EOF {
		u.err = err
	}
	return n, err
}

func (u *h2upload) Close() error {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	return nil
}

func (u *h2upload) failure() (err error, read bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err, u.read
}
