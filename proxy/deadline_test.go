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
