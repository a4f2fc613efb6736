package proxy

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/relay"
)

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
			if got, err := allOf(res); err != nil || res.StatusCode != 200 || got != `{"ok":1}` {
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
		if got, _ := allOf(res); res.StatusCode != 400 || !strings.Contains(got, "HTTP_PROXY") {
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
	if _, err := Listen(ls[0].Addr().String()); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "in use; stop what uses it") {
		t.Errorf("busy port: %v", err)
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

func TestWebSocketUpgradeIsRefusedAtOnce(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.answer(200, "{}") })
	s := start(t, p)
	res := dial(t, s.addr).say("GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\r\n").response()
	if res.StatusCode != 426 || res.Header.Get("Upgrade") == "" || p.hits() != 0 {
		t.Errorf("%d %v", res.StatusCode, res.Header)
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
	got, err := allOf(dial(t, start(t, p).addr).post("/v1/chat/completions", b.String(), "Content-Encoding: gzip").response())
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

func TestOwnRequestHeadersAreChecked(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.answer(200, "{}") })
	s := start(t, p)
	for _, h := range []string{"X-Run-Id: " + strings.Repeat("x", 200), "X-Run-Id: a/b", "X-Stream-Recovery: maybe"} {
		res := dial(t, s.addr).post("/v1/messages", messagesAsk, h).response()
		if got, _ := allOf(res); res.StatusCode != 400 || !strings.Contains(got, `"type":"error"`) {
			t.Errorf("%s: %d %s", h, res.StatusCode, got)
		}
	}
	if p.hits() != 0 {
		t.Error("it was forwarded")
	}
}

func TestLoadIsBounded(t *testing.T) {
	p := newProvider(t, (*asked).hang)
	s := start(t, p, func(c *Config) { c.MaxStreams, c.QueueWait = 1, -1 })
	dial(t, s.addr).post("/v1/chat/completions", chatAsk)
	p.next()
	res := dial(t, s.addr).post("/v1/chat/completions", chatAsk).response()
	if got, _ := allOf(res); res.StatusCode != 429 || res.Header.Get("Retry-After") == "" || res.Header.Get("x-should-retry") != "true" || !strings.Contains(got, "MaxStreams") {
		t.Errorf("%d %s", res.StatusCode, got)
	}
}

// What cannot be put on the wire is the client's mistake: it is told so, and no
// recovery is spent on it.
func TestControlCharactersAreRefused(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.answer(200, "{}") })
	s := start(t, p)
	for name, head := range map[string]string{
		"in the target": "POST /v1/messages?x=\x7f HTTP/1.1\r\nHost: x\r\n",
		"in a value":    "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-A: a\x01b\r\n",
	} {
		res := dial(t, s.addr).say(head + "Content-Length: 0\r\n\r\n").response()
		if got, _ := allOf(res); res.StatusCode != 400 {
			t.Errorf("%s: %d %s", name, res.StatusCode, got)
		}
	}
	if p.hits() != 0 {
		t.Error("it was forwarded")
	}
}

func TestUnreadableRequests(t *testing.T) {
	s := start(t, nil)
	for name, c := range map[string]struct {
		say    string
		status int
		want   string
	}{
		"a head that is too large": {"GET /v1/models HTTP/1.1\r\nHost: x\r\nCookie: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", 431, "MaxHeader"},
		"no HTTP":                  {"hello\r\n\r\n", 400, "head is not valid HTTP"},
		"an upstream nobody knows": {"GET /u/nobody/v1/models HTTP/1.1\r\nHost: x\r\n\r\n", 404, "no upstream of that name"},
	} {
		res := dial(t, s.addr).say(c.say).response()
		if got, _ := allOf(res); res.StatusCode != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s", name, res.StatusCode, got)
		}
	}
}

// What no stream's line tells of has a line of its own, without a word of the request.
// An operator who was asked why a client gets a 400 found nothing anywhere.
func TestWhatIsRefusedIsLogged(t *testing.T) {
	s := start(t, nil, func(c *Config) { c.Upstreams = []Upstream{{Name: "openai", URL: "http://127.0.0.1:1"}} })
	turn := `{"model":"hunter2","stream":true,"messages":[{"role":"user","content":"hunter2"}]}`
	for _, c := range []struct{ name, say, want string }{
		{"no HTTP", "hunter2\r\n\r\n", `"status":400,"why":"the request cannot be parsed`},
		{"an upstream nobody knows", "GET /u/hunter2/v1/models HTTP/1.1\r\nHost: x\r\n\r\n", `"status":404,"why":"no upstream of that name`},
		{"a run id that is none", fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Run-Id: hunter 2 hunter2\r\nContent-Length: %d\r\n\r\n%s", len(turn), turn), `"status":400,"why":"X-Run-Id must be`},
		{"an upstream that is away", "GET /v1/models?key=hunter2 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer hunter2\r\n\r\n", `"status":502,"why":"upstream openai: dial`},
	} {
		res := dial(t, s.addr).say(c.say).response()
		if _, err := allOf(res); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := s.log.String(); !strings.Contains(got, `"msg":"a request is refused",`+c.want) {
			t.Errorf("%s is not told:\n%s", c.name, got)
		}
	}
	if got := s.log.String(); strings.Contains(got, "hunter2") {
		t.Errorf("the log repeats what clients said:\n%s", got)
	}
}
