package proxy

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Listen opens the listeners of an address. "localhost" is both loopbacks, since
// clients disagree about which one it names (FIELD-REPORTS F18); a machine
// without IPv6 has one of them.
func Listen(addr string) ([]net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: write host:port, for instance 127.0.0.1:8790", addr)
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

func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: the port is in use; stop what uses it or choose another with --listen", addr)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listen on %s: not permitted; choose a port above 1023 with --listen", addr)
	}
	return nil, fmt.Errorf("listen: %w", err)
}
