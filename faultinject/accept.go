package faultinject

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"time"
)

// prefaceStart is how every HTTP/2 connection begins (RFC 9113 §3.4) and no
// HTTP/1.1 request does.
const prefaceStart = "PRI"

func (s *Server) acceptLoop() {
	defer s.wg.Done()
	for {
		c, err := s.listener.Accept()
		if err != nil {
			select {
			case <-s.closing:
				return
			case <-time.After(20 * time.Millisecond): // out of descriptors, most likely
				continue
			}
		}
		if !s.enter(c) {
			c.Close()
			return
		}
		go s.sort(c)
	}
}

func (s *Server) serveHanded() {
	defer s.wg.Done()
	s.h1.Serve(s.h1conns)
}

// sort finds out which HTTP a connection speaks and serves it.
func (s *Server) sort(raw net.Conn) {
	defer s.leave(raw)
	if s.tls != nil {
		c := tls.Server(raw, s.tls)
		if err := c.HandshakeContext(context.Background()); err != nil {
			raw.Close()
			return
		}
		if c.ConnectionState().NegotiatedProtocol == "h2" {
			s.serveH2(c, c)
			return
		}
		s.hand(raw, c)
		return
	}
	r := bufio.NewReader(raw)
	start, err := r.Peek(len(prefaceStart))
	if err != nil {
		raw.Close()
		return
	}
	if string(start) == prefaceStart {
		s.serveH2(raw, r)
		return
	}
	s.hand(raw, &peekedConn{raw, r})
}

// hand gives a connection to net/http.
func (s *Server) hand(raw, c net.Conn) {
	s.release(raw)
	select {
	case s.h1conns.conns <- c:
	case <-s.closing:
		raw.Close()
	}
}

// peekedConn is a connection of which the first bytes were looked at.
type peekedConn struct {
	net.Conn
	r io.Reader
}

func (c *peekedConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// NetConn gives access to the socket, for resets.
func (c *peekedConn) NetConn() net.Conn { return c.Conn }

// handedListener feeds connections that were accepted elsewhere to net/http.
type handedListener struct {
	conns  chan net.Conn
	closed chan struct{}
	addr   net.Addr
}

func (l *handedListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *handedListener) Close() error   { return nil }
func (l *handedListener) Addr() net.Addr { return l.addr }

// quiet swallows net/http's complaints about connections that faults broke.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
