package upstream

import (
	"io"
	"net/url"
	"strings"
	"testing"
	"time"
)

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

func TestHeadsThatAreRefused(t *testing.T) {
	for _, tc := range []struct {
		name, say string
		kind      Kind
		safety    Safety
	}{
		{"not HTTP at all", "SSH-2.0-OpenSSH_9\r\n", Protocol, Sent},
		{"TLS spoken to a clear port", "\x15\x03\x01\x00\x02\x02\x46", Protocol, Sent},
		{"HTTP/2 spoken unasked", "HTTP/2.0 200 OK\r\n\r\n", Protocol, Sent},
		{"status of two digits", "HTTP/1.1 20 OK\r\n\r\n", Protocol, Sent},
		{"status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", Protocol, Sent},
		{"signed status", "HTTP/1.1 +20 OK\r\n\r\n", Protocol, Sent},
		{"header without a colon", "HTTP/1.1 200 OK\r\nbroken\r\n\r\n", Protocol, Sent},
		{"blank before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n", Protocol, Sent},
		{"carriage return inside a value", "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", Protocol, Sent},
		{"fold without a field", "HTTP/1.1 200 OK\r\n folded\r\n\r\n", Protocol, Sent},
		{"two lengths that differ", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", Protocol, Partial},
		{"a list of lengths that differ", "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n", Protocol, Partial},
		{"negative length", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", Protocol, Partial},
		{"length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", Protocol, Partial},
		{"transfer coding that was not asked for", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Protocol, Partial},
		{"protocol switch", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", Protocol, Partial},
		{"too large", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 8<<10) + "\r\n\r\n", TooLarge, Sent},
		{"too large without an end", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 8<<10), TooLarge, Sent},
		{"endless informational heads", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 1000), TooLarge, Sent},
		{"endless empty lines", strings.Repeat("\r\n", 8<<10), TooLarge, Sent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPeer(t, func(_ int, w *wire) {
				w.request()
				w.say(tc.say)
				w.gone()
			})
			c := newClient(t, Config{MaxHeaderBytes: 4 << 10})
			_, err := c.Open(within(t), p.target("http"), post("{}"))
			if e := failure(t, err); e.Kind != tc.kind || e.Safety != tc.safety || e.Op != OpHead {
				t.Errorf("got %v, want %v, %v", e, tc.kind, tc.safety)
			}
		})
	}
}

func TestHeadsThatAreAccepted(t *testing.T) {
	for _, tc := range []struct {
		name, say, body string
		status          int
	}{
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", "ok", 200},
		{"empty reason", "HTTP/1.1 529 \r\nContent-Length: 2\r\n\r\nok", "ok", 529},
		{"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "ok", 200},
		{"empty lines first", "\r\n\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", 200},
		{"the same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2, 2\r\n\r\nok", "ok", 200},
		{"identity transfer coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok", "ok", 200},
		{"header close to the limit", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 30<<10) + "\r\nContent-Length: 2\r\n\r\nok", "ok", 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, err := scripted(t, io.EOF, []byte(tc.say))
			if err != nil {
				t.Fatal(err)
			}
			if body, err := drain(res); body != tc.body || err != io.EOF || res.Status != tc.status {
				t.Errorf("%d %q %v", res.Status, body, err)
			}
		})
	}
}

func TestHeadRequestHasNoBody(t *testing.T) {
	p := newPeer(t, func(_ int, w *wire) {
		for req, _ := w.request(); req != nil; req, _ = w.request() {
			w.say("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")
		}
	})
	c := newClient(t, Config{})
	for i := range 2 {
		res := open(t, c, p.target("http"), &Request{Method: "HEAD", Path: "/"})
		if body, err := drain(res); body != "" || err != io.EOF || res.Reused != (i == 1) || res.Header.Get("content-length") != "99" {
			t.Errorf("request %d: %q %v reused %v", i, body, err, res.Reused)
		}
	}
}

func TestIdleHint(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": time.Minute, "timeout=5": 4 * time.Second, "max=9, timeout=5": 4 * time.Second, "timeout=600": time.Minute,
		"timeout=1": 0, "timeout=0": 0, "timeout=x": time.Minute,
	} {
		h := &head{header: Header{{"keep-alive", value}}}
		if got := h.idleHint(time.Minute); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}
