package mains

import (
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers each connection.
func serve(t *testing.T, answer func(net.Conn)) (addr string) {
	t.Helper()
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
			answer(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

func echo(c net.Conn) { _, _ = io.Copy(c, c) }

func open(t *testing.T, to string) *Switch {
	t.Helper()
	s, err := New(to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, s *Switch) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second)) // which only a bug meets
	return c
}

// say says something and hears it back.
func say(c net.Conn) error {
	if _, err := c.Write([]byte("PING")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 4))
	return err
}

func TestASwitchCutsWhatIsOpenAndWhatComes(t *testing.T) {
	s := open(t, serve(t, echo))
	c := dial(t, s)
	if err := say(c); err != nil {
		t.Fatal(err)
	}
	s.Cut()
	if err := say(c); err == nil {
		t.Error("a connection outlives the cut")
	}
	for range 2 {
		if n, err := net.Dial("tcp", s.Addr()); err == nil { // the reset may come before
			if err := say(n); err == nil {
				t.Error("a server that is cut off answers")
			}
			_ = n.Close()
		}
	}
	if n := len(s.Vain()); n != 2 {
		t.Errorf("%d came in vain, and it was 2", n)
	}
	s.Restore()
	if err := say(dial(t, s)); err != nil {
		t.Errorf("restored: %v", err)
	}
	if n := len(s.Vain()); n != 2 {
		t.Errorf("%d in vain, behind the cut", n)
	}
}

func TestADelayIsOfOpenConnectionsToo(t *testing.T) {
	const late = 50 * time.Millisecond
	s := open(t, serve(t, echo))
	c := dial(t, s)
	if err := say(c); err != nil {
		t.Fatal(err)
	}
	s.Delay(late)
	began := time.Now()
	if err := say(c); err != nil || time.Since(began) < late {
		t.Errorf("%v, after %v", err, time.Since(began))
	}
	s.Delay(0)
	if err := say(c); err != nil {
		t.Error(err)
	}
}

// The end of a server took with it what it had said and was still on its way.
func TestALateAnswerIsWholeThoughItsServerHasEnded(t *testing.T) {
	s := open(t, serve(t, func(c net.Conn) { _, _ = c.Write([]byte("the last words")) }))
	s.Delay(50 * time.Millisecond)
	got, err := io.ReadAll(dial(t, s))
	if err != nil || string(got) != "the last words" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAServerThatIsNotThereEndsItsClients(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := say(dial(t, open(t, l.Addr().String()))); err == nil {
		t.Error("nobody answers")
	}
}
