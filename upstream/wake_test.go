package upstream

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"testing"

	"golang.org/x/net/http2"
)

// transports are the ways a body may arrive. A server calls send for each piece, then end or not.
var transports = []struct {
	name  string
	serve func(t *testing.T, script func(send func([]byte), end func())) *Target
}{
	{"http/1.1", func(t *testing.T, script func(func([]byte), func())) *Target {
		return newPeer(t, func(_ int, w *wire) { serveChunked(w, script) }).target("http")
	}},
	{"http/1.1 over TLS", func(t *testing.T, script func(func([]byte), func())) *Target {
		id := newIdentity(t)
		return id.target(newPeer(t, func(_ int, w *wire) {
			if s := id.accept(w, "http/1.1"); s != nil {
				serveChunked(s, script)
			}
		}))
	}},
	{"http/2", func(t *testing.T, script func(func([]byte), func())) *Target {
		return h2peer(t, func(_ int, f *frames) {
			id, _ := f.request()
			f.ok(id)
			script(func(b []byte) { _ = f.fr.WriteData(id, false, b) }, func() { _ = f.fr.WriteData(id, true, nil) })
			f.next(http2.FrameRSTStream)
		}).target("h2c")
	}},
}

func serveChunked(w *wire, script func(func([]byte), func())) {
	if req, _ := w.request(); req == nil {
		return
	}
	w.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	script(func(b []byte) { w.say(fmt.Sprintf("%x\r\n%s\r\n", len(b), b)) }, func() { w.say("0\r\n\r\n") })
	w.gone()
}

func TestWakeOfABlockedNext(t *testing.T) {
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			more := make(chan struct{})
			to := tr.serve(t, func(send func([]byte), end func()) {
				<-more
				send([]byte("hello"))
				end()
			})
			res := open(t, newClient(t, Config{}), to, post("{}"))
			seen := make(chan struct{})
			go func() {
				for range 200 {
					res.Wake()
					<-seen // lost wakes would end here, for ever
				}
			}()
			for i := range 200 {
				if p, err := res.Next(); err != ErrWoken || p != nil {
					t.Fatalf("wake %d: Next returned %q, %v", i, p, err)
				}
				seen <- struct{}{}
			}
			close(more)
			if body, err := drain(res); body != "hello" || err != io.EOF {
				t.Errorf("after the wakes: %q, %v", body, err)
			}
		})
	}
}

// TestWakeBeforeNext: a wake that meets nobody is kept for the following Next, once, even with bytes or the end at hand.
func TestWakeBeforeNext(t *testing.T) {
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			to := tr.serve(t, func(send func([]byte), end func()) {
				send([]byte("hello"))
				end()
			})
			res := open(t, newClient(t, Config{}), to, post("{}"))
			res.Wake()
			res.Wake()
			if p, err := res.Next(); err != ErrWoken || p != nil {
				t.Fatalf("first Next returned %q, %v", p, err)
			}
			var got []byte
			for len(got) < 5 {
				p, err := res.Next()
				if err != nil {
					t.Fatalf("wakes were not one wake: %v", err)
				}
				got = append(got, p...)
			}
			res.Wake()
			if _, err := res.Next(); err != ErrWoken {
				t.Fatalf("Next before the end returned %v", err)
			}
			if _, err := res.Next(); err != io.EOF {
				t.Fatalf("end is %v", err)
			}
			res.Wake()
			if _, err := res.Next(); err != ErrWoken {
				t.Fatalf("Next behind the end returned %v", err)
			}
			if _, err := res.Next(); err != io.EOF {
				t.Fatalf("the end was lost to a wake: %v", err)
			}
		})
	}
}

// TestWakeStorm wakes from several goroutines as fast as it goes while numbered bytes stream: none may be lost, doubled or moved.
func TestWakeStorm(t *testing.T) {
	const numbers = 20000
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			to := tr.serve(t, func(send func([]byte), end func()) {
				var b []byte
				for i := range uint32(numbers) {
					if b = binary.BigEndian.AppendUint32(b, i); i%97 == 0 || i == numbers-1 {
						send(b)
						b = b[:0]
					}
				}
				end()
			})
			res := open(t, newClient(t, Config{}), to, post("{}"))
			stop := make(chan struct{})
			var wg, storming sync.WaitGroup // a busy machine may have read all before the first wake
			for range 3 {
				storming.Add(1)
				wg.Add(1)
				go func() {
					defer wg.Done()
					res.Wake()
					storming.Done()
					for {
						select {
						case <-stop:
							return
						default:
							res.Wake()
						}
					}
				}()
			}
			storming.Wait()
			var got bytes.Buffer
			woken := 0
			for {
				p, err := res.Next()
				got.Write(p)
				if err == ErrWoken {
					woken++
					continue
				}
				if err != nil {
					if err != io.EOF {
						t.Errorf("end is %v", err)
					}
					break
				}
			}
			close(stop)
			wg.Wait()
			if got.Len() != 4*numbers {
				t.Fatalf("%d bytes, want %d", got.Len(), 4*numbers)
			}
			for i := range uint32(numbers) {
				if n := binary.BigEndian.Uint32(got.Next(4)); n != i {
					t.Fatalf("at %d: %d", i, n)
				}
			}
			if woken == 0 {
				t.Error("no wake was seen")
			}
		})
	}
}

// TestWakeNeverReachesTheNextUser: a wake that comes as a stream ends must not leave its deadline on a connection that is in the pool
// or carries another stream by now.
func TestWakeNeverReachesTheNextUser(t *testing.T) {
	p := newPeer(t, func(_ int, w *wire) {
		for req, _ := w.request(); req != nil; req, _ = w.request() {
			w.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		}
	})
	c := newClient(t, Config{})
	var wg sync.WaitGroup
	for range 300 {
		res := open(t, c, p.target("http"), post("{}"))
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 20 {
				res.Wake()
			}
		}()
		if body, err := drain(res); body != "hello" || err != io.EOF {
			t.Fatalf("%q, %v", body, err)
		}
		res.Close()
	}
	wg.Wait()
	if n := p.accepted(); n != 1 {
		t.Errorf("%d connections, want 1: a wake cost one", n)
	}
}
