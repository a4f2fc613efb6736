package proxy

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// Listen opens the listeners of an address. "localhost" is both loopbacks, since
// clients disagree about which one it names (FIELD-REPORTS F18); a machine
// without IPv6 has one of them.
func Listen(addr string) ([]net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, advice{fmt.Sprintf("listen address %q: write host:port, for instance 127.0.0.1:8790", addr), err}
	}
	if host != "localhost" {
		l, err := listen(addr)
		if err != nil {
			return nil, err
		}
		return []net.Listener{l}, nil
	}
	l4, err := listen(net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, err
	}
	_, port, _ = net.SplitHostPort(l4.Addr().String())
	l6, err := listen(net.JoinHostPort("::1", port))
	switch {
	case err == nil:
		return []net.Listener{l4, l6}, nil
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
		return []net.Listener{l4}, nil
	}
	_ = l4.Close()
	return nil, err
}

// advice says what to do about an error, in its place.
type advice struct {
	text string
	err  error
}

func (a advice) Error() string { return a.text }
func (a advice) Unwrap() error { return a.err }

func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, advice{"listen on " + addr + ": the port is in use; stop what uses it or choose another with --listen", err}
	case errors.Is(err, syscall.EACCES):
		return nil, advice{"listen on " + addr + ": not permitted; choose a port above 1023 with --listen", err}
	}
	return nil, fmt.Errorf("listen: %w", err)
}

// listeners are those that are served, or are about to be: a Shutdown that comes
// between Serve and the first Accept must close them too.
type listeners struct {
	mu     sync.Mutex
	all    []net.Listener
	closed bool
}

// add reports whether l is to be served.
func (ls *listeners) add(l net.Listener) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.all = append(ls.all, l)
	return !ls.closed
}

func (ls *listeners) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.closed = true
	for _, l := range ls.all {
		_ = l.Close()
	}
}
