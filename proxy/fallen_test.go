package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// A dozen streams share an HTTP/2 connection, and one of them brings it down. A turn each
// goes on, and the breaker, which would open for five failures in a row, has seen one.
func TestAConnectionThatDiesIsOneFailure(t *testing.T) {
	s, f := faulty(t, "", "h2c", func(c *Config) { c.Breaker.Failures = 1 })
	ask := func(turn int, script string) *client {
		return dial(t, s.addr).post("/v1/chat/completions", chatAsk, "Authorization: Bearer k",
			"X-Fault-Turn: "+strconv.Itoa(turn), "X-Fault-Script: "+script+"|attempt 2+: pace 0s")
	}
	var clients []*client
	for n := range 12 {
		clients = append(clients, ask(n, "attempt 1: pace 1s"))
	}
	var streams []*http.Response
	for _, c := range clients {
		res := c.response()
		until(t, res.Body, `"content":"`)
		streams = append(streams, res)
	}
	streams = append(streams, ask(12, "attempt 1: rst after event 3").response())
	for n, res := range streams {
		if got, err := allOf(res); err != nil || strings.Count(got, done) != 1 {
			t.Errorf("turn %d: %v: %s", n, err, got)
		}
	}
	again := 0
	for _, e := range f.Log() {
		if e.Attempt > 1 {
			again++
		}
	}
	if again != len(streams) {
		t.Errorf("%d of %d turns went on: they did not share a connection", again, len(streams))
	}
	for _, b := range s.Stats().Breakers {
		if b.Opened != 0 {
			t.Errorf("%+v", b)
		}
	}
}
