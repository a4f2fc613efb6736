package proxy

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What Unbroken refuses itself it says in the caller's dialect, in words that fit:
// no stream was interrupted, and nothing of its insides is in them.
func TestRefusalsSayWhatTheyAre(t *testing.T) {
	p := newProvider(t, (*asked).hang)
	s := start(t, p, func(c *Config) {
		c.MaxPerCaller, c.QueueWait = 1, -1
		c.Upstreams = append(c.Upstreams, Upstream{Name: "gemini", URL: p.url()})
	})
	for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/v1beta/models/g:streamGenerateContent?alt=sse"} {
		ask := map[bool]string{true: messagesAsk, false: chatAsk}[path == "/v1/messages"]
		if strings.Contains(path, "gemini") || strings.Contains(path, "models") {
			ask = `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}`
		}
		dial(t, s.addr).post(path, ask, "Authorization: Bearer busy"+path)
		p.next()
	}
	for _, tc := range []struct {
		name, path, header string
		status             int
		want               string // the error object's members
	}{
		{"run id, chat", "/v1/chat/completions", "X-Run-Id: a b", 400, `"type":"invalid_request_error","param":null,"code":"invalid_request"`},
		{"run id, responses", "/v1/responses", "X-Run-Id: a/b", 400, `"type":"invalid_request_error","code":"invalid_request"`},
		{"run id, messages", "/v1/messages", "X-Run-Id: a/b", 400, `"type":"invalid_request_error"`},
		{"run id, gemini", "/v1beta/models/g:streamGenerateContent?alt=sse", "X-Run-Id: a/b", 400, `"status":"INVALID_ARGUMENT"`},
		{"full, chat", "/v1/chat/completions", "Authorization: Bearer busy/v1/chat/completions", 429, `"type":"rate_limit_error","param":null,"code":"too_many_requests"`},
		{"full, messages", "/v1/messages", "Authorization: Bearer busy/v1/messages", 429, `"type":"rate_limit_error"`},
		{"full, gemini", "/v1beta/models/g:streamGenerateContent?alt=sse", "Authorization: Bearer busy/v1beta/models/g:streamGenerateContent?alt=sse", 429, `"status":"RESOURCE_EXHAUSTED"`},
		{"nobody", "/u/nobody/v1/x", "X-A: b", 404, `"code":"unknown_upstream"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ask := map[string]string{
				"/v1/messages": messagesAsk, "/v1/responses": `{"model":"gpt-x","stream":true,"input":"Hi"}`,
				"/v1beta/models/g:streamGenerateContent?alt=sse": `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}`,
			}[tc.path]
			if ask == "" {
				ask = chatAsk
			}
			res := dial(t, s.addr).post(tc.path, ask, tc.header).response()
			got, _ := allOf(res)
			if res.StatusCode != tc.status || !json.Valid([]byte(got)) || !strings.Contains(got, tc.want) {
				t.Errorf("%d %s, want %d with %s", res.StatusCode, got, tc.status, tc.want)
			}
			for _, never := range []string{"stream_interrupted", "was interrupted", "checkpoint:", "0x"} {
				if strings.Contains(got, never) {
					t.Errorf("%q is in %s", never, got)
				}
			}
		})
	}
}

// A body that is not what its framing says is told so, and its connection is of no
// use any more; one that broke off has nobody to be told.
func TestBodyThatCannotBeRead(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.answer(200, "{}") })
	s := start(t, p)
	const head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, body := range map[string]string{
		"no size":             "zz\r\n{}\r\n0\r\n\r\n",
		"a size too large":    "fffffffffffffffffff\r\n",
		"a chunk without end": "2\r\n{}xx0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, s.addr).say(head + body)
			res := c.response()
			got, err := allOf(res)
			if res.StatusCode != 400 || err != nil || !strings.Contains(got, `"invalid_request"`) || !res.Close {
				t.Errorf("%d %s %v", res.StatusCode, got, err)
			}
			if _, err := c.br.ReadByte(); !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
				t.Errorf("the connection goes on: %v", err)
			}
		})
	}
	t.Run("broken off", func(t *testing.T) {
		c := dial(t, s.addr).say(head + "5\r\nhel")
		_ = c.c.(*net.TCPConn).CloseWrite()
		_ = c.c.SetReadDeadline(time.Now().Add(patience))
		if res, err := http.ReadResponse(c.br, nil); err == nil {
			t.Errorf("answered %d", res.StatusCode)
		}
	})
	if p.hits() != 0 {
		t.Error("it was forwarded")
	}
}

// A server that was shut down before it began to serve does not begin.
func TestShutdownBeforeServe(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := s.Serve(l); err != nil {
			t.Error(err)
		}
	}()
	within(t, "Serve returns", served)
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}

func TestUpstreamPorts(t *testing.T) {
	for port, ok := range map[string]bool{"": true, ":1": true, ":65535": true, ":0": false, ":65536": false, ":99999": false} {
		err := Config{Upstreams: []Upstream{{Name: "x", URL: "http://x.example" + port}}}.Validate()
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "port") {
			t.Errorf("%q: %v", port, err)
		}
	}
}
