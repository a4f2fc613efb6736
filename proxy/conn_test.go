package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// brief is a short stream.
func brief(a *asked) { a.stream(); a.chunks(oc("ok"), fr("stop"), done); a.end() }

// either answers streams and whatever else is asked.
func either(a *asked) {
	if a.req.Method == "GET" || !strings.Contains(string(a.body), `"stream":true`) {
		a.answer(200, `{"choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
		return
	}
	brief(a)
}

// A stream takes its connection from fasthttp, which would hold a buffer for it all the
// while, and gives it back: SDKs keep connections, and must find them as they left them,
// whatever was answered on them before.
func TestOneConnectionServesStreamAfterStream(t *testing.T) {
	for _, over := range []string{"clear", "TLS"} {
		t.Run(over, func(t *testing.T) {
			s := start(t, newProvider(t, either))
			c := dial(t, s.addr)
			if over == "TLS" {
				c = dialTLS(t, s)
			}
			for i, kind := range []string{"stream", "stream", "call", "stream", "list", "list", "stream", "call"} {
				switch kind {
				case "stream":
					c.post("/v1/chat/completions", chatAsk)
				case "call":
					c.post("/v1/chat/completions", strings.Replace(chatAsk, `"stream":true`, `"stream":false`, 1))
				case "list":
					c.say("GET /v1/models HTTP/1.1\r\nHost: proxy\r\n\r\n")
				}
				res := c.response()
				got, err := allOf(res)
				if err != nil || res.StatusCode != 200 || res.Close || !strings.Contains(got, "ok") {
					t.Fatalf("request %d, a %s: %d %q, %v, close %v", i, kind, res.StatusCode, got, err, res.Close)
				}
			}
		})
	}
}

// alsoOn has s serve another listener too, which as makes of a bare one, until the test
// ends. It returns its address.
func (s *proxied) alsoOn(t *testing.T, as func(net.Listener) net.Listener) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(as(l))
	}()
	t.Cleanup(func() { l.Close(); within(t, "Serve returns", served) })
	return l.Addr().String()
}

// dialTLS is a client of a listener with TLS.
func dialTLS(t *testing.T, s *proxied) *client {
	t.Helper()
	over := &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}
	addr := s.alsoOn(t, func(l net.Listener) net.Listener { return tls.NewListener(l, over) })
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

// RFC 9112, section 9.3.2: requests may be sent before the answers to those before them
// have come, and are answered in their order.
func TestPipelinedRequestsAreAnsweredInTheirOrder(t *testing.T) {
	s := start(t, newProvider(t, either))
	one := func(path string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: proxy\r\nContent-Length: " + strconv.Itoa(len(chatAsk)) + "\r\n\r\n" + chatAsk
	}
	c := dial(t, s.addr).say(strings.Repeat(one("/v1/chat/completions"), 3) + "GET /v1/models HTTP/1.1\r\nHost: proxy\r\n\r\n")
	for i := range 4 {
		if got, err := allOf(c.response()); err != nil || !strings.Contains(got, "ok") {
			t.Fatalf("answer %d: %q, %v", i, got, err)
		}
	}
}

// Who asks for a close gets one behind the stream, and is told of it.
func TestStreamClosesTheConnectionWhereItIsAsked(t *testing.T) {
	s := start(t, newProvider(t, brief))
	c := dial(t, s.addr).post("/v1/chat/completions", chatAsk, "Connection: close")
	res := c.response()
	if got, err := allOf(res); err != nil || !res.Close || text(t, got) != "ok" {
		t.Errorf("%q, %v, close %v", got, err, res.Close)
	}
	if _, err := c.br.ReadByte(); err != io.EOF {
		t.Errorf("behind it: %v", err)
	}
}

// A connection that waits for its next request does not hold a shutdown up, and one that
// waits for too long is closed.
func TestIdleConnectionsOfStreamsEnd(t *testing.T) {
	t.Run("at a shutdown", func(t *testing.T) {
		s := start(t, newProvider(t, brief))
		c := dial(t, s.addr)
		if _, err := allOf(c.post("/v1/chat/completions", chatAsk).response()); err != nil {
			t.Fatal(err)
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if _, err := c.br.ReadByte(); err != io.EOF {
			t.Errorf("the connection: %v", err)
		}
	})
	t.Run("when their time is over", func(t *testing.T) {
		s := start(t, newProvider(t, brief), func(c *Config) { c.IdleTimeout = 20 * time.Millisecond })
		c := dial(t, s.addr)
		if _, err := allOf(c.post("/v1/chat/completions", chatAsk).response()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.br.ReadByte(); err != io.EOF {
			t.Errorf("the connection: %v", err)
		}
	})
}
