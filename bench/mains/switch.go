package mains

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Switch is a port of loopback in front of a server.
type Switch struct {
	l  net.Listener
	to string
	wg sync.WaitGroup

	mu   sync.Mutex
	off  bool
	late time.Duration
	open map[net.Conn]struct{} // both sides
	vain []time.Time
}

// New opens a port in front of the server at an address. It is on, and not late.
func New(to string) (*Switch, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s := &Switch{l: l, to: to, open: map[net.Conn]struct{}{}}
	s.wg.Go(s.accept)
	return s, nil
}

// Addr is where it listens.
func (s *Switch) Addr() string { return s.l.Addr().String() }

// Cut resets all connections, and each new one until Restore.
func (s *Switch) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = true
	for c := range s.open {
		reset(c)
	}
	clear(s.open)
}

// Restore ends a cut.
func (s *Switch) Restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = false
}

// Delay has what the server says from now on come so much later, on open connections too, and
// as fast after one another as it was said; 0: at once.
func (s *Switch) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = d
}

// Vain is when somebody came in vain: each connection that was made while all were cut. As no
// connection outlives a cut, each request then needs one of its own.
func (s *Switch) Vain() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.vain)
}

// Close ends everything, and waits for it.
func (s *Switch) Close() {
	_ = s.l.Close()
	s.Cut()
	s.wg.Wait()
}

// acceptAgain is the time between two tries to accept a connection when no file is free.
const acceptAgain = 10 * time.Millisecond

func (s *Switch) accept() {
	for {
		c, err := s.l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptAgain)
		case s.admit(c):
			s.wg.Go(func() { s.join(c) })
		}
	}
}

// admit takes a client in, or notes that it came in vain.
func (s *Switch) admit(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off {
		s.vain = append(s.vain, time.Now())
	}
	return s.hold(c)
}

// hold takes a connection in unless all are cut. mu is held.
func (s *Switch) hold(c net.Conn) bool {
	if s.off {
		reset(c)
		return false
	}
	s.open[c] = struct{}{}
	return true
}

func (s *Switch) drop(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	_ = c.Close()
}

func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}
