package proxy

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/relay"
)

// A client that leaves ends its upstream call, in each phase and for each way of
// leaving; nothing is asked again for nobody (FIELD-REPORTS G1, G2, B9).
func TestClientLeaves(t *testing.T) {
	phases := []struct {
		name    string
		scripts []func(*asked)
		seen    string // what the client has read when it leaves
		hits    int
		hanging bool // the last request is still open at the provider
	}{
		{"before the response head", []func(*asked){(*asked).hang}, "", 1, true},
		{"in back-off", []func(*asked){func(a *asked) {
			a.answer(429, `{"error":{"message":"slow down","type":"rate_limit_error"}}`, "Retry-After: 50")
		}}, "", 1, false},
		{"in the middle of the stream", []func(*asked){
			func(a *asked) { a.stream(); a.chunks(oc("some words")); a.hang() },
		}, "some words", 1, true},
		{"while the second attempt is silent", []func(*asked){
			func(a *asked) { a.stream(); a.chunks(oc("some words")); a.rst() },
			(*asked).hang,
		}, "some words", 2, true},
		{"while the second attempt has only a head", []func(*asked){
			func(a *asked) { a.stream(); a.chunks(oc("some words")); a.rst() },
			func(a *asked) { a.stream(); a.chunk(": wait\n\n"); a.hang() },
		}, "some words", 2, true},
	}
	leave := map[string]func(net.Conn){
		"FIN": func(c net.Conn) { c.Close() },
		"RST": func(c net.Conn) { c.(*net.TCPConn).SetLinger(0); c.Close() },
		// The FIN of a client that has pipelined a request hides behind bytes.
		"FIN behind a pipelined byte": func(c net.Conn) { io.WriteString(c, "G"); c.Close() },
		"half-close":                  func(c net.Conn) { c.(*net.TCPConn).CloseWrite() },
	}
	for _, ph := range phases {
		for how, go1 := range leave {
			t.Run(ph.name+", "+how, func(t *testing.T) {
				p := newProvider(t, ph.scripts...)
				s := start(t, p)
				c := dial(t, s.addr).post("/v1/chat/completions", chatAsk)
				var last *asked
				for range ph.hits {
					last = p.next()
				}
				if ph.seen != "" {
					until(t, c.response().Body, ph.seen)
				}
				go1(c.c)
				if ph.hanging {
					within(t, "the upstream connection is closed", last.left)
				}
				if got := s.notes.outcome(t); got != "client_gone" {
					t.Errorf("outcome %q", got)
				}
				eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
				if p.hits() != ph.hits {
					t.Errorf("%d requests, want %d", p.hits(), ph.hits)
				}
				if !strings.Contains(s.log.String(), `"outcome":"client_gone"`) {
					t.Errorf("log: %s", s.log)
				}
			})
		}
	}
}

func TestClientOfAnUntouchedRequestLeaves(t *testing.T) {
	for name, script := range map[string]func(*asked){
		"before the head": (*asked).hang,
		"in the body":     func(a *asked) { a.stream(); a.chunk("data: x\n\n"); a.hang() },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, script)
			s := start(t, p)
			c := dial(t, s.addr).say("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
			a := p.next()
			if name == "in the body" {
				until(t, c.response().Body, "data: x")
			}
			c.c.Close()
			within(t, "the upstream connection is closed", a.left)
			eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
		})
	}
}

func TestPipelinedByteIsNotDeparture(t *testing.T) {
	finish := make(chan struct{})
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunk(oc("one"))
		<-finish
		a.chunks(fr("stop"), done)
		a.end()
	})
	s := start(t, p)
	c := dial(t, s.addr).post("/v1/chat/completions", chatAsk)
	res := c.response()
	until(t, res.Body, "one")
	c.post("/v1/chat/completions", chatAsk)
	looked(s.dog)
	close(finish)
	if rest, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(rest), done) {
		t.Fatalf("%q, %v", rest, err)
	}
	if got, err := allOf(c.response()); err != nil || text(t, got) != "one" {
		t.Fatalf("the pipelined request got %q, %v", got, err)
	}
}

// looked waits until the watchdog has looked at every client once more.
func looked(w *watchdog) {
	l := &lifeline{dog: w, wake: make(chan struct{}, 1)}
	l.deadline.Store(w.now() + int64(2*tick))
	w.add(l)
	<-l.wake
	w.remove(l)
}

// A client that stops reading is cut off by the rolling write deadline; that is
// its own fault and not the provider's (FIELD-REPORTS B11).
func TestSlowReaderIsCutOff(t *testing.T) {
	for name, version := range map[string]string{"chunked": "1.1", "HTTP/1.0": "1.0"} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, func(a *asked) {
				a.stream()
				for range 16 {
					a.chunk(oc(strings.Repeat("words and ", 100<<10)))
				}
				a.hang()
			})
			s := start(t, p, func(c *Config) { c.WriteStall = 300 * time.Millisecond })
			c := dial(t, s.addr)
			_ = c.c.(*net.TCPConn).SetReadBuffer(16 << 10)
			c.say("POST /v1/chat/completions HTTP/" + version + "\r\nHost: x\r\nContent-Length: " + itoa(len(chatAsk)) + "\r\n\r\n" + chatAsk)
			a := p.next()
			within(t, "the upstream connection is closed", a.left)
			eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
			if !strings.Contains(s.log.String(), `"outcome":"slow_reader"`) {
				t.Errorf("log: %s", s.log)
			}
		})
	}
}

// A whole answer nobody takes must not park its handler either.
func TestSlowReaderOfAWholeAnswer(t *testing.T) {
	big := `{"x":"` + strings.Repeat("y", 16<<20) + `"}`
	p := newProvider(t, func(a *asked) { a.answer(200, big, "Content-Type: application/json") })
	s := start(t, p, func(c *Config) { c.WriteStall = 300 * time.Millisecond })
	dial(t, s.addr).post("/v1/chat/completions", `{"model":"m","messages":[]}`)
	p.next()
	eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
	if !strings.Contains(s.log.String(), `"outcome":"slow_reader"`) {
		t.Errorf("log: %s", s.log)
	}
}

// A slow reader that does read is not cut off, however long the whole takes.
func TestReaderThatKeepsReadingIsServed(t *testing.T) {
	p := newProvider(t, func(a *asked) {
		a.stream()
		for range 8 {
			a.chunk(oc(strings.Repeat("words and ", 100<<10)))
		}
		a.chunks(fr("stop"), done)
		a.end()
	})
	s := start(t, p, func(c *Config) { c.WriteStall = 500 * time.Millisecond })
	res := dial(t, s.addr).post("/v1/chat/completions", chatAsk).response()
	var n int
	buf := make([]byte, 1<<20)
	for {
		k, err := io.ReadFull(res.Body, buf)
		n += k
		if err != nil {
			if n < 8_000<<10 || err != io.ErrUnexpectedEOF {
				t.Fatalf("cut off after %d bytes: %v", n, err)
			}
			return
		}
		time.Sleep(30 * time.Millisecond) // the pace of this reader
	}
}

// Below TLS, close_notify is a byte in front of the FIN.
func TestClientLeavesOverTLS(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.stream(); a.chunks(oc("some words")); a.hang() })
	s := start(t, p)
	c := dialTLS(t, s).post("/v1/chat/completions", chatAsk)
	a := p.next()
	until(t, c.br, "some words")
	c.c.Close()
	within(t, "the upstream connection is closed", a.left)
	if got := s.notes.outcome(t); got != "client_gone" {
		t.Errorf("outcome %q", got)
	}
}

// Back-off, a head that does not come, silence in a stream: each has its deadline,
// whatever the driver is blocked in.
func TestDeadlinesAreKeptInEveryPhase(t *testing.T) {
	go2 := make(chan struct{})
	p := newProvider(t,
		func(a *asked) { a.answer(503, `{"error":{"message":"x"}}`) },
		func(a *asked) { a.hang(); close(go2) },                                // no head: the headers clock
		func(a *asked) { a.stream(); a.chunks(oc("one two three")); a.hang() }, // silence: the idle clock
		func(a *asked) { a.stream(); a.chunks(oc("one two three four"), fr("stop"), done); a.end() },
	)
	s := start(t, p, relayed(func(c *relay.Config) {
		c.Watch.Headers, c.Watch.Idle = 150*time.Millisecond, 150*time.Millisecond
	}))
	got, err := allOf(dial(t, s.addr).post("/v1/chat/completions", chatAsk).response())
	if err != nil || text(t, got) != "one two three four" || p.hits() != 4 {
		t.Fatalf("%d requests, client read %q, %v", p.hits(), got, err)
	}
	within(t, "the attempt without a head was closed", go2)
}

// Many clients leave at once, more than the kernel tells of in one answer; each is
// noticed, and nobody else.
func TestManyClientsLeaveAtOnce(t *testing.T) {
	dog := newWatchdog(time.Hour)
	defer dog.stop()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := callers{tcp}
	defer l.Close()
	var clients []net.Conn
	var lines []*lifeline
	for range 300 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		clients, lines = append(clients, c), append(lines, newLifeline(dog, s))
	}
	looked(dog)
	stays := lines[0]
	for _, c := range clients[1:] {
		c.Close()
	}
	for _, l := range lines[1:] {
		eventually(t, "it is noticed", func() bool { return l.flags.Load()&flagGone != 0 })
		l.end()
	}
	looked(dog)
	if stays.flags.Load() != 0 {
		t.Error("one that stays is taken for gone")
	}
	stays.end()
	// Whoever left while one request ended is told to the next on the same connection.
	for range 2 {
		next := newLifeline(dog, stays.conn)
		clients[0].Close()
		eventually(t, "it is noticed", func() bool { return next.flags.Load()&flagGone != 0 })
		next.end()
	}
	if stays.flags.Load() != 0 {
		t.Error("a request that is over was told")
	}
}
