package faultinject

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
)

// h1 is a response on net/http's HTTP/1.1.
type h1 struct {
	rw    http.ResponseWriter
	rc    *http.ResponseController
	r     *http.Request
	abort bool // the handler must end by http.ErrAbortHandler
}

func newH1(rw http.ResponseWriter, r *http.Request) *h1 {
	return &h1{rw: rw, rc: http.NewResponseController(rw), r: r}
}

// serveH1 reads the whole request first: only then does net/http notice that
// the client leaves (FIELD-REPORTS G1, measured).
func (s *Server) serveH1(rw http.ResponseWriter, r *http.Request) {
	if !s.enter(nil) {
		panic(http.ErrAbortHandler)
	}
	defer s.leave(nil)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w := newH1(rw, r)
	header := r.Header.Clone()
	header.Set("Host", r.Host)
	s.handle(r.Context(), received{r.Method, r.URL.RequestURI(), header, body}, w)
	if w.abort {
		panic(http.ErrAbortHandler)
	}
}

func (w *h1) transport() Transport { return HTTP1 }

func (w *h1) head(status int, h http.Header) error {
	for k, v := range h {
		w.rw.Header()[k] = v
	}
	w.rw.WriteHeader(status)
	return w.rc.Flush()
}

func (w *h1) write(p []byte) error {
	if _, err := w.rw.Write(p); err != nil {
		return err
	}
	return w.rc.Flush()
}

func (w *h1) end(s Step) {
	switch s.End {
	case EndFIN:
		w.abort = true
	case EndReset:
		w.reset()
	}
}

// reset closes the connection with RST: a linger of zero discards what was not
// sent and answers with a reset instead of FIN.
func (w *h1) reset() {
	conn, _, err := w.rc.Hijack()
	if err != nil {
		w.abort = true
		return
	}
	setReset(conn)
	conn.Close()
}

// setReset makes the next Close of conn send RST.
func setReset(conn net.Conn) {
	if c := tcpOf(conn); c != nil {
		c.SetLinger(0)
	}
}

// closeWrite sends FIN, behind the TLS alert that says so, and leaves the other direction
// open.
func closeWrite(conn net.Conn) error {
	if c, ok := conn.(*tls.Conn); ok {
		if err := c.CloseWrite(); err != nil {
			return err
		}
	}
	if c := tcpOf(conn); c != nil {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// tcpOf is the socket under conn; nil: it has none.
func tcpOf(conn net.Conn) *net.TCPConn {
	for {
		switch c := conn.(type) {
		case *net.TCPConn:
			return c
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

func (w *h1) gone() <-chan struct{} { return w.r.Context().Done() }
