package proxy

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// An answer of known length is not bounded by its length in time either, and nothing of its
// deadlines is left for the next request of its connection. A short one goes through
// fasthttp's buffer: with the deadline of the handler for what is at hand, and without one
// while a provider that is relayed untouched takes its time.
func TestSlowAnswerOfKnownLengthOutlivesEveryTimeout(t *testing.T) {
	const limit = 150 * time.Millisecond
	answer := `{"choices":[{"index":0,"message":{"role":"assistant","content":"at last"},"finish_reason":"stop"}]}`
	p := newProvider(t, func(a *asked) {
		a.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(answer)))
		for i := range len(answer) / 2 {
			time.Sleep(limit / 20) // the provider's pace
			a.say(answer[2*i : 2*i+2])
		}
		a.say(answer[len(answer)/2*2:])
	})
	s := start(t, p, func(c *Config) {
		c.HeaderTimeout, c.BodyStall, c.WriteStall, c.PassHead = limit, limit, limit, limit
	})
	for _, path := range []string{"/v1/chat/completions", "/v1/other"} {
		cl := dial(t, s.addr)
		for range 2 {
			got, err := allOf(cl.post(path, strings.Replace(chatAsk, `"stream":true,`, "", 1)).response())
			if err != nil || got != answer {
				t.Errorf("%s: %q, %v", path, got, err)
			}
		}
	}
}

// Who sends a head and no byte of its body was told that the head did not arrive.
func TestWhatDoesNotArriveIsNamed(t *testing.T) {
	const line = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
	s := start(t, newProvider(t, either), func(c *Config) { c.HeaderTimeout = 500 * time.Millisecond })
	ways := map[string]func(*testing.T) *client{
		"a new connection":   func(t *testing.T) *client { return dial(t, s.addr) },
		"a secure one":       func(t *testing.T) *client { return dialTLS(t, s) },
		"one behind a call":  func(t *testing.T) *client { return used(t, s, strings.Replace(chatAsk, "true", "false", 1)) },
		"one after a stream": func(t *testing.T) *client { return used(t, s, chatAsk) },
	}
	for _, c := range []struct {
		name, first string
		ends        bool // and says that nothing more comes
		status      int
		want        string
	}{
		{"nothing", "", false, 408, "request head"},
		{"half a head", line, false, 408, "request head"},
		{"a head and no body", line + "Content-Length: 9\r\n\r\n", false, 408, "request body"},
		{"a head, and the end", line + "Content-Length: 9\r\n\r\n", true, 400, "before its body"},
	} {
		for way, open := range ways {
			if c.first == "" && way[0] == 'o' {
				continue // a connection that idles is closed without a word
			}
			t.Run(c.name+" on "+way, func(t *testing.T) {
				t.Parallel()
				cl := open(t).say(c.first)
				if c.ends {
					if err := cl.c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
						t.Fatal(err)
					}
				}
				res := cl.response()
				if got, err := allOf(res); res.StatusCode != c.status || !strings.Contains(got, c.want) || err != nil {
					t.Errorf("%d %s, %v", res.StatusCode, got, err)
				}
			})
		}
	}
}

// used is a client whose connection has had a request.
func used(t *testing.T, s *proxied, ask string) *client {
	t.Helper()
	cl := dial(t, s.addr)
	if _, err := allOf(cl.post("/v1/chat/completions", ask).response()); err != nil {
		t.Fatal(err)
	}
	return cl
}

// A body may take its time, but not stop: who waits for the rest of it is hung up on. That
// is so from the first read of the connection on, for what came with the head needs none.
func TestBodyIsBoundedInItsSilence(t *testing.T) {
	const limit = 150 * time.Millisecond
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(oc("hi"), fr("stop"), done)
		a.end()
	})
	s := start(t, p, func(c *Config) { c.HeaderTimeout, c.BodyStall = time.Minute, limit })
	head := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(chatAsk))
	for _, c := range []struct {
		name, first string
		rest        string // a byte at a time
		whole       bool
	}{
		{name: "half of it comes with the head", first: head + chatAsk[:len(chatAsk)/2]},
		{name: "half of it comes slowly", first: head, rest: chatAsk[:len(chatAsk)/2]},
		{name: "all of it comes slowly", first: head, rest: chatAsk, whole: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := dial(t, s.addr).say(c.first)
			for i := range c.rest {
				time.Sleep(limit / 20) // the client's pace
				cl.say(c.rest[i : i+1])
			}
			if c.whole {
				if got, err := allOf(cl.response()); err != nil || !strings.Contains(got, "hi") {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			_ = cl.c.SetReadDeadline(time.Now().Add(patience))
			if got, err := io.ReadAll(cl.br); err != nil || len(got) > 0 {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
