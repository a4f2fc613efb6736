package gauge

import (
	"net"
	"sync/atomic"
	"syscall"
	"testing"
)

// full is a listener of a process that has no file left, at first.
type full struct {
	net.Listener
	left atomic.Int32
}

func (l *full) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// After ten thousand streams the provider had no file for a moment, accepted nobody any
// more, and every load that followed failed.
func TestProviderThatHadNoFileLeftGoesOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &full{Listener: l}
	f.left.Store(3)
	p := provide(f)
	defer p.Close()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
