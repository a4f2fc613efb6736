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

// Provider answers as a [Shape] asks, on either [Wire], over HTTP/1.1 or over HTTP/2 in clear, as cheaply as it can, so that its
// share of the machine is small beside a proxy's. It never breaks, so it is never asked to
// go on: where streams break, the provider is faultinject's.
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
	return provide(l), nil
}

func provide(l net.Listener) *Provider {
	p := &Provider{l: l, conns: map[net.Conn]struct{}{}}
	p.wait.Add(1)
	go p.accept()
	return p
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

// acceptAgain is the time between two tries to accept a connection.
const acceptAgain = 10 * time.Millisecond

func (p *Provider) accept() {
	defer p.wait.Done()
	for {
		c, err := p.l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no file is free: connections of the load before are still being closed
			time.Sleep(acceptAgain)
			continue
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
	if first, _ := in.Peek(len(preface)); string(first) == preface {
		serveH2(c, in)
		return
	}
	for {
		wire, body, err := readRequest(in)
		if err != nil {
			return
		}
		shape, ok := shapeOf(body)
		switch {
		case !ok:
			_, err = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		case streams(body):
			err = wire.stream(chunked(c), shape)
		default:
			err = wire.whole(c, shape)
		}
		if err != nil {
			return
		}
	}
}

// wireAt tells the wire by a request's path.
func wireAt(path string) Wire {
	if strings.HasSuffix(path, Messages.path()) {
		return Messages
	}
	return Chat
}

// streams reports whether a request asks for a stream.
func streams(body []byte) bool { return bytes.Contains(body, []byte(`"stream":true`)) }

// readRequest reads a request with a body of known length, and tells the wire by its path.
func readRequest(in *bufio.Reader) (w Wire, body []byte, err error) {
	length := -1
	for n := 0; ; n++ {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return w, nil, err
		}
		text := strings.TrimRight(string(line), "\r\n")
		if n == 0 {
			target, _, _ := strings.Cut(strings.TrimPrefix(text, "POST "), " ")
			w = wireAt(target)
		}
		if text == "" && n > 0 {
			break
		}
		if name, value, ok := strings.Cut(text, ":"); ok && strings.EqualFold(name, "Content-Length") {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return w, nil, err
			}
		}
	}
	if length < 0 {
		return w, nil, errors.New("a request without a length")
	}
	body = make([]byte, length)
	_, err = io.ReadFull(in, body)
	return w, body, err
}
