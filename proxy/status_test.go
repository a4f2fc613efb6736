package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// F7, WIRE 2.2: the caller's key is for the caller's body.
func TestIdempotencyKey(t *testing.T) {
	said := "one two three four five six seven "
	p := newProvider(t,
		func(a *asked) { a.answer(503, "{}") },
		func(a *asked) { a.stream(); a.chunks(oc(said)); a.rst() },
		func(a *asked) { a.stream(); a.chunks(oc(said+"eight"), fr("stop"), done); a.end() },
	)
	s := start(t, p)
	if got, err := allOf(dial(t, s.addr).post("/v1/chat/completions", chatAsk, "Idempotency-Key: mine").response()); err != nil || text(t, got) != said+"eight" {
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
		if got, err := allOf(dial(t, s.addr).post(path, chatAsk).response()); err != nil || strings.Count(got, "word ") != 30 {
			t.Errorf("%s: %d words, %v", path, strings.Count(got, "word "), err)
		}
	}
}

// G5: a hint that is too far off goes to the client at once, with everything the
// provider said.
func TestFarRetryAfterIsHandedOn(t *testing.T) {
	p := newProvider(t, func(a *asked) {
		a.answer(429, `{"error":{"message":"later","type":"rate_limit_error"}}`, "retry-after: 287441", "anthropic-ratelimit-requests-remaining: 0")
	})
	res := dial(t, start(t, p).addr).post("/v1/messages", messagesAsk).response()
	// SDKs sleep for as long as they are told, be it for days, unless they are told not to try again.
	if res.Header.Get("x-should-retry") != "false" {
		t.Errorf("x-should-retry is %q", res.Header.Get("x-should-retry"))
	}
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
		got, err := allOf(res)
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
			got, err := allOf(res)
			if want := "this is the answer for " + token + " and nobody else"; err != nil || text(t, got) != want {
				t.Errorf("%s got %q, %v", token, text(t, got), err)
			}
		}()
	}
	wg.Wait()
}

func TestWholeAnswerIsProtectedToo(t *testing.T) {
	const ask, answer = `{"model":"m","messages":[]}`, `{"id":"x", "choices":[]}`
	p := newProvider(t,
		func(a *asked) { a.say("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"id\""); a.fin() },
		func(a *asked) { a.answer(200, answer, "Content-Type: application/json") },
	)
	res := dial(t, start(t, p).addr).post("/v1/chat/completions", ask).response()
	got, err := allOf(res)
	if err != nil || got != answer || res.ContentLength != int64(len(answer)) || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%q %v %v", got, err, res.Header)
	}
}

// In mode events the arguments of a call stream as they come.
func TestModeEventsIsPassedOn(t *testing.T) {
	call := `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"half"}}]},"finish_reason":null}]}` + "\n\n"
	p := newProvider(t, func(a *asked) { a.stream(); a.chunk(call); a.hang() })
	s := start(t, p)
	res := dial(t, s.addr).post("/v1/chat/completions", chatAsk, "X-Stream-Recovery: events").response()
	if got := until(t, res.Body, "\n\n"); got != call {
		t.Errorf("client read %q", got)
	}
}
