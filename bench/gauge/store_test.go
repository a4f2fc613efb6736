package gauge

import (
	"io"
	"net"
	"testing"
)

// echo is a store that says what it hears.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

// say says something over a connection and hears it back.
func say(c net.Conn) error {
	if _, err := c.Write([]byte("PING")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 4))
	return err
}

func TestAShimIsWellSlowAndAway(t *testing.T) {
	s, err := newShim(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	c, err := net.Dial("tcp", s.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, state := range []StoreState{StoreHealthy, StoreSlow, StoreHealthy} {
		s.become(state)
		if err := say(c); err != nil {
			t.Fatalf("%s: %v", state, err)
		}
	}
	s.become(StoreDown)
	if err := say(c); err == nil {
		t.Error("a connection outlives the store")
	}
	n, err := net.Dial("tcp", s.addr())
	if err == nil {
		defer n.Close()
		if err := say(n); err == nil {
			t.Error("a store that is away answers")
		}
	}
}
