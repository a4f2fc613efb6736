package upstream

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// TestCancelInEveryPhase cancels Open wherever it may block. It must return with the cause, say what was sent, and the other end must
// see the connection, or for HTTP/2 the stream, end (FIELD-REPORTS G1).
func TestCancelInEveryPhase(t *testing.T) {
	errGone := errors.New("client went away")
	for _, tc := range []struct {
		name   string
		serve  func(t *testing.T, there func()) (*peer, *Target, Config)
		req    *Request
		op     string
		safety Safety
	}{
		{"in the proxy's tunnel", func(t *testing.T, there func()) (*peer, *Target, Config) {
			p := newPeer(t, func(_ int, w *wire) {
				_, _ = w.br.ReadString('\n')
				there()
				w.gone()
			})
			return p, &Target{Name: "test", URL: mustURL("https://provider.test")}, Config{Proxy: through("http", p, nil)}
		}, post("{}"), OpDial, NotSent},
		{"in the TLS handshake", func(t *testing.T, there func()) (*peer, *Target, Config) {
			p := newPeer(t, func(_ int, w *wire) {
				_, _ = w.br.ReadByte()
				there()
				w.gone()
			})
			return p, p.target("https"), Config{}
		}, post("{}"), OpTLS, NotSent},
		{"in the middle of an upload", func(t *testing.T, there func()) (*peer, *Target, Config) {
			p := newPeer(t, func(_ int, w *wire) {
				_, _ = w.br.ReadString('\n')
				there()
				w.gone()
			})
			return p, p.target("http"), Config{}
		}, &Request{Method: "POST", Path: "/", BodyStream: endless{}, BodySize: -1}, OpHead, Sent},
		{"before the head", func(t *testing.T, there func()) (*peer, *Target, Config) {
			p := newPeer(t, func(_ int, w *wire) {
				w.request()
				there()
				w.gone()
			})
			return p, p.target("http"), Config{}
		}, post("{}"), OpHead, Sent},
		{"inside the head", func(t *testing.T, there func()) (*peer, *Target, Config) {
			p := newPeer(t, func(_ int, w *wire) {
				w.request()
				w.say("HTTP/1.1 200 O")
				there()
				w.gone()
			})
			return p, p.target("http"), Config{}
		}, post("{}"), OpHead, Sent},
		{"before the head of HTTP/2", func(t *testing.T, there func()) (*peer, *Target, Config) {
			p := h2peer(t, func(_ int, f *frames) {
				f.request()
				there()
				if fr := f.next(http2.FrameRSTStream); fr == nil || fr.(*http2.RSTStreamFrame).ErrCode != http2.ErrCodeCancel {
					t.Errorf("provider saw %v, want RST_STREAM CANCEL", fr)
				}
			})
			return p, p.target("h2c"), Config{}
		}, post("{}"), OpHead, Sent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(within(t))
			p, to, cfg := tc.serve(t, func() { cancel(errGone) })
			_, err := newClient(t, cfg).Open(ctx, to, tc.req)
			e := failure(t, err)
			if e.Kind != Canceled || e.Op != tc.op || e.Safety != tc.safety || !errors.Is(err, errGone) {
				t.Errorf("got %v, want canceled in %s, %v", e, tc.op, tc.safety)
			}
			p.served() // hangs if the provider never sees the end
		})
	}
}

// overdue is a context whose deadline passes when the test says so.
type overdue struct {
	context.Context
	done chan struct{}
}

func (o overdue) Done() <-chan struct{} { return o.done }

func (o overdue) Err() error {
	select {
	case <-o.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestDeadlineOfOpenIsATimeout(t *testing.T) {
	ctx := overdue{within(t), make(chan struct{})}
	p := newPeer(t, func(_ int, w *wire) {
		w.request()
		close(ctx.done)
		w.gone()
	})
	_, err := newClient(t, Config{}).Open(ctx, p.target("http"), post("{}"))
	if e := failure(t, err); e.Kind != Timeout || e.Op != OpHead || e.Safety != Sent || !errors.Is(e, context.DeadlineExceeded) {
		t.Errorf("got %v", e)
	}
}

func TestDialTimeoutCoversTheHandshake(t *testing.T) {
	p := newPeer(t, func(_ int, w *wire) { w.gone() })
	_, err := newClient(t, Config{DialTimeout: 250 * time.Millisecond}).Open(within(t), p.target("https"), post("{}"))
	if e := failure(t, err); e.Kind != Timeout || e.Op != OpTLS || e.Safety != NotSent {
		t.Errorf("got %v", e)
	}
}

// TestContextOfOpenEndsWithOpen: a caller bounds the wait for the head with a timeout and must not lose the body to it.
func TestContextOfOpenEndsWithOpen(t *testing.T) {
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			more := make(chan struct{})
			to := tr.serve(t, func(send func([]byte), end func()) {
				<-more
				send([]byte("hello"))
				end()
			})
			ctx, cancel := context.WithCancel(within(t))
			res, err := newClient(t, Config{}).Open(ctx, to, post("{}"))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Close()
			cancel()
			close(more)
			if body, err := drain(res); body != "hello" || err != io.EOF {
				t.Errorf("%q, %v", body, err)
			}
		})
	}
}

// TestCloseIsSeenByTheProvider: with a reader blocked, with bytes unread, and from another goroutine.
func TestCloseIsSeenByTheProvider(t *testing.T) {
	for _, say := range []string{"", "5\r\nhello\r\n"} {
		p := newPeer(t, func(_ int, w *wire) {
			w.request()
			w.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + say)
			w.gone()
		})
		res := open(t, newClient(t, Config{}), p.target("http"), post("{}"))
		blocked := make(chan error, 1)
		go func() {
			_, err := drain(res)
			blocked <- err
		}()
		for range 3 {
			if err := res.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if e := failure(t, <-blocked); e.Kind != Canceled || e.Safety != Partial {
			t.Errorf("blocked Next returned %v", e)
		}
		p.served()
		res.Wake()
		if _, err := res.Next(); failure(t, err).Kind != Canceled {
			t.Errorf("Next behind Close returned %v", err)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// through sends everything to p as a proxy.
func through(scheme string, p *peer, user *url.Userinfo) func(*url.URL) (*url.URL, error) {
	return func(*url.URL) (*url.URL, error) {
		return &url.URL{Scheme: scheme, Host: p.ln.Addr().String(), User: user}, nil
	}
}

func TestRefusedConnection(t *testing.T) {
	p := newPeer(t, func(int, *wire) {})
	p.close()
	_, err := newClient(t, Config{}).Open(within(t), p.target("http"), post("{}"))
	if e := failure(t, err); e.Kind != Refused || e.Op != OpDial || e.Safety != NotSent {
		t.Errorf("got %v", e)
	}
}

// TestErrorsTellNoSecrets: credentials, path and query stay out of messages, whatever failed (FIELD-REPORTS F24).
func TestErrorsTellNoSecrets(t *testing.T) {
	const canary = "CANARY"
	r := &Request{Method: "POST", Path: "/v1/" + canary + "?key=" + canary, Header: Header{{"Authorization", "Bearer " + canary}}, Body: []byte(canary)}
	check := func(what string, err error) {
		t.Helper()
		if msg := failure(t, err).Error(); strings.Contains(msg, canary) || strings.ContainsAny(msg, "\r\n") {
			t.Errorf("%s: %q", what, msg)
		}
	}
	echo := newPeer(t, func(_ int, w *wire) {
		w.request()
		w.say(canary + "\r\n" + canary + "\r\n\r\n")
		w.gone()
	})
	c := newClient(t, Config{})
	_, err := c.Open(within(t), echo.target("http"), r)
	check("echoed request", err)

	refuse := newPeer(t, func(_ int, w *wire) {
		_, _ = w.br.ReadString('\n')
		w.say("HTTP/1.1 407 " + canary + "\r\nX: " + canary + "\r\n\r\n")
		w.gone()
	})
	c = newClient(t, Config{Proxy: through("http", refuse, url.UserPassword("user", canary))})
	_, err = c.Open(within(t), &Target{URL: mustURL("https://provider.test")}, r)
	check("refused tunnel", err)

	c = newClient(t, Config{Proxy: func(*url.URL) (*url.URL, error) { return nil, errors.New("invalid proxy http://u:" + canary + "@") }})
	_, err = c.Open(within(t), &Target{URL: mustURL("https://provider.test")}, r)
	check("unusable proxy", err)

	bad := *r
	bad.Header = Header{{"Authorization", canary + "\n"}}
	_, err = newClient(t, Config{}).Open(within(t), echo.target("http"), &bad)
	check("unusable header", err)
}
