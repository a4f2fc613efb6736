package proxy

import (
	"strings"
	"testing"
	"time"
)

// What is too much waits in line, and comes in as room is made, first come, first
// served; a caller that has its share lets others pass.
func TestLine(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.stream(); a.chunk(oc("hi")); a.hang() })
	s := start(t, p, func(c *Config) { c.MaxStreams, c.MaxPerCaller, c.MaxQueue, c.QueueWait = 2, 1, 2, patience })
	post := func(who string) *client {
		return dial(t, s.addr).post("/v1/chat/completions", chatAsk, "Authorization: Bearer "+who)
	}
	waiting := func(n int) {
		t.Helper()
		eventually(t, "the line is as long as that", func() bool { return s.gate.waiting() == n })
	}
	a1 := post("a")
	first := p.next()
	post("a")
	waiting(1) // a has its share
	b1 := post("b")
	p.next() // and b passes it
	post("c")
	waiting(2)
	if res := post("d").response(); res.StatusCode != 429 || res.Header.Get("x-should-retry") != "true" || res.Header.Get("Retry-After") == "" {
		t.Errorf("the line is full: %d %v", res.StatusCode, res.Header)
	}
	b1.c.Close()
	if who := p.next().req.Header.Get("Authorization"); who != "Bearer c" {
		t.Errorf("%s came in, a still has its share", who)
	}
	a1.c.Close()
	within(t, "the first is over", first.left)
	if who := p.next().req.Header.Get("Authorization"); who != "Bearer a" {
		t.Errorf("%s came in", who)
	}
	waiting(0)
}

func TestLineIsLeft(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.stream(); a.chunk(oc("hi")); a.hang() })
	t.Run("by clients that go", func(t *testing.T) {
		s := start(t, p, func(c *Config) { c.MaxStreams, c.QueueWait = 1, time.Hour })
		dial(t, s.addr).post("/v1/chat/completions", chatAsk)
		p.next()
		k := dial(t, s.addr).say("GET /v1/models HTTP/1.1\r\nHost: proxy\r\n\r\n")
		eventually(t, "it waits", func() bool { return s.gate.waiting() == 1 })
		k.c.Close()
		eventually(t, "it is gone", func() bool { return s.gate.waiting() == 0 })
	})
	t.Run("when it took too long", func(t *testing.T) {
		s := start(t, p, func(c *Config) { c.MaxStreams, c.QueueWait = 1, 20*time.Millisecond })
		dial(t, s.addr).post("/v1/chat/completions", chatAsk)
		p.next()
		res := dial(t, s.addr).post("/v1/messages", messagesAsk).response()
		if got, _ := allOf(res); res.StatusCode != 429 || !strings.Contains(got, `"rate_limit_error"`) || s.gate.waiting() != 0 {
			t.Errorf("%d %s, %d in line", res.StatusCode, got, s.gate.waiting())
		}
	})
}
