package proxy

import (
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/relay"
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
	rest, err := body2(res)
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
			if _, err := body2(res); err != nil {
				t.Fatal(err)
			}
			if path == "/v1/chat/completions" && (res.Header.Get("X-Accel-Buffering") != "no" || res.Header.Get("Cache-Control") != "no-cache") {
				t.Errorf("header %v", res.Header)
			}
		})
	}
}

// FIELD-REPORTS F4: big bodies arrive whole, up and down.
func TestBodiesOfFiftyMegabytes(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 50<<20/16)
	ask := `{"model":"m","stream":true,"messages":[{"role":"user","content":"` + big + `"}]}`
	p := newProvider(t, func(a *asked) {
		if a.req.Method == "GET" {
			a.answer(200, big)
			return
		}
		a.stream()
		a.chunks(oc(fmt.Sprintf("%x", sha256.Sum256(a.body))), fr("stop"), done)
		a.end()
	})
	s := start(t, p)
	got, err := body2(dial(t, s.addr).post("/v1/chat/completions", ask).response())
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(ask))); err != nil || text(t, got) != want {
		t.Errorf("another body arrived: %q, %v", got, err)
	}
	res := dial(t, s.addr).say("GET /v1/files/f/content HTTP/1.1\r\nHost: x\r\n\r\n").response()
	if got, err := body2(res); err != nil || got != big || res.ContentLength != int64(len(big)) {
		t.Errorf("%d bytes came down, %v", len(got), err)
	}
}

// Above the limit a body is streamed through, and the response says that it is
// not protected.
func TestBodyAboveTheLimitIsStreamedThroughUnprotected(t *testing.T) {
	ask := `{"model":"m","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("x", 3<<20) + `"}]}`
	for name, send := range map[string]func(*client){
		"with a length": func(c *client) { c.post("/v1/chat/completions", ask) },
		"chunked": func(c *client) {
			c.say("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
			for rest := ask; rest != ""; {
				n := min(len(rest), 100_000)
				c.say(fmt.Sprintf("%x\r\n%s\r\n", n, rest[:n]))
				rest = rest[n:]
			}
			c.say("0\r\n\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, func(a *asked) { a.stream(); a.chunks(oc("ok"), fr("stop"), done); a.end() })
			s := start(t, p, func(c *Config) { c.MaxBody = 1 << 20 })
			c := dial(t, s.addr)
			send(c)
			res := c.response()
			if got, err := body2(res); err != nil || text(t, got) != "ok" {
				t.Fatalf("%q, %v", got, err)
			}
			if got := res.Header.Get(headerProtection); got != "off; reason=body_too_large" {
				t.Errorf("%s: %q", headerProtection, got)
			}
			if a := p.next(); string(a.body) != ask {
				t.Errorf("%d bytes arrived of %d", len(a.body), len(ask))
			}
			// The connection is in step for the next request.
			if got := c.post("/v1/chat/completions", chatAsk).response(); got.StatusCode != 200 {
				t.Errorf("next request: %d", got.StatusCode)
			}
		})
	}
}

// A provider that answers before it has read the body must not make two readers
// of the client's connection.
func TestAnswerBeforeTheBodyWasTaken(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.answer(413, `{"error":{"message":"too big"}}`); a.hang() })
	s := start(t, p)
	c := dial(t, s.addr)
	c.say("POST /v1/files HTTP/1.1\r\nHost: x\r\nX-Test-Unread: 1\r\nContent-Length: 100000000\r\n\r\n" + strings.Repeat("x", 1<<20))
	res := c.response()
	if got, _ := body2(res); res.StatusCode != 413 || !strings.Contains(got, "too big") {
		t.Fatalf("%d %q", res.StatusCode, got)
	}
	eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
}

// F5: a redirect is the client's to follow, a kept connection that died costs
// nothing.
func TestRedirectIsRelayed(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.answer(307, "", "Location: http://127.0.0.1:1/elsewhere") })
	s := start(t, p)
	res := dial(t, s.addr).post("/v1/chat/completions", chatAsk, "Authorization: Bearer secret").response()
	if res.StatusCode != 307 || res.Header.Get("Location") == "" || p.hits() != 1 {
		t.Fatalf("%d, %d requests", res.StatusCode, p.hits())
	}
}

func TestConnectionIsKeptAndItsDeathSurvived(t *testing.T) {
	ok := func(a *asked) { a.stream(); a.chunks(oc("ok"), fr("stop"), done); a.end() }
	p := newProvider(t, ok, func(a *asked) { ok(a); a.fin() }, ok)
	s := start(t, p)
	c := dial(t, s.addr)
	for i := range 3 {
		if got, err := body2(c.post("/v1/chat/completions", chatAsk).response()); err != nil || text(t, got) != "ok" {
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

// F7, WIRE 2.2: the caller's key is for the caller's body.
func TestIdempotencyKey(t *testing.T) {
	said := "one two three four five six seven "
	p := newProvider(t,
		func(a *asked) { a.answer(503, "{}") },
		func(a *asked) { a.stream(); a.chunks(oc(said)); a.rst() },
		func(a *asked) { a.stream(); a.chunks(oc(said+"eight"), fr("stop"), done); a.end() },
	)
	s := start(t, p)
	if got, err := body2(dial(t, s.addr).post("/v1/chat/completions", chatAsk, "Idempotency-Key: mine").response()); err != nil || text(t, got) != said+"eight" {
		t.Fatalf("%q, %v", got, err)
	}
	var keys []string
	for range 3 {
		keys = append(keys, strings.Join(p.next().req.Header.Values("Idempotency-Key"), ","))
	}
	if keys[0] != "mine" || keys[1] != "mine" || keys[2] == "mine" || len(keys[2]) < 20 {
		t.Errorf("keys upstream: %q", keys)
	}
}

// F8: nothing about a stream is bounded by its length in time.
func TestLongStreamOutlivesEveryTimeout(t *testing.T) {
	p := newProvider(t, func(a *asked) {
		a.stream()
		for range 30 {
			a.chunk(oc("word "))
			time.Sleep(10 * time.Millisecond) // the provider's pace
		}
		a.chunks(fr("stop"), done)
		a.end()
	})
	s := start(t, p, func(c *Config) {
		c.HeaderTimeout, c.BodyStall, c.WriteStall, c.IdleTimeout, c.PassHead = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	})
	for _, path := range []string{"/v1/chat/completions", "/v1/other"} {
		if got, err := body2(dial(t, s.addr).post(path, chatAsk).response()); err != nil || strings.Count(got, "word ") != 30 {
			t.Errorf("%s: %d words, %v", path, strings.Count(got, "word "), err)
		}
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
	got, err := body2(res)
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
			body2(res)
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
	body2(dial(t, s.addr).post("/v1/messages?beta=true", messagesAsk, "anthropic-beta: one", "anthropic-beta: two", "x-api-key: k", "anthropic-version: 2023-06-01").response())
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
	body2(dial(t, s.addr).post("/u/other/v1/chat/completions", `{"model":"m","messages":[]}`, "Authorization: Bearer mine", "x-title: client").response())
	a := p.next()
	if strings.Contains(a.head, "mine") || a.req.Header.Get("api-key") != "theirs" || a.req.Header.Get("X-Title") != "unbroken" || a.req.Host != "provider.example" || a.path != "/api/v1/chat/completions" {
		t.Errorf("upstream got %s", a.head)
	}
}

// F13.
func TestExpectContinueIsAnswered(t *testing.T) {
	for _, path := range []string{"/v1/chat/completions", "/v1/files"} {
		t.Run(path, func(t *testing.T) {
			p := newProvider(t, func(a *asked) { a.answer(200, `{"ok":1}`) })
			s := start(t, p)
			ask := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", 2<<20) + `"}]}`
			c := dial(t, s.addr)
			c.say(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", path, len(ask)))
			if line, err := c.br.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
				t.Fatalf("%q, %v", line, err)
			}
			c.br.ReadString('\n')
			res := c.say(ask).response()
			if got, err := body2(res); err != nil || res.StatusCode != 200 || got != `{"ok":1}` {
				t.Fatalf("%d %q %v", res.StatusCode, got, err)
			}
			a := p.next()
			if string(a.body) != ask || a.req.Header.Get("Expect") != "" || p.hits() != 1 {
				t.Errorf("%d bytes arrived, Expect %q, %d requests", len(a.body), a.req.Header.Get("Expect"), p.hits())
			}
		})
	}
}

// F15.
func TestIdleConnectionsOutliveClientPools(t *testing.T) {
	if got := (Config{}).withDefaults().IdleTimeout; got < 120*time.Second {
		t.Errorf("idle timeout %v", got)
	}
}

// F17: a proxy environment that points at Unbroken itself ends here, and says so.
func TestForwardProxyRequestsAreRefused(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.answer(200, "{}") })
	s := start(t, p)
	for _, line := range []string{"GET http://api.example/v1/models HTTP/1.1", "CONNECT api.example:443 HTTP/1.1"} {
		res := dial(t, s.addr).say(line + "\r\nHost: api.example\r\n\r\n").response()
		if got, _ := body2(res); res.StatusCode != 400 || !strings.Contains(got, "HTTP_PROXY") {
			t.Errorf("%s: %d %s", line, res.StatusCode, got)
		}
	}
	if p.hits() != 0 {
		t.Error("it was forwarded")
	}
}

// F18.
func TestLocalhostIsBothLoopbacks(t *testing.T) {
	ls, err := Listen("localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range ls {
		defer l.Close()
	}
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("this machine has no ::1")
	} else {
		l.Close()
	}
	if len(ls) != 2 || !strings.HasPrefix(ls[0].Addr().String(), "127.0.0.1:") || !strings.HasPrefix(ls[1].Addr().String(), "[::1]:") ||
		ls[0].Addr().(*net.TCPAddr).Port != ls[1].Addr().(*net.TCPAddr).Port {
		t.Errorf("listens on %v", ls)
	}
	if _, err := Listen(ls[0].Addr().String()); err == nil || !strings.Contains(err.Error(), "in use; stop what uses it") {
		t.Errorf("busy port: %v", err)
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
		got, err := body2(res)
		if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") || text(t, got) != "ok" || err != nil {
			t.Errorf("%q became %q: %q, %v", label, res.Header.Get("Content-Type"), got, err)
		}
	}
}

// F24: a canary in every place a secret can be.
func TestNoSecretInTheLog(t *testing.T) {
	const canary = "canary-7f3a"
	p := newProvider(t, func(a *asked) {
		if a.n%2 == 0 {
			a.stream("Set-Cookie: " + canary)
			a.chunks(oc(canary))
		}
		a.rst()
	})
	s := start(t, p, relayed(func(c *relay.Config) { c.Recoveries = 1 }))
	for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/v1/other", "/u/other/v1/models"} {
		c := dial(t, s.addr).post(path+"?key="+canary, strings.Replace(chatAsk, "Say it", canary, 1),
			"Authorization: Bearer "+canary, "x-api-key: "+canary, "api-key: "+canary, "Cookie: s="+canary, "Bad\x01Name: "+canary)
		io.Copy(io.Discard, c.br)
		c = dial(t, s.addr).post(path+"?key="+canary, chatAsk, "Authorization: Bearer "+canary, "Cookie: s="+canary, "Connection: close")
		io.Copy(io.Discard, c.br)
	}
	io.Copy(io.Discard, dial(t, s.addr).say("GARBAGE "+canary+"\r\n\r\n").br)
	eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
	if log := s.log.String(); strings.Contains(log, canary) || log == "" {
		t.Errorf("the log: %s", log)
	}
}

// G5: a hint that is too far off goes to the client at once, with everything the
// provider said.
func TestFarRetryAfterIsHandedOn(t *testing.T) {
	p := newProvider(t, func(a *asked) {
		a.answer(429, `{"error":{"message":"later","type":"rate_limit_error"}}`, "retry-after: 287441", "anthropic-ratelimit-requests-remaining: 0")
	})
	res := dial(t, start(t, p).addr).post("/v1/messages", messagesAsk).response()
	if res.StatusCode != 429 || res.Header.Get("retry-after") != "287441" || res.Header.Get("anthropic-ratelimit-requests-remaining") != "0" || p.hits() != 1 {
		t.Errorf("%d %v, %d requests", res.StatusCode, res.Header, p.hits())
	}
}

// G3: what the provider refuses is relayed as it is, once.
func TestPermanentRefusalIsRelayed(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 413, 422} {
		body := fmt.Sprintf(`{"error": {"message":"no %d","type":"invalid_request_error"}}`, status)
		p := newProvider(t, func(a *asked) { a.answer(status, body, "Content-Type: application/json") })
		res := dial(t, start(t, p).addr).post("/v1/chat/completions", chatAsk).response()
		got, err := body2(res)
		if res.StatusCode != status || got != body || err != nil || p.hits() != 1 || res.Header.Get("x-should-retry") != "" {
			t.Errorf("%d: %d %q %v, %d requests", status, res.StatusCode, got, err, p.hits())
		}
	}
}

// G7: no stream ever sees a word of another.
func TestInterruptedStreamsDoNotMix(t *testing.T) {
	p := newProvider(t, func(a *asked) {
		me := a.req.Header.Get("X-Test-Token")
		said := "this is the answer for " + me + " and "
		a.stream()
		if strings.Contains(string(a.body), "the answer for") { // a continuation
			a.chunks(oc(said+"nobody else"), fr("stop"), done)
			a.end()
			return
		}
		a.chunk(oc(said))
		a.rst()
	})
	s := start(t, p)
	var wg sync.WaitGroup
	for i := range 100 {
		c := dial(t, s.addr)
		wg.Add(1)
		go func() {
			defer wg.Done()
			token := fmt.Sprintf("caller%03d", i)
			io.WriteString(c.c, fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Test-Token: %s\r\nX-Request-Id: same\r\nContent-Length: %d\r\n\r\n%s", token, len(chatAsk), chatAsk))
			res, err := http.ReadResponse(c.br, nil)
			if err != nil {
				t.Error(err)
				return
			}
			got, err := body2(res)
			if want := "this is the answer for " + token + " and nobody else"; err != nil || text(t, got) != want {
				t.Errorf("%s got %q, %v", token, text(t, got), err)
			}
		}()
	}
	wg.Wait()
}

func TestWebSocketUpgradeIsRefusedAtOnce(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.answer(200, "{}") })
	s := start(t, p)
	res := dial(t, s.addr).say("GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\r\n").response()
	if res.StatusCode != 426 || res.Header.Get("Upgrade") == "" || p.hits() != 0 {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
}

// What is not understood is relayed, not broken.
func TestStrangeRequestsAreRelayedUntouched(t *testing.T) {
	for name, c := range map[string]struct{ body, coding, reason string }{
		"no JSON":         {"not json at all", "", unprotectedRequest},
		"broken JSON":     {`{"model":"m","messages":[`, "", unprotectedRequest},
		"nothing":         {"", "", unprotectedRequest},
		"a strange codec": {chatAsk, "snappy", unprotectedCoding},
		"a broken gzip":   {"\x1f\x8bgarbage", "gzip", unprotectedRequest},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, func(a *asked) { a.answer(400, "their words") })
			header := []string{"X-A: 1"}
			if c.coding != "" {
				header = append(header, "Content-Encoding: "+c.coding)
			}
			res := dial(t, start(t, p).addr).post("/v1/chat/completions", c.body, header...).response()
			got, err := body2(res)
			if res.StatusCode != 400 || got != "their words" || err != nil || res.Header.Get(headerProtection) != "off; reason="+c.reason {
				t.Errorf("%d %q %v %v", res.StatusCode, got, err, res.Header)
			}
			if a := p.next(); string(a.body) != c.body || a.req.Header.Get("Content-Encoding") != c.coding {
				t.Errorf("upstream got %q", a.body)
			}
		})
	}
}

func TestCompressedRequestIsReadAndForwardedAsItCame(t *testing.T) {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	io.WriteString(z, chatAsk)
	z.Close()
	said := "one two three four five six seven "
	p := newProvider(t,
		func(a *asked) { a.stream(); a.chunks(oc(said)); a.rst() },
		func(a *asked) { a.stream(); a.chunks(oc(said+"eight"), fr("stop"), done); a.end() },
	)
	got, err := body2(dial(t, start(t, p).addr).post("/v1/chat/completions", b.String(), "Content-Encoding: gzip").response())
	if err != nil || text(t, got) != said+"eight" {
		t.Fatalf("%q, %v", got, err)
	}
	if a := p.next(); string(a.body) != b.String() || a.req.Header.Get("Content-Encoding") != "gzip" {
		t.Error("the first attempt is not what the client sent")
	}
	if a := p.next(); !strings.HasPrefix(string(a.body), "{") || a.req.Header.Get("Content-Encoding") != "" {
		t.Errorf("the continuation is labelled %q: %q", a.req.Header.Get("Content-Encoding"), a.body)
	}
}

func TestWholeAnswerIsProtectedToo(t *testing.T) {
	const ask, answer = `{"model":"m","messages":[]}`, `{"id":"x", "choices":[]}`
	p := newProvider(t,
		func(a *asked) { a.say("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"id\""); a.fin() },
		func(a *asked) { a.answer(200, answer, "Content-Type: application/json") },
	)
	res := dial(t, start(t, p).addr).post("/v1/chat/completions", ask).response()
	got, err := body2(res)
	if err != nil || got != answer || res.ContentLength != int64(len(answer)) || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%q %v %v", got, err, res.Header)
	}
}

func TestUntouchedBodyThatIsCutIsCutForTheClient(t *testing.T) {
	for name, script := range map[string]func(*asked){
		"chunked":       func(a *asked) { a.stream(); a.chunk("data: 1\n\n"); a.fin() },
		"with a length": func(a *asked) { a.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"); a.fin() },
		"reset":         func(a *asked) { a.stream(); a.chunk("data: 1\n\n"); a.rst() },
	} {
		t.Run(name, func(t *testing.T) {
			res := dial(t, start(t, newProvider(t, script)).addr).say("GET /v1/files HTTP/1.1\r\nHost: x\r\n\r\n").response()
			if got, err := body2(res); err == nil {
				t.Errorf("the cut is hidden: %q", got)
			}
		})
	}
}

func TestUntouchedOddities(t *testing.T) {
	p := newProvider(t, func(a *asked) {
		switch a.req.Method {
		case "HEAD":
			a.say("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nX-Kind: head\r\n\r\n")
		case "DELETE":
			a.say("HTTP/1.1 204 No Content\r\n\r\n")
		default:
			a.answer(200, a.req.Method+" "+a.path, "Content-Encoding: br", "ETag: x")
		}
	})
	s := start(t, p)
	c := dial(t, s.addr)
	c.say("HEAD /v1/files/1 HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(c.br, &http.Request{Method: "HEAD"})
	if err != nil || res.Header.Get("Content-Length") != "12345" || res.Header.Get("X-Kind") != "head" {
		t.Fatalf("HEAD: %v %v", res, err)
	}
	if res := c.say("DELETE /v1/files/1 HTTP/1.1\r\nHost: x\r\n\r\n").response(); res.StatusCode != 204 {
		t.Errorf("DELETE: %v", res)
	}
	const odd = "/v1//odd;x=%2f%zz/?a;b=//&c=%"
	res = c.say("PURGE " + odd + " HTTP/1.1\r\nHost: x\r\nAccept-Encoding: br\r\n\r\n").response()
	if got, err := body2(res); err != nil || got != "PURGE "+odd || res.Header.Get("Content-Encoding") != "br" {
		t.Errorf("%q %v %v", got, err, res.Header)
	}
}

func TestOwnRequestHeadersAreChecked(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.answer(200, "{}") })
	s := start(t, p)
	for _, h := range []string{"X-Run-Id: " + strings.Repeat("x", 200), "X-Run-Id: a/b", "X-Stream-Recovery: maybe"} {
		res := dial(t, s.addr).post("/v1/messages", messagesAsk, h).response()
		if got, _ := body2(res); res.StatusCode != 400 || !strings.Contains(got, `"type":"error"`) {
			t.Errorf("%s: %d %s", h, res.StatusCode, got)
		}
	}
	if p.hits() != 0 {
		t.Error("it was forwarded")
	}
}

func TestLoadIsBounded(t *testing.T) {
	p := newProvider(t, (*asked).hang)
	s := start(t, p, func(c *Config) { c.MaxStreams = 1 })
	dial(t, s.addr).post("/v1/chat/completions", chatAsk)
	p.next()
	res := dial(t, s.addr).post("/v1/chat/completions", chatAsk).response()
	if got, _ := body2(res); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || !strings.Contains(got, "MaxStreams") {
		t.Errorf("%d %s", res.StatusCode, got)
	}
}
