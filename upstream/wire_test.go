package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests; nothing is measured by it.
const patience = 20 * time.Second

// peer is a provider written by hand: each accepted connection is given to serve, by its number, on a goroutine of its own.
type peer struct {
	ln net.Listener
	wg sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func newPeer(t *testing.T, serve func(n int, c *wire)) *peer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{ln: ln}
	p.wg.Add(1)
	go p.accept(t, serve)
	t.Cleanup(p.close)
	return p
}

func (p *peer) accept(t *testing.T, serve func(int, *wire)) {
	defer p.wg.Done()
	for n := 0; ; n++ {
		nc, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns = append(p.conns, nc)
		p.mu.Unlock()
		p.wg.Add(1)
		go func() {
			defer p.wg.Done()
			defer nc.Close()
			serve(n, &wire{t: t, Conn: nc, br: bufio.NewReader(nc)})
		}()
	}
}

func (p *peer) close() {
	p.ln.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// served stops accepting and waits until every connection has been served to its end, without closing any.
func (p *peer) served() {
	p.ln.Close()
	p.wg.Wait()
}

func (p *peer) accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *peer) target(scheme string) *Target {
	return &Target{Name: "test", URL: &url.URL{Scheme: scheme, Host: p.ln.Addr().String()}}
}

// wire is the provider's end of a connection.
type wire struct {
	net.Conn
	t  *testing.T
	br *bufio.Reader
}

// request reads one request and its body; nil when the client closed.
func (w *wire) request() (*http.Request, []byte) {
	req, err := http.ReadRequest(w.br)
	if err != nil {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, nil
	}
	return req, body
}

func (w *wire) say(s string) { _, _ = io.WriteString(w.Conn, s) }

// reset closes with RST.
func (w *wire) reset() {
	_ = w.Conn.(*net.TCPConn).SetLinger(0)
	w.Close()
}

// fin ends the provider's direction politely. A plain close would turn into an RST wherever the client's bytes lie unread.
func (w *wire) fin() { _ = w.Conn.(*net.TCPConn).CloseWrite() }

// gone blocks until the client closed its end.
func (w *wire) gone() { _, _ = io.Copy(io.Discard, w.br) }

func newClient(t *testing.T, cfg Config) *Client {
	t.Helper()
	if cfg.Proxy == nil {
		cfg.Proxy = NoProxy
	}
	c := New(cfg)
	t.Cleanup(c.Close)
	return c
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func post(body string) *Request {
	return &Request{Method: "POST", Path: "/v1/messages?beta=true", Header: Header{{"Content-Type", "application/json"}}, Body: []byte(body)}
}

func open(t *testing.T, c *Client, to *Target, r *Request) *Response {
	t.Helper()
	res, err := c.Open(within(t), to, r)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { res.Close() })
	return res
}

// drain reads to the end and returns the bytes and the last word.
func drain(res *Response) (string, error) {
	var b []byte
	for {
		p, err := res.Next()
		b = append(b, p...)
		if err == ErrWoken {
			continue
		}
		if err != nil {
			return string(b), err
		}
	}
}

// failure asserts an *Error and returns it.
func failure(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, want an *Error", err)
	}
	return e
}
