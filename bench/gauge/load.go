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

// Load is many clients, each with one connection on which it asks again and again.
type Load struct {
	addr    string
	request []byte
	stream  bool

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

// Start opens n clients against addr.
func Start(addr string, s Shape, stream bool, n, prompt int) *Load {
	body := s.Body(stream, prompt)
	l := &Load{addr: addr, stream: stream, request: fmt.Appendf(nil,
		"POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAuthorization: Bearer bench\r\nContent-Length: %d\r\n\r\n%s", len(body), body)}
	l.ctx, l.stop = context.WithCancel(context.Background())
	for range n {
		c := &client{lat: hdrhistogram.New(1, time.Minute.Microseconds(), 2)}
		l.clients = append(l.clients, c)
		l.wait.Add(1)
		go l.run(c)
		if stream {
			time.Sleep(200 * time.Microsecond) // so that phases differ and no backlog overflows
		}
	}
	return l
}

// Stop ends all clients.
func (l *Load) Stop() {
	l.stop()
	l.wait.Wait()
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
	for l.ctx.Err() == nil {
		conn, err := net.DialTimeout("tcp", l.addr, 10*time.Second)
		if err != nil {
			l.failed(err)
			return
		}
		stopped := context.AfterFunc(l.ctx, func() { _ = conn.Close() })
		err = l.talk(conn, c, &first)
		stopped()
		_ = conn.Close()
		if err != nil && l.ctx.Err() == nil {
			l.failed(err)
			return
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
	for l.ctx.Err() == nil {
		began := time.Now()
		if _, err := conn.Write(l.request); err != nil {
			return err
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			b, _ := io.ReadAll(io.LimitReader(res.Body, 200))
			return fmt.Errorf("%s: %s", res.Status, b)
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

var doneMark = []byte("[DONE]")

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
	if bytes.Contains(p, doneMark) {
		s.done = true
	}
	s.tail = append(s.tail[:0], p[max(0, len(p)-len(doneMark)):]...)
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
