package gauge

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Load is many clients, each with one connection on which it asks again and again, and with
// another one if that breaks.
type Load struct {
	addr    string
	request []byte
	stream  bool
	end     []byte // what the last event of a stream holds
	once    bool   // one call, whatever comes of it

	wait    sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context
	measure atomic.Bool
	clients []*client

	events, calls, broken atomic.Int64
	flowing               atomic.Int64 // clients that got their first event or answer
	fault                 atomic.Pointer[error]
}

type client struct {
	mu  sync.Mutex // against the reader of hist, once in a run
	lat *hdrhistogram.Histogram
}

// Start opens a scenario's clients against addr.
func Start(addr string, sc Scenario) *Load {
	l := newLoad(addr, sc)
	l.start(sc.Clients)
	return l
}

func newLoad(addr string, sc Scenario) *Load {
	w := sc.wire()
	body := sc.Shape.on(w, sc.Stream, sc.Prompt)
	head := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Length: %d\r\n", w.path(), len(body))
	for name, values := range w.header("bench") {
		head = fmt.Appendf(head, "%s: %s\r\n", name, values[0])
	}
	l := &Load{addr: addr, stream: sc.Stream, request: append(append(head, "\r\n"...), body...), end: w.terminal()}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// opened is how far apart streams are opened, so that their phases differ and no listener's
// backlog overflows: as many more as a machine of two cores takes for both sides of a proxy.
func opened(n int) time.Duration {
	if n > 5000 {
		return 500 * time.Microsecond
	}
	return 200 * time.Microsecond
}

func (l *Load) start(n int) {
	for range n {
		c := &client{lat: hdrhistogram.New(1, time.Minute.Microseconds(), 2)}
		l.clients = append(l.clients, c)
		l.wait.Add(1)
		go l.run(c)
		if l.stream {
			time.Sleep(opened(n))
		}
	}
}

// more reports whether another call is due.
func (l *Load) more() bool {
	return l.ctx.Err() == nil && (!l.once || l.calls.Load()+l.broken.Load() == 0)
}

// units is what is counted: events of streams, or calls.
func (l *Load) units() int64 {
	if l.stream {
		return l.events.Load()
	}
	return l.calls.Load()
}

// Stop ends all clients.
func (l *Load) Stop() {
	l.stop()
	l.wait.Wait()
}

// tooMany is an error if more of n clients failed than a peer is forgiven: one in twenty, and
// none where nothing is.
func (l *Load) tooMany(n int, strict bool) error {
	most := int64(n / 20)
	if strict {
		most = 0
	}
	if b := l.broken.Load(); b > most {
		return fmt.Errorf("%d calls failed, the first: %w", b, l.Err())
	}
	return nil
}

// Err is the first fault of a client.
func (l *Load) Err() error {
	if e := l.fault.Load(); e != nil {
		return *e
	}
	return nil
}

// Latency is the distribution of latencies while measuring, in microseconds.
func (l *Load) Latency() *hdrhistogram.Histogram {
	sum := hdrhistogram.New(1, time.Minute.Microseconds(), 2)
	for _, c := range l.clients {
		c.mu.Lock()
		sum.Merge(c.lat)
		c.mu.Unlock()
	}
	return sum
}

func (l *Load) run(c *client) {
	defer l.wait.Done()
	first := true
	for l.more() {
		conn, err := net.DialTimeout("tcp", l.addr, 10*time.Second)
		if err != nil {
			l.failed(err)
			_ = pause(l.ctx, 100*time.Millisecond)
			continue
		}
		stopped := context.AfterFunc(l.ctx, func() { _ = conn.Close() })
		err = l.talk(conn, c, &first)
		stopped()
		_ = conn.Close()
		if err != nil && l.ctx.Err() == nil {
			l.failed(err)
			_ = pause(l.ctx, 100*time.Millisecond)
		}
	}
}

func (l *Load) failed(err error) {
	l.broken.Add(1)
	l.fault.CompareAndSwap(nil, &err)
}

// talk asks on one connection until the load ends.
func (l *Load) talk(conn net.Conn, c *client, first *bool) error {
	in := bufio.NewReaderSize(conn, 16<<10)
	scan := &stamps{l: l, c: c, first: first}
	for l.more() {
		began := time.Now()
		if _, err := conn.Write(l.request); err != nil {
			return err
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return refusal(res, func(s string) string { return s })
		}
		if !l.stream {
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				return err
			}
			scan.sample(time.Since(began))
			l.calls.Add(1)
			continue
		}
		scan.reset()
		if _, err := io.CopyBuffer(scan, onlyReader{res.Body}, scan.buf[:]); err != nil {
			return err
		}
		if !scan.done {
			return errors.New("a stream without its end")
		}
		l.calls.Add(1)
	}
	return nil
}

// onlyReader hides what io.Copy would use instead of the buffer.
type onlyReader struct{ io.Reader }

// stamps reads the stamps of a stream.
type stamps struct {
	l     *Load
	c     *client
	first *bool
	tail  []byte // what may be the beginning of a stamp
	done  bool
	buf   [16 << 10]byte
}

func (s *stamps) reset() { s.tail, s.done = s.tail[:0], false }

// Write implements io.Writer.
func (s *stamps) Write(p []byte) (int, error) {
	n := len(p)
	now := time.Now().UnixNano()
	if len(s.tail) > 0 {
		p = append(s.tail, p...)
	}
	mark := []byte(`"` + stampMark)
	for {
		i := bytes.Index(p, mark)
		if i < 0 {
			break
		}
		rest := p[i+len(mark):]
		if len(rest) < stampDigits {
			p = p[i:]
			s.tail = append(s.tail[:0], p...)
			return n, nil
		}
		if sent, err := strconv.ParseInt(string(rest[:stampDigits]), 10, 64); err == nil {
			s.l.events.Add(1)
			s.sample(time.Duration(now - sent))
		}
		p = rest[stampDigits:]
	}
	if bytes.Contains(p, s.l.end) {
		s.done = true
	}
	s.tail = append(s.tail[:0], p[max(0, len(p)-len(s.l.end)):]...)
	return n, nil
}

func (s *stamps) sample(d time.Duration) {
	if *s.first {
		*s.first = false
		s.l.flowing.Add(1)
	}
	if !s.l.measure.Load() {
		return
	}
	s.c.mu.Lock()
	_ = s.c.lat.RecordValue(max(1, d.Microseconds()))
	s.c.mu.Unlock()
}
