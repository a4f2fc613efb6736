//go:build unix

package upstream

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// A stream that waits holds no buffer, one that floods reads more at a time, and what is read is what was written.
func TestBuffersFollowTheTraffic(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	here, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := newConn(&host{client: newClient(t, Config{}), closed: true}, here, here)
	defer c.abort()
	c.prepare(defaultRead)
	if err := c.sys.Control(func(fd uintptr) {
		c.recycle()
		if c.take(fd) || c.buf != nil {
			t.Errorf("a buffer of %d bytes is held for nothing", len(c.buf))
		}
	}); err != nil {
		t.Fatal(err)
	}

	sent := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	go func() {
		_, _ = there.Write(sent)
		_ = there.Close()
	}()
	var got []byte
	most := 0
	for {
		n, err := c.await()
		got = append(got, c.buf[c.start:c.end]...)
		most = max(most, n)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, sent) {
		t.Errorf("%d bytes of %d, or others", len(got), len(sent))
	}
	if most <= defaultRead {
		t.Errorf("no read brought more than %d bytes of a flood", most)
	}
	if n, err := c.await(); n != 0 || err != io.EOF {
		t.Errorf("behind the end: %d, %v", n, err)
	}
}
