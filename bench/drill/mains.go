package main

import (
	"io"
	"net"
	"sync"
	"time"
)

// mains is what a provider hangs on: a port in front of it that can be cut off. While
// it is, every connection is reset, and noted as the request that it would have been:
// no connection outlives the cut, so that each request needs one of its own.
type mains struct {
	l  net.Listener
	to string
	wg sync.WaitGroup

	mu     sync.Mutex
	off    bool
	open   map[net.Conn]struct{}
	inVain []time.Time
}

func newMains(to string) (*mains, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &mains{l: l, to: to, open: map[net.Conn]struct{}{}}
	m.wg.Add(1)
	go m.accept()
	return m, nil
}

func (m *mains) url() string { return "http://" + m.l.Addr().String() }

func (m *mains) accept() {
	defer m.wg.Done()
	for {
		c, err := m.l.Accept()
		if err != nil {
			return
		}
		if !m.hold(c) {
			kill(c)
			continue
		}
		m.wg.Add(1)
		go m.join(c)
	}
}

// hold takes a connection in, or notes that it came in vain.
func (m *mains) hold(c net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off {
		m.inVain = append(m.inVain, time.Now())
		return false
	}
	m.open[c] = struct{}{}
	return true
}

// join carries bytes both ways until one side ends.
func (m *mains) join(c net.Conn) {
	defer m.wg.Done()
	defer m.drop(c)
	p, err := net.Dial("tcp", m.to)
	if err != nil {
		return
	}
	defer p.Close()
	m.wg.Add(1)
	go func() {
		defer m.wg.Done()
		_, _ = io.Copy(p, c)
		_ = p.Close()
	}()
	_, _ = io.Copy(c, p)
}

func (m *mains) drop(c net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, c)
	_ = c.Close()
}

// cut ends everything at once, until restore.
func (m *mains) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.off = true
	for c := range m.open {
		kill(c)
	}
}

func (m *mains) restore() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.off = false
}

// vain is when somebody came in vain.
func (m *mains) vain() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]time.Time(nil), m.inVain...)
}

func (m *mains) close() {
	_ = m.l.Close()
	m.cut()
	m.wg.Wait()
}

// kill resets a connection.
func kill(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
