package upstream

import (
	"io"
	"net"
	"runtime"
	"testing"
	"time"
)

const ok5 = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

// TestReuse: what ended well and in step is used again, anything else is not.
func TestReuse(t *testing.T) {
	for _, tc := range []struct {
		name, say string
		reused    bool
	}{
		{"length", ok5, true},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", true},
		{"HTTP/1.0 that keeps alive", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", true},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", false},
		{"connection close", "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 5\r\n\r\nhello", false},
		{"idle time too short to use", "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 5\r\n\r\nhello", false},
		{"bytes behind the end", ok5 + "HTTP/1.1 200 OK\r\n", false},
		{"length beside chunks", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false},
		{"chunks under HTTP/1.0", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPeer(t, func(_ int, w *wire) {
				for req, _ := w.request(); req != nil; req, _ = w.request() {
					w.say(tc.say)
				}
			})
			c := newClient(t, Config{})
			for i := range 2 {
				res := open(t, c, p.target("http"), post("{}"))
				if body, err := drain(res); body != "hello" || err != io.EOF {
					t.Fatalf("%q, %v", body, err)
				}
				if i == 1 && res.Reused != tc.reused {
					t.Errorf("reused = %v", res.Reused)
				}
			}
		})
	}
}

// TestCloseBehindTheLastByteKeepsTheConnection: a reader that stops at the dialect's terminal has often received the last chunk with
// it, and never asks for the io.EOF behind it.
func TestCloseBehindTheLastByteKeepsTheConnection(t *testing.T) {
	p := newPeer(t, func(_ int, w *wire) {
		for req, _ := w.request(); req != nil; req, _ = w.request() {
			w.say(ok5)
		}
	})
	c := newClient(t, Config{})
	for i := range 3 {
		res := open(t, c, p.target("http"), post("{}"))
		for got := 0; got < 5; {
			b, err := res.Next()
			if err != nil {
				t.Fatal(err)
			}
			got += len(b)
		}
		res.Close()
		if res.Reused != (i > 0) {
			t.Errorf("request %d: reused = %v", i, res.Reused)
		}
	}
}

// TestConnectionClosedWhileIdleIsNotUsed: the peek before reuse sees what the provider did meanwhile (FIELD-REPORTS F5, F15).
func TestConnectionClosedWhileIdleIsNotUsed(t *testing.T) {
	for name, leave := range map[string]func(*wire){
		"FIN":                 (*wire).fin,
		"RST":                 (*wire).reset,
		"a farewell of bytes": func(w *wire) { w.say("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			left := make(chan struct{})
			used := make(chan struct{})
			p := newPeer(t, func(n int, w *wire) {
				w.request()
				w.say(ok5)
				if n == 0 {
					<-used
					leave(w)
					close(left)
				}
				w.gone()
			})
			c := newClient(t, Config{})
			if _, err := drain(open(t, c, p.target("http"), post("{}"))); err != io.EOF {
				t.Fatal(err)
			}
			close(used)
			<-left
			idle := onlyIdle(t, c)
			for idle.quiet() { // until the kernel has delivered what the provider did
				runtime.Gosched()
			}
			res := open(t, c, p.target("http"), post("{}"))
			if body, err := drain(res); body != "hello" || err != io.EOF || res.Reused {
				t.Errorf("%q, %v, reused %v", body, err, res.Reused)
			}
		})
	}
}

// TestKeepAliveRace: the provider closes as our request is in flight. It had most likely not seen it, but a provider that died while it
// worked looks the same: nothing is repeated here, and the error says that it is the race (FIELD-REPORTS F7).
func TestKeepAliveRace(t *testing.T) {
	for name, die := range map[string]func(*wire){"FIN": (*wire).fin, "RST": (*wire).reset} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, func(_ int, w *wire) {
				w.request()
				w.say(ok5)
				if req, _ := w.request(); req == nil {
					return
				}
				die(w)
				w.gone()
			})
			c := newClient(t, Config{})
			if _, err := drain(open(t, c, p.target("http"), post("{}"))); err != io.EOF {
				t.Fatal(err)
			}
			_, err := c.Open(within(t), p.target("http"), post("{}"))
			if e := failure(t, err); e.Kind != StaleConn || e.Safety != Sent {
				t.Errorf("got %v, want a stale connection that was sent on", e)
			}
			if p.accepted() != 1 {
				t.Errorf("%d connections: the request was repeated", p.accepted())
			}
		})
	}
}

// TestDeathOnAFreshConnectionIsNotStale: there is no race to blame.
func TestDeathOnAFreshConnectionIsNotStale(t *testing.T) {
	p := newPeer(t, func(_ int, w *wire) {
		w.request()
		w.fin()
		w.gone()
	})
	_, err := newClient(t, Config{}).Open(within(t), p.target("http"), post("{}"))
	if e := failure(t, err); e.Kind != Truncated || e.Safety != Sent || e.Op != OpHead {
		t.Errorf("got %v", e)
	}
}

// TestUnusableConnectionIsReplacedOnce: when not one byte of the request can leave on a pooled connection, a fresh one is safe.
func TestUnusableConnectionIsReplacedOnce(t *testing.T) {
	p := newPeer(t, func(_ int, w *wire) {
		for req, _ := w.request(); req != nil; req, _ = w.request() {
			w.say(ok5)
		}
		w.gone()
	})
	c := newClient(t, Config{})
	if _, err := drain(open(t, c, p.target("http"), post("{}"))); err != io.EOF {
		t.Fatal(err)
	}
	// Our own direction shut: the peek finds an open, silent connection, and the write fails with nothing sent.
	if err := onlyIdle(t, c).raw.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	res, err := c.Open(within(t), p.target("http"), post("{}"))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	if body, err := drain(res); body != "hello" || err != io.EOF || res.Reused || p.accepted() != 2 {
		t.Errorf("%q, %v, reused %v, %d connections", body, err, res.Reused, p.accepted())
	}
}

func TestIdleConnectionsAreBoundedAndReaped(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	p := newPeer(t, func(_ int, w *wire) {
		w.request()
		arrived <- struct{}{}
		<-release
		w.say(ok5)
		w.gone()
	})
	c := newClient(t, Config{MaxIdlePerHost: 2, IdleConnTimeout: 50 * time.Millisecond})
	done := make(chan error)
	for range 5 {
		go func() {
			res, err := c.Open(within(t), p.target("http"), post("{}"))
			if err == nil {
				_, err = drain(res)
			}
			done <- err
		}()
	}
	for range 5 {
		<-arrived
	}
	close(release)
	for range 5 {
		if err := <-done; err != io.EOF {
			t.Error(err)
		}
	}
	p.served() // three by the bound, two by the reaper: every provider side saw its end
}

func TestClosedClient(t *testing.T) {
	more := make(chan struct{})
	p := newPeer(t, func(_ int, w *wire) {
		w.request()
		w.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
		<-more
		w.say("hello")
		w.gone()
	})
	c := newClient(t, Config{})
	res := open(t, c, p.target("http"), post("{}"))
	c.Close()
	close(more)
	if body, err := drain(res); body != "hello" || err != io.EOF {
		t.Errorf("a running stream was cut by Client.Close: %q, %v", body, err)
	}
	p.served()
	_, err := c.Open(within(t), p.target("http"), post("{}"))
	if e := failure(t, err); e.Kind != Canceled || e.Safety != NotSent {
		t.Errorf("open of a closed client: %v", e)
	}
}

func onlyIdle(t *testing.T, c *Client) *conn {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.hosts {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.idle) == 1 {
			return h.idle[0]
		}
	}
	t.Fatal("no single idle connection")
	return nil
}

func TestConfigValidate(t *testing.T) {
	for name, cfg := range map[string]Config{
		"dial": {DialTimeout: -1}, "idle": {IdleConnTimeout: -1}, "per host": {MaxIdlePerHost: -1},
		"head": {MaxHeaderBytes: -1}, "buffer": {ReadBuffer: 100}, "ping": {PingTimeout: -1},
	} {
		if cfg.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestKeepClosesTheOtherPools: what idles at once, what carries a stream behind it; and a target that was let go can be reached all the same.
func TestKeepClosesTheOtherPools(t *testing.T) {
	serve := func(gone chan struct{}, more <-chan struct{}) func(int, *wire) {
		return func(n int, w *wire) {
			for req, _ := w.request(); req != nil; req, _ = w.request() {
				if n == 0 && more != nil {
					w.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
					<-more
					w.say("llo")
					continue
				}
				w.say(ok5)
			}
			if n == 0 {
				close(gone)
			}
		}
	}
	more := make(chan struct{})
	gone := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	idle, busy, kept := newPeer(t, serve(gone[0], nil)), newPeer(t, serve(gone[1], more)), newPeer(t, serve(gone[2], nil))
	c := newClient(t, Config{})
	for _, p := range []*peer{idle, kept} {
		if body, err := drain(open(t, c, p.target("http"), post("{}"))); body != "hello" || err != io.EOF {
			t.Fatalf("%q, %v", body, err)
		}
	}
	live := open(t, c, busy.target("http"), post("{}"))
	c.Keep([]*Target{kept.target("http")})
	<-gone[0]
	close(more)
	if body, err := drain(live); body != "hello" || err != io.EOF {
		t.Errorf("the stream was touched: %q, %v", body, err)
	}
	<-gone[1]
	res := open(t, c, kept.target("http"), post("{}"))
	if body, err := drain(res); body != "hello" || err != io.EOF || !res.Reused {
		t.Errorf("%q, %v, reused = %v", body, err, res.Reused)
	}
	res = open(t, c, idle.target("http"), post("{}"))
	if body, err := drain(res); body != "hello" || err != io.EOF || res.Reused {
		t.Errorf("%q, %v, reused = %v", body, err, res.Reused)
	}
}
