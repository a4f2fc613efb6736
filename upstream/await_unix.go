//go:build unix

package upstream

import (
	"io"
	"net"
	"os"
	"syscall"
)

// lend lets a connection in clear give its read buffer away for as long as it waits, which is nearly all of a stream's life. TLS has
// buffers of its own and reads ahead into them.
func (c *conn) lend() {
	if c.sys != nil && c.nc == c.raw && c.host.client.cfg.ReadBuffer == defaultRead {
		c.ready = c.take
	}
}

// await reads once, with nothing unconsumed. It is what fill does then, but for the buffer: it takes one when there is something to
// read, and a large one behind a read that filled the last.
func (c *conn) await() (n int, err error) {
	if c.ready == nil {
		return c.fill(len(c.buf))
	}
	c.recycle()
	c.start, c.end, c.rerr = 0, 0, nil
	if err := c.sys.Read(c.ready); err != nil {
		return 0, err // closed, or a deadline that is over
	}
	c.full = c.end == len(c.buf)
	return c.end, c.rerr
}

// take reads what is there; false: nothing is yet.
func (c *conn) take(fd uintptr) bool {
	size := defaultRead
	if c.full {
		size = largeRead
	}
	c.prepare(size)
	for {
		n, err := syscall.Read(int(fd), c.buf)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			c.full = false
			c.recycle()
			return false
		case err != nil:
			c.rerr = &net.OpError{Op: "read", Net: "tcp", Source: c.raw.LocalAddr(), Addr: c.raw.RemoteAddr(), Err: os.NewSyscallError("read", err)}
		case n == 0:
			c.rerr = io.EOF
		default:
			c.end = n
		}
		return true
	}
}
