package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// echo answers every request with what it asks for by its X-Say, in the manner of its kind.
func echo(a *asked) {
	word := a.req.Header.Get("X-Say")
	switch kind := a.req.Header.Get("X-Kind"); kind {
	case "stream", "cut":
		a.stream()
		a.chunks(oc(word), oc(" "), oc(word))
		if kind == "cut" {
			a.rst()
			return
		}
		a.chunks(fr("stop"), done)
		a.end()
	case "call":
		a.answer(200, `{"choices":[{"index":0,"message":{"role":"assistant","content":"`+word+`"},"finish_reason":"stop"}]}`)
	case "refused":
		a.answer(400, `{"error":{"message":"`+word+`"}}`)
	case "list":
		a.answer(200, word)
	case "empty":
		a.say("HTTP/1.1 204 No Content\r\n\r\n")
	case "head":
		a.say("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n")
	default: // a stream of a route that is not protected, or of a body too large for it
		a.say("HTTP/1.1 200 OK\r\nContent-Type: application/jsonl\r\nTransfer-Encoding: chunked\r\n\r\n")
		a.chunks(word, word)
		a.end()
	}
}

// line is one request of a program, and what it must be answered.
type line struct {
	text   string
	method string
	want   string // is in the body
	status int
	last   bool // the connection closes behind it
}

// compose writes a request of a kind that chance chooses, in a shape that it chooses.
func compose(r *rand.Rand, word string) line {
	kind := []string{"stream", "stream", "stream", "call", "refused", "list", "empty", "head", "jsonl", "upload", "large"}[r.IntN(11)]
	l := line{method: "POST", want: word, status: 200}
	path, body := "/v1/chat/completions", chatAsk
	switch kind {
	case "stream":
		l.want = `"content":"` + word + `"`
	case "call":
		body = strings.Replace(chatAsk, `"stream":true`, `"stream":false`, 1)
	case "refused":
		l.status = 400
	case "list", "jsonl":
		l.method, path, body = "GET", "/v1/models", ""
	case "empty":
		l.method, path, body, l.status, l.want = "DELETE", "/v1/files/x", "", 204, ""
	case "head":
		l.method, path, body, l.want = "HEAD", "/v1/models", "", ""
	case "upload":
		path, body, l.want = "/v1/files", strings.Repeat("u", 1+r.IntN(40<<10)), word+word
	case "large":
		body, l.want = strings.Replace(chatAsk, "{", "{"+strings.Repeat(" ", 8<<10), 1), word+word
	}
	version := "1.1"
	head := []string{"Host: proxy", "X-Say: " + word, "X-Kind: " + kind}
	switch r.IntN(12) {
	case 0:
		head, l.last = append(head, "Connection: close"), true
	case 1:
		if l.want != word+word { // whose length HTTP/1.0 has no word for
			version, l.last = "1.0", true
		}
	}
	if pad := r.IntN(4); pad == 0 {
		head = append(head, "X-Pad: "+strings.Repeat("p", r.IntN(6<<10)))
	}
	switch {
	case body == "":
	case version == "1.1" && r.IntN(3) == 0:
		head = append(head, "Transfer-Encoding: chunked")
		cut := r.IntN(len(body))
		framed := string(appendChunk(appendChunk(nil, []byte(body[:cut])), []byte(body[cut:])))
		trailer := ""
		if r.IntN(2) == 0 {
			trailer = "X-Trailer: t\r\n"
		}
		body = framed + "0\r\n" + trailer + "\r\n"
	default:
		head = append(head, "Content-Length: "+strconv.Itoa(len(body)))
	}
	l.text = fmt.Sprintf("%s %s HTTP/%s\r\n%s\r\n\r\n%s", l.method, path, version, strings.Join(head, "\r\n"), body)
	return l
}

// run sends lines in pieces of any size, ahead of their answers or not, and reads what
// comes: to each request its own answer, in order, and nothing between them. It reports
// how many were answered.
func run(c *client, r *rand.Rand, lines []line, strict bool) int {
	var all strings.Builder
	for _, l := range lines {
		all.WriteString(l.text)
	}
	pieces := r.IntN(3)
	go func(text string, r *rand.Rand) {
		for len(text) > 0 {
			n := len(text)
			switch pieces {
			case 1:
				n = min(n, 1+r.IntN(1000))
			case 2:
				n = min(n, 1+r.IntN(20<<10))
			}
			if _, err := io.WriteString(c.c, text[:n]); err != nil {
				return
			}
			text = text[n:]
		}
	}(all.String(), rand.New(rand.NewPCG(r.Uint64(), 0)))
	c.c.SetReadDeadline(time.Now().Add(patience))
	for i, l := range lines {
		res, err := http.ReadResponse(c.br, &http.Request{Method: l.method})
		if err != nil {
			if strict {
				c.t.Errorf("answer %d to %.60q: %v", i, l.text, err)
			}
			return i
		}
		got, err := allOf(res)
		if err != nil || res.StatusCode != l.status || !strings.Contains(got, l.want) || l.last != res.Close && strict {
			if strict || err == nil && res.StatusCode == l.status {
				c.t.Errorf("answer %d to %.80q: %d %q, %v, close %v", i, l.text, res.StatusCode, got, err, res.Close)
			}
			return i
		}
	}
	if strict {
		if lines[len(lines)-1].last {
			if b, err := c.br.ReadByte(); err == nil {
				c.t.Errorf("behind the last answer: %q", b)
			}
		} else if c.br.Buffered() > 0 {
			b, _ := c.br.Peek(c.br.Buffered())
			c.t.Errorf("behind the last answer: %q", b)
		}
	}
	return len(lines)
}

// program is up to n requests of a connection.
func program(r *rand.Rand, name string, n int) (lines []line) {
	for i := range n {
		l := compose(r, fmt.Sprintf("%s-%d;", name, i))
		if lines = append(lines, l); l.last {
			break
		}
	}
	return lines
}

// A stream takes its connection from fasthttp and gives it back; whatever the requests on
// it are, and however their bytes arrive, each gets its own answer and in its turn. Some
// clients leave in the middle, the configuration is reloaded, and in the end the server
// shuts down among them: nothing is left in flight.
func TestEachRequestOfAMixedConnectionGetsItsOwnAnswer(t *testing.T) {
	p := newProvider(t, echo)
	p.arrived = make(chan *asked, 100_000)
	for _, over := range []string{"clear", "TLS"} {
		t.Run(over, func(t *testing.T) {
			s := start(t, p, func(c *Config) { c.MaxBody, c.MaxStreams, c.MaxQueue, c.QueueWait = 4<<10, 6, 1000, patience })
			var clients []*client
			for range 12 {
				if over == "TLS" {
					clients = append(clients, dialTLS(t, s))
				} else {
					clients = append(clients, dial(t, s.addr))
				}
			}
			var wg sync.WaitGroup
			for i, c := range clients {
				r := rand.New(rand.NewPCG(uint64(i), 7))
				wg.Go(func() {
					name := fmt.Sprintf("%s%d", over, i)
					if i%4 == 3 { // leaves before it has read much
						lines := program(r, name, 20)
						run(c, r, lines[:1+r.IntN(len(lines))/2], false)
						c.c.Close()
						return
					}
					lines := program(r, name, 40)
					for from := 0; from < len(lines); { // so many ahead at a time
						to := min(len(lines), from+1+r.IntN(8))
						if run(c, r, lines[from:to], true) < to-from {
							return
						}
						from = to
					}
				})
			}
			wg.Go(func() {
				for range 5 {
					if err := s.Reload(s.cfg); err != nil {
						t.Errorf("reload: %v", err)
					}
				}
			})
			wg.Wait()
			eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
			if n := s.dog.live(); n != 0 {
				t.Errorf("%d lifelines are left", n)
			}
		})
	}
}

// A shutdown among running programs answers each request by its own words, by a refusal
// or not at all, and leaves nothing in flight, whatever it finds connections doing.
func TestShutdownAmongMixedConnectionsLeavesNothing(t *testing.T) {
	p := newProvider(t, echo)
	p.arrived = make(chan *asked, 100_000)
	for seed := range uint64(8) {
		s := start(t, p, func(c *Config) { c.MaxBody = 4 << 10 })
		var wg sync.WaitGroup
		for i := range 6 {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			wg.Go(func() {
				for n := 0; s.Ready(); n++ {
					conn, err := net.Dial("tcp", s.addr)
					if err != nil {
						return
					}
					c := &client{t, conn, bufio.NewReader(conn)}
					run(c, r, program(r, fmt.Sprintf("s%d-%d-%d", seed, i, n), 200), false)
					conn.Close()
				}
			})
		}
		eventually(t, "it is at work", func() bool { return s.counts.accepted.Load() > int64(seed*5) })
		ctx, cancel := context.WithCancel(t.Context())
		if seed%2 == 0 {
			cancel()
		}
		_ = s.Shutdown(ctx)
		cancel()
		wg.Wait()
		if n, l := s.Stats().Live, s.dog.live(); n != 0 || l != 0 {
			t.Errorf("seed %d: %d requests and %d lifelines are left", seed, n, l)
		}
	}
}
