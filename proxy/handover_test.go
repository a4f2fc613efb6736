package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// watched is a connection of a client of which a test sees every call, on the proxy's side.
type watched struct {
	net.Conn
	read     func(p []byte, n int)            // behind a read of n bytes into p
	write    func(p []byte) error             // before a write
	deadline func(both bool, write time.Time) // before a deadline is set; for writes only, or for both
	fail     error                            // of every deadline for both
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if w.read != nil {
		w.read(p, n)
	}
	return n, err
}

func (w *watched) Write(p []byte) (int, error) {
	if w.write != nil {
		if err := w.write(p); err != nil {
			return 0, err
		}
	}
	return w.Conn.Write(p)
}

func (w *watched) SetDeadline(t time.Time) error {
	if w.deadline != nil {
		w.deadline(true, t)
	}
	if w.fail != nil {
		return w.fail
	}
	return w.Conn.SetDeadline(t)
}

func (w *watched) SetWriteDeadline(t time.Time) error {
	if w.deadline != nil {
		w.deadline(false, t)
	}
	return w.Conn.SetWriteDeadline(t)
}

type watching struct {
	net.Listener
	as func(net.Conn) net.Conn
}

func (l watching) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.as(c), nil
}

// dialWatched is a client whose connection is, to the proxy, w around it.
func dialWatched(t *testing.T, s *proxied, w *watched) *client {
	t.Helper()
	return dial(t, s.alsoOn(t, func(l net.Listener) net.Listener {
		return watching{l, func(c net.Conn) net.Conn { w.Conn = c; return w }}
	}))
}

// What bounds the last write of a stream was left on its connection. A minute later it
// was over, and fasthttp, which sets none of its own for that, could not write the "100
// Continue" that the next request asked for: the connection was closed instead.
func TestNextRequestIsNotHeldToTheDeadlineOfTheStreamBeforeIt(t *testing.T) {
	var mu sync.Mutex
	var last, then time.Time
	continued := false
	s := start(t, newProvider(t, either))
	c := dialWatched(t, s, &watched{
		deadline: func(_ bool, at time.Time) {
			mu.Lock()
			defer mu.Unlock()
			last = at
		},
		write: func(p []byte) error {
			mu.Lock()
			defer mu.Unlock()
			if bytes.HasPrefix(p, []byte("HTTP/1.1 100 ")) {
				continued, then = true, last
			}
			return nil
		},
	})
	if _, err := allOf(c.post("/v1/chat/completions", chatAsk).response()); err != nil {
		t.Fatal(err)
	}
	c.say(fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: proxy\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(chatAsk)))
	if res := c.response(); res.StatusCode != 100 {
		t.Fatalf("%d instead of a go-ahead", res.StatusCode)
	}
	if got, err := allOf(c.say(chatAsk).response()); err != nil || text(t, got) != "ok" {
		t.Errorf("the next answer: %q, %v", got, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !continued || !then.IsZero() {
		t.Errorf("continued %v, by %v", continued, then)
	}
}

// Between a stream and fasthttp a connection is counted by nobody whom Shutdown asks. Its
// next request, here read but not yet handed on, is not served when Shutdown has returned:
// by then the store and the connections to providers are closed.
func TestNobodyIsServedBehindAShutdown(t *testing.T) {
	p := newProvider(t, either)
	s := start(t, p)
	held, release := make(chan struct{}), make(chan struct{})
	hold := sync.OnceFunc(func() { close(held); <-release })
	c := dialWatched(t, s, &watched{read: func(p []byte, n int) {
		if len(p) == 1 && n == 1 { // of who waits for the first byte
			hold()
		}
	}})
	if got, err := allOf(c.post("/v1/chat/completions", chatAsk).response()); err != nil || text(t, got) != "ok" {
		t.Fatalf("the stream: %q, %v", got, err)
	}
	c.say("GET /v1/models HTTP/1.1\r\nHost: proxy\r\n\r\n")
	within(t, "the next request is at hand", held)
	if err := s.Shutdown(context.Background()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	close(release)
	if got, _ := io.ReadAll(c.br); len(got) > 0 || p.hits() != 1 {
		t.Errorf("behind the shutdown: %q, %d requests upstream", got, p.hits())
	}
}

// A reader who does not take the last five bytes of a stream, which nobody counted any
// more, held a shutdown up for as long as a write may take at most, whatever its deadline.
func TestLastChunkThatIsNotTakenHoldsNoShutdownUp(t *testing.T) {
	s := start(t, newProvider(t, brief))
	stuck, cut := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(cut) })
	c := dialWatched(t, s, &watched{
		write: func(p []byte) error {
			if string(p) != "0\r\n\r\n" {
				return nil
			}
			close(stuck)
			<-cut
			return os.ErrDeadlineExceeded
		},
		deadline: func(_ bool, at time.Time) {
			if !at.IsZero() && time.Until(at) < s.cfg.WriteStall/2 {
				once()
			}
		},
	})
	c.post("/v1/chat/completions", chatAsk)
	within(t, "the last chunk is due", stuck)
	returned, err := shutdown(t.Context(), s)
	within(t, "Shutdown returns", returned)
	if *err != nil {
		t.Errorf("shutdown: %v", *err)
	}
}

// fasthttp drops a connection whose deadlines cannot be lifted, and with it what was to
// run behind the handler: the request must be let go of nevertheless.
func TestStreamThatIsDroppedBeforeItBeginsIsLetGo(t *testing.T) {
	big := strings.Replace(chatAsk, "{", "{"+strings.Repeat(" ", 4<<10), 1)
	for _, c := range []struct{ name, head, body string }{
		{"", "POST /v1/chat/completions HTTP/1.1", chatAsk},
		{"to a client of HTTP/1.0 that still sends", "POST /v1/chat/completions HTTP/1.0", big},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, newProvider(t, either), func(c *Config) { c.MaxBody = 2 << 10 })
			cl := dialWatched(t, s, &watched{fail: net.ErrClosed})
			cl.say(fmt.Sprintf("%s\r\nHost: proxy\r\nContent-Length: %d\r\n\r\n%s", c.head, len(c.body), c.body))
			if b, err := cl.br.ReadByte(); err == nil {
				t.Errorf("answered: %q", b)
			}
			eventually(t, "it is let go", func() bool { st := s.Stats(); return st.Accepted == 1 && st.Live == 0 })
			if err := s.Shutdown(t.Context()); err != nil {
				t.Errorf("shutdown: %v", err)
			}
		})
	}
}

// A bug while a body is written cuts it, which a client of HTTP/1.0 learns from a reset
// only; one before the head is told, with the close that follows.
func TestPanicOfAStreamIsNeverAnEnd(t *testing.T) {
	for _, c := range []struct {
		name   string
		http10 bool
		early  bool
		want   error
	}{
		{"in the body, HTTP/1.1", false, false, io.EOF},
		{"in the body, HTTP/1.0", true, false, syscall.ECONNRESET},
		{"before the head", false, true, io.EOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, nil)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			cl := dial(t, l.Addr().String())
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			st := &stream{srv: s.Server, http10: c.http10, stall: time.Minute, conn: conn, last: c.http10, drop: func() {}, answer: func() (response, bool) {
				if c.early {
					panic("a bug")
				}
				h := blank()
				h.SetStatusCode(200)
				return response{head: h, size: -1, exchange: says(func(w io.Writer) error {
					_, _ = io.WriteString(w, "half")
					_ = until(t, cl.br, "half")
					panic("a bug")
				})}, true
			}}
			s.work.Add(1)
			st.serve()
			if c.early {
				if res := cl.response(); res.StatusCode != 500 || !res.Close {
					t.Errorf("%d, close %v", res.StatusCode, res.Close)
				}
				return
			}
			if got, err := io.ReadAll(cl.br); err == nil && c.want != io.EOF || err != nil && !errors.Is(err, c.want) || strings.Contains(string(got), "0\r\n\r\n") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
