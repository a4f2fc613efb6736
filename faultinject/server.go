package faultinject

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// A Server is a running provider. One port speaks HTTP/1.1 and HTTP/2 (prior
// knowledge without TLS, ALPN with it).
type Server struct {
	cfg   Config
	log   *history
	turns *turns

	listener net.Listener
	h1       *http.Server
	h1conns  *handedListener
	tls      *tls.Config
	roots    *x509.CertPool
	client   *http.Client // to the target

	prompts promptLog // of legacy completions

	closing chan struct{}
	wg      sync.WaitGroup // accept loop, connections, handlers

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool // not with net/http: undecided, or HTTP/2
	keys   map[string][sha256.Size]byte

	shelf *shelf // responses the provider keeps
}

// New returns a server that listens, but does not serve before Start. It fails
// on a configuration that cannot work and on a port that cannot be had.
func New(c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("fault server: %w", err)
	}
	s := &Server{cfg: c.withDefaults(), log: newHistory(), turns: &turns{byID: map[string]*turnState{}},
		closing: make(chan struct{}), conns: map[net.Conn]bool{}, keys: map[string][sha256.Size]byte{}, shelf: newShelf()}
	if s.cfg.TLS {
		cert, roots, err := selfSigned()
		if err != nil {
			return nil, fmt.Errorf("fault server: make certificate: %w", err)
		}
		s.roots = roots
		s.tls = &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	}
	l, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("fault server: %w: choose another address", err)
	}
	s.listener = l
	s.h1conns = &handedListener{conns: make(chan net.Conn), closed: s.closing, addr: l.Addr()}
	s.h1 = &http.Server{Handler: http.HandlerFunc(s.serveH1), ReadHeaderTimeout: time.Minute, ErrorLog: quiet()}
	if s.cfg.Target != nil {
		s.client = targetClient()
	}
	return s, nil
}

// Start serves until Close.
func (s *Server) Start() {
	s.wg.Add(2)
	go s.acceptLoop()
	go s.serveHanded()
}

// Serve starts the server and closes it when ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	s.Start()
	<-ctx.Done()
	return s.Close()
}

// URL is where the server listens, without a trailing slash.
func (s *Server) URL() string {
	if s.tls != nil {
		return "https://" + s.listener.Addr().String()
	}
	return "http://" + s.listener.Addr().String()
}

// H2CURL is the same address under the scheme for HTTP/2 with prior knowledge.
// With TLS it is URL: the version is then negotiated.
func (s *Server) H2CURL() string {
	if s.tls != nil {
		return s.URL()
	}
	return "h2c://" + s.listener.Addr().String()
}

// Roots is what a client must trust to talk TLS to this server; nil without.
func (s *Server) Roots() *x509.CertPool { return s.roots }

// Log returns every exchange so far, in order of arrival.
func (s *Server) Log() []Exchange {
	list, _ := s.log.snapshot()
	return list
}

// WaitLog waits until done holds for the log, and returns that log. It is the
// way for tests to wait for the server's view without sleeping.
func (s *Server) WaitLog(ctx context.Context, done func([]Exchange) bool) ([]Exchange, error) {
	return s.log.wait(ctx, done)
}

// Reset forgets every turn, idempotency key and kept response, so that attempts count from
// one again. The log stays.
func (s *Server) Reset() {
	s.turns.reset()
	s.prompts.reset()
	s.shelf.clear()
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.keys)
}

// Close ends every exchange and waits for them. It may be called twice.
func (s *Server) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	if first {
		close(s.closing)
	}
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	var err error
	if first {
		err = errors.Join(s.listener.Close(), s.h1.Close())
		if s.client != nil {
			s.client.CloseIdleConnections()
		}
	}
	s.wg.Wait()
	return err
}

// enter registers work that Close waits for; it reports false when the server
// is closing.
func (s *Server) enter(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if c != nil {
		s.conns[c] = true
	}
	s.wg.Add(1)
	return true
}

func (s *Server) leave(c net.Conn) {
	s.release(c)
	s.wg.Done()
}

// release hands a connection over to net/http.
func (s *Server) release(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}
