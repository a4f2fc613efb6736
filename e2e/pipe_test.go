package e2e

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// pipe is a way to a server that can be made slow, be closed, and be listened to.
type pipe struct {
	l  net.Listener
	to string

	delay   atomic.Int64 // of every answer, ns
	refuses atomic.Bool
	// answered is called before each answer is passed on; one at a time.
	answered atomic.Pointer[func()]
	calls    sync.Mutex

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newPipe(t *testing.T, to string) *pipe {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pipe{l: l, to: to, conns: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = l.Close(); p.cut() })
	go p.accept()
	return p
}

func (p *pipe) addr() string { return p.l.Addr().String() }

// listen has call called before each answer is passed on.
func (p *pipe) listen(call func()) { p.answered.Store(&call) }

// refuse ends all connections, and those to come; or lets them be again.
func (p *pipe) refuse(yes bool) {
	p.refuses.Store(yes)
	if yes {
		p.cut()
	}
}

func (p *pipe) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *pipe) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", p.to)
		if err != nil || p.refuses.Load() {
			_ = c.Close()
			if err == nil {
				_ = s.Close()
			}
			continue
		}
		p.mu.Lock()
		p.conns[c], p.conns[s] = true, true
		p.mu.Unlock()
		go p.copy(s, c, false)
		go p.copy(c, s, true)
	}
}

func (p *pipe) copy(to, from net.Conn, answers bool) {
	defer func() {
		_, _ = to.Close(), from.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, to)
		delete(p.conns, from)
	}()
	if !answers {
		_, _ = io.Copy(to, from)
		return
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if d := time.Duration(p.delay.Load()); d > 0 {
			time.Sleep(d) // this is the fault itself
		}
		if call := p.answered.Load(); call != nil {
			p.calls.Lock()
			(*call)()
			p.calls.Unlock()
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
