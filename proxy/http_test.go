package proxy

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/upstream"
)

// FIELD-REPORTS F1, F2: a provider that compresses whatever it is asked, flushing
// per event. The client gets plain events on time and a header that says so.
func TestCompressedAnswerIsDecodedEventByEvent(t *testing.T) {
	read := make(chan struct{})
	p := newProvider(t,
		func(a *asked) {
			a.stream("Content-Encoding: gzip")
			z := gzip.NewWriter(chunkWriter{a})
			io.WriteString(z, oc("one two three four five six "))
			z.Flush()
			<-read // the client has the event although the next is not sent
			a.rst()
		},
		func(a *asked) {
			a.stream()
			a.chunks(oc("one two three four five six seven"), fr("stop"), done)
			a.end()
		},
	)
	s := start(t, p)
	res := dial(t, s.addr).post("/v1/chat/completions", chatAsk, "Accept-Encoding: gzip, deflate, br, zstd").response()
	head := until(t, res.Body, "six ")
	close(read)
	rest, err := allOf(res)
	if got := text(t, head+rest); err != nil || got != "one two three four five six seven" {
		t.Fatalf("client read %q, %v", got, err)
	}
	if res.Header.Get("Content-Encoding") != "" {
		t.Error("plain events labelled as compressed")
	}
	if got := p.next().req.Header.Values("Accept-Encoding"); len(got) != 1 || got[0] != "identity" {
		t.Errorf("Accept-Encoding upstream: %q", got)
	}
}

type chunkWriter struct{ a *asked }

func (w chunkWriter) Write(p []byte) (int, error) { w.a.chunk(string(p)); return len(p), nil }

// B8, F14: an event is at the client before the next one is sent.
func TestEachEventIsFlushed(t *testing.T) {
	for _, path := range []string{"/v1/chat/completions", "/v1/other"} {
		t.Run(path, func(t *testing.T) {
			next := make(chan struct{})
			p := newProvider(t, func(a *asked) {
				a.stream()
				for i := range 20 {
					a.chunk(oc(fmt.Sprintf("word%d. ", i)))
					<-next
				}
				a.chunks(fr("stop"), done)
				a.end()
			})
			s := start(t, p)
			res := dial(t, s.addr).post(path, chatAsk).response()
			for i := range 20 {
				until(t, res.Body, fmt.Sprintf("word%d. ", i))
				next <- struct{}{}
			}
			if _, err := allOf(res); err != nil {
				t.Fatal(err)
			}
			if path == "/v1/chat/completions" && (res.Header.Get("X-Accel-Buffering") != "no" || res.Header.Get("Cache-Control") != "no-cache") {
				t.Errorf("header %v", res.Header)
			}
		})
	}
}

func TestConnectionIsKeptAndItsDeathSurvived(t *testing.T) {
	ok := func(a *asked) { a.stream(); a.chunks(oc("ok"), fr("stop"), done); a.end() }
	p := newProvider(t, ok, func(a *asked) { ok(a); a.fin() }, ok)
	s := start(t, p)
	c := dial(t, s.addr)
	for i := range 3 {
		if got, err := allOf(c.post("/v1/chat/completions", chatAsk).response()); err != nil || text(t, got) != "ok" {
			t.Fatalf("request %d: %q, %v", i, got, err)
		}
		// The settler gives the connection back behind the client's end.
		eventually(t, "settled", func() bool { return len(s.settling) == 0 })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns > 2 {
		t.Errorf("%d connections for three requests, one of which ended its connection", p.conns)
	}
}

// F10: a length that the splice would belie is not relayed.
func TestContentLengthOfAStreamIsDropped(t *testing.T) {
	said := oc("one two three four five six seven ")
	p := newProvider(t,
		func(a *asked) {
			a.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 5000\r\n\r\n" + said)
			a.fin()
		},
		func(a *asked) {
			a.stream()
			a.chunks(oc("one two three four five six seven eight"), fr("stop"), done)
			a.end()
		},
	)
	res := dial(t, start(t, p).addr).post("/v1/chat/completions", chatAsk).response()
	got, err := allOf(res)
	if err != nil || res.ContentLength != -1 || text(t, got) != "one two three four five six seven eight" {
		t.Fatalf("length %d, %q, %v", res.ContentLength, got, err)
	}
}

// F11, F16, F21: what travels and what does not, both ways.
func TestHeaders(t *testing.T) {
	p := newProvider(t, func(a *asked) {
		a.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n" +
			"x-ratelimit-remaining: 7\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\nServer: theirs\r\nDate: then\r\nTransfer-Encoding: chunked\r\n\r\n")
		a.chunks(oc("ok"), fr("stop"), done)
		a.end()
	})
	s := start(t, p)
	for _, path := range []string{"/v1/chat/completions", "/v1/other"} {
		t.Run(path, func(t *testing.T) {
			res := dial(t, s.addr).post(path, chatAsk,
				"Connection: X-Mine, keep-alive", "X-Mine: 1", "Keep-Alive: 1", "TE: trailers", "Proxy-Authorization: Basic x", "Upgrade: h2c",
				"X-Run-Id: run-7", "X-Stream-Recovery: transparent", "X-Run-On-Disconnect: finish",
				"anthropic-beta: one", "anthropic-beta: two", "Authorization: Bearer k", "lower-case: v").response()
			allOf(res)
			up := p.next()
			for _, gone := range []string{"X-Mine", "Keep-Alive", "Te", "Proxy-Authorization", "Upgrade", "X-Run-Id", "X-Stream-Recovery", "X-Run-On-Disconnect", "Connection"} {
				if v := up.req.Header.Values(gone); len(v) > 0 {
					t.Errorf("%s: %q went upstream", gone, v)
				}
			}
			if got := up.req.Header.Values("anthropic-beta"); len(got) != 2 || got[0] != "one" || got[1] != "two" {
				t.Errorf("anthropic-beta upstream: %q", got)
			}
			if !strings.Contains(up.head, "\r\nlower-case: v\r\n") || up.req.Header.Get("Authorization") != "Bearer k" {
				t.Errorf("upstream got %s", up.head)
			}
			if want := p.l.Addr().String(); up.req.Host != want {
				t.Errorf("Host upstream %q, want %q", up.req.Host, want)
			}
			for _, gone := range []string{"X-Hop", "Keep-Alive"} {
				if res.Header.Get(gone) != "" {
					t.Errorf("%s reached the client", gone)
				}
			}
			if res.Header.Get("x-ratelimit-remaining") != "7" || len(res.Header.Values("Set-Cookie")) != 2 || res.Header.Get("Server") != "theirs" || len(res.Header.Values("Date")) != 1 {
				t.Errorf("response header %v", res.Header)
			}
			if got := res.Header.Get("X-Run-Id"); path == "/v1/chat/completions" && got != "run-7" {
				t.Errorf("X-Run-Id %q", got)
			}
		})
	}
}

// F21: a continuation carries what the request carried.
func TestContinuationKeepsHeadersAndQuery(t *testing.T) {
	p := newProvider(t,
		func(a *asked) { a.stream(); a.chunks(ms(), mt("one two three")); a.rst() },
		func(a *asked) { a.stream(); a.chunks(ms(), mt(" four"), me()); a.end() },
	)
	s := start(t, p)
	allOf(dial(t, s.addr).post("/v1/messages?beta=true", messagesAsk, "anthropic-beta: one", "anthropic-beta: two", "x-api-key: k", "anthropic-version: 2023-06-01").response())
	p.next()
	a := p.next()
	if a.path != "/v1/messages?beta=true" || len(a.req.Header.Values("anthropic-beta")) != 2 || a.req.Header.Get("x-api-key") != "k" || a.req.Header.Get("anthropic-version") == "" {
		t.Errorf("continuation: %s", a.head)
	}
}

func TestUpstreamOwnCredentialAndHeaders(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.answer(200, "{}") })
	s := start(t, p, func(c *Config) {
		c.Upstreams[2].Credential = upstream.Field{Name: "api-key", Value: "theirs"}
		c.Upstreams[2].Header = upstream.Header{{Name: "X-Title", Value: "unbroken"}}
		c.Upstreams[2].Host = "provider.example"
	})
	allOf(dial(t, s.addr).post("/u/other/v1/chat/completions", `{"model":"m","messages":[]}`, "Authorization: Bearer mine", "x-title: client").response())
	a := p.next()
	if strings.Contains(a.head, "mine") || a.req.Header.Get("api-key") != "theirs" || a.req.Header.Get("X-Title") != "unbroken" || a.req.Host != "provider.example" || a.path != "/api/v1/chat/completions" {
		t.Errorf("upstream got %s", a.head)
	}
}

// F23: labels are not believed.
func TestMislabelledStreamIsRelabelled(t *testing.T) {
	for _, label := range []string{"application/json", "text/plain", ""} {
		header := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
		if label != "" {
			header += "Content-Type: " + label + "\r\n"
		}
		p := newProvider(t, func(a *asked) { a.say(header + "\r\n"); a.chunks(oc("ok"), fr("stop"), done); a.end() })
		res := dial(t, start(t, p).addr).post("/v1/chat/completions", chatAsk).response()
		got, err := allOf(res)
		if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") || text(t, got) != "ok" || err != nil {
			t.Errorf("%q became %q: %q, %v", label, res.Header.Get("Content-Type"), got, err)
		}
	}
}
