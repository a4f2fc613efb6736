package mains

import (
	"io"
	"net"
	"slices"
	"time"
)

// join carries bytes both ways until one side ends.
func (s *Switch) join(client net.Conn) {
	defer s.drop(client)
	server, err := s.dial()
	if err != nil {
		return
	}
	defer s.drop(server)
	s.wg.Go(func() {
		defer s.drop(server)
		_, _ = io.Copy(server, client)
	})
	s.answer(client, server)
}

func (s *Switch) dial() (net.Conn, error) {
	c, err := net.Dial("tcp", s.to)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hold(c) {
		return nil, net.ErrClosed
	}
	return c, nil
}

// parcel is what one read brought, and when it may go on.
type parcel struct {
	due  time.Time
	data []byte
}

// answer carries what the server says, to its last byte, however late.
func (s *Switch) answer(client, server net.Conn) {
	queue := make(chan parcel, 1024)
	s.wg.Go(func() {
		defer close(queue)
		s.hear(server, queue)
	})
	defer func() {
		s.drop(server)
		for range queue { // so that hear gets to its end
		}
	}()
	for p := range queue {
		time.Sleep(time.Until(p.due))
		if _, err := client.Write(p.data); err != nil {
			return
		}
	}
}

func (s *Switch) hear(server net.Conn, queue chan<- parcel) {
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if n > 0 {
			s.mu.Lock()
			due := time.Now().Add(s.late)
			s.mu.Unlock()
			queue <- parcel{due, slices.Clone(buf[:n])}
		}
		if err != nil {
			return
		}
	}
}
