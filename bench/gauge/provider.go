package gauge

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Provider answers chat completions as a [Shape] asks, as cheaply as it can, so that
// its share of the machine is small beside a proxy's.
type Provider struct {
	l    net.Listener
	wait sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	done  bool
}

// NewProvider listens on addr, or, if that is empty, on a free port of loopback.
func NewProvider(addr string) (*Provider, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	p := &Provider{l: l, conns: map[net.Conn]struct{}{}}
	p.wait.Add(1)
	go p.accept()
	return p, nil
}

// Addr is where it listens.
func (p *Provider) Addr() string { return p.l.Addr().String() }

// Close ends all connections.
func (p *Provider) Close() {
	p.mu.Lock()
	p.done = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	_ = p.l.Close()
	p.wait.Wait()
}

func (p *Provider) accept() {
	defer p.wait.Done()
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		if p.done {
			p.mu.Unlock()
			_ = c.Close()
			return
		}
		p.conns[c] = struct{}{}
		p.wait.Add(1)
		p.mu.Unlock()
		go p.serve(c)
	}
}

func (p *Provider) serve(c net.Conn) {
	defer p.wait.Done()
	defer func() {
		_ = c.Close()
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
	}()
	in := bufio.NewReaderSize(c, 4<<10)
	for {
		body, err := readRequest(in)
		if err != nil {
			return
		}
		shape, ok := shapeOf(body)
		switch {
		case !ok:
			_, err = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		case bytes.Contains(body, []byte(`"stream":true`)):
			err = stream(c, shape)
		default:
			err = whole(c, shape)
		}
		if err != nil {
			return
		}
	}
}

// readRequest reads a request with a body of known length.
func readRequest(in *bufio.Reader) ([]byte, error) {
	length := -1
	for n := 0; ; n++ {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" && n > 0 {
			break
		}
		if name, value, ok := strings.Cut(text, ":"); ok && strings.EqualFold(name, "Content-Length") {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return nil, err
			}
		}
	}
	if length < 0 {
		return nil, errors.New("a request without a length")
	}
	body := make([]byte, length)
	_, err := io.ReadFull(in, body)
	return body, err
}

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	// stampMark begins a stamp: stampDigits digits, nanoseconds since 1970.
	stampMark   = "@"
	stampDigits = 19
	batch       = 32 // events of one write, when they are not paced
)

func chunk(dst []byte, data string) []byte { return fmt.Appendf(dst, "%x\r\n%s\r\n", len(data), data) }

func event(delta, finish string) string {
	return `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1764400000,"model":"bench","choices":[{"index":0,"delta":` +
		delta + `,"finish_reason":` + finish + "}]}\n\n"
}

// textEvent is one event as a chunk, and where in it the digits of its stamp are.
func textEvent(size int) (c []byte, stamp int) {
	zero := strings.Repeat("0", stampDigits)
	c = chunk(nil, event(`{"content":"`+stampMark+zero+" "+strings.Repeat("w", size)+`"}`, "null"))
	return c, bytes.Index(c, []byte(stampMark+zero)) + len(stampMark)
}

func stream(c net.Conn, s Shape) error {
	head := chunk([]byte(streamHead), event(`{"role":"assistant","content":""}`, "null"))
	if _, err := c.Write(head); err != nil {
		return err
	}
	one, stamp := textEvent(s.Bytes)
	n := 1
	if s.Every == 0 {
		n = min(batch, max(s.Events, 1))
		one = bytes.Repeat(one, n)
	}
	next := time.Now()
	for sent := 0; sent < s.Events; sent += n {
		if s.Every > 0 {
			next = next.Add(s.Every)
			time.Sleep(time.Until(next))
		}
		left := min(n, s.Events-sent)
		size := len(one) / n
		now := time.Now().UnixNano()
		for i := range left {
			strconv.AppendInt(one[i*size+stamp:i*size+stamp], now, 10)
		}
		if _, err := c.Write(one[:left*size]); err != nil {
			return err
		}
	}
	end := chunk(nil, event(`{}`, `"stop"`))
	end = chunk(end, "data: [DONE]\n\n")
	_, err := c.Write(append(end, "0\r\n\r\n"...))
	return err
}

func whole(c net.Conn, s Shape) error {
	body := fmt.Sprintf(`{"id":"chatcmpl-bench","object":"chat.completion","created":1764400000,"model":"bench","choices":[{"index":0,`+
		`"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
		strings.Repeat("w", s.Events*s.Bytes))
	_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return err
}
