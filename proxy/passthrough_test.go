package proxy

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

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
	got, err := allOf(dial(t, s.addr).post("/v1/chat/completions", ask).response())
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(ask))); err != nil || text(t, got) != want {
		t.Errorf("another body arrived: %q, %v", got, err)
	}
	res := dial(t, s.addr).say("GET /v1/files/f/content HTTP/1.1\r\nHost: x\r\n\r\n").response()
	if got, err := allOf(res); err != nil || got != big || res.ContentLength != int64(len(big)) {
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
			if got, err := allOf(res); err != nil || text(t, got) != "ok" {
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
	if got, _ := allOf(res); res.StatusCode != 413 || !strings.Contains(got, "too big") {
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
			got, err := allOf(res)
			if res.StatusCode != 400 || got != "their words" || err != nil || res.Header.Get(headerProtection) != "off; reason="+c.reason {
				t.Errorf("%d %q %v %v", res.StatusCode, got, err, res.Header)
			}
			if a := p.next(); string(a.body) != c.body || a.req.Header.Get("Content-Encoding") != c.coding {
				t.Errorf("upstream got %q", a.body)
			}
		})
	}
}

// One client that sent no JSON again and again had an operator told that turns go without
// protection. What the provider refuses as the request's own fault is counted apart: there
// was nothing to protect.
func TestWhatTheProviderRefusesWasNotUnprotected(t *testing.T) {
	for name, c := range map[string]struct {
		answer  func(*asked)
		refused int64
	}{
		"it takes the request":       {func(a *asked) { a.answer(200, "{}") }, 0},
		"it refuses the request":     {func(a *asked) { a.answer(400, "bad JSON") }, 1},
		"it refuses the credential":  {func(a *asked) { a.answer(401, "no") }, 1},
		"it is busy":                 {func(a *asked) { a.answer(429, "later") }, 0},
		"it fails":                   {func(a *asked) { a.answer(503, "down") }, 0},
		"it ends without any answer": {func(a *asked) { a.c.Close() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, newProvider(t, c.answer))
			_, _ = allOf(dial(t, s.addr).post("/v1/chat/completions", "not json at all").response())
			if st := s.Stats(); st.Unprotectable != c.refused || st.Unprotected != 1-c.refused {
				t.Errorf("%d refused, %d unprotected", st.Unprotectable, st.Unprotected)
			}
		})
	}
}

// What is relayed untouched neither feeds the breakers nor obeys them: the caller gets
// the provider's own answer, once per request, and a model is not given up because a
// file cannot be had.
func TestUntouchedRequestsAndBreakers(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	p := newProvider(t, func(a *asked) {
		switch {
		case down.Load():
			a.answer(503, "their words")
		default:
			a.stream()
			a.chunks(oc("hi"), fr("stop"), done)
			a.end()
		}
	})
	s := start(t, p, func(c *Config) { c.Breaker = BreakerConfig{Failures: 2, Open: time.Hour} })
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		res := dial(t, s.addr).say(fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body)).response()
		got, _ := allOf(res)
		return res.StatusCode, got
	}
	untouched := func() {
		t.Helper()
		for _, r := range [][3]string{
			{"GET", "/v1/files/1", ""}, {"GET", "/v1/models", ""}, {"POST", "/v1/embeddings", `{"model":"gpt-x"}`},
			{"POST", "/v1/chat/completions", `{"model":"gpt-x","messages":`}, // not understood
		} {
			before := p.hits()
			if status, got := ask(r[0], r[1], r[2]); status != 503 || got != "their words" || p.hits() != before+1 {
				t.Errorf("%s %s: %d %q, %d requests", r[0], r[1], status, got, p.hits()-before)
			}
		}
	}
	untouched()
	untouched()
	if b := s.Stats().Breakers; len(b) != 0 {
		t.Errorf("they fed a breaker: %+v", b)
	}
	down.Store(false)
	if status, got := ask("POST", "/v1/chat/completions", chatAsk); status != 200 {
		t.Errorf("%d %s", status, got)
	}
	down.Store(true)
	for range 3 {
		ask("POST", "/v1/chat/completions", chatAsk)
	}
	if b := s.Stats().Breakers; len(b) != 1 || b[0].State != "open" {
		t.Fatalf("%+v", b)
	}
	untouched() // it is open, and theirs is still the provider's word
}

func TestUntouchedBodyThatIsCutIsCutForTheClient(t *testing.T) {
	for name, script := range map[string]func(*asked){
		"chunked":       func(a *asked) { a.stream(); a.chunk("data: 1\n\n"); a.fin() },
		"with a length": func(a *asked) { a.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"); a.fin() },
		"reset":         func(a *asked) { a.stream(); a.chunk("data: 1\n\n"); a.rst() },
	} {
		t.Run(name, func(t *testing.T) {
			res := dial(t, start(t, newProvider(t, script)).addr).say("GET /v1/files HTTP/1.1\r\nHost: x\r\n\r\n").response()
			if got, err := allOf(res); err == nil {
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
	if got, err := allOf(res); err != nil || got != "PURGE "+odd || res.Header.Get("Content-Encoding") != "br" {
		t.Errorf("%q %v %v", got, err, res.Header)
	}
}
