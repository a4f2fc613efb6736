//go:build unix

package upstream

import "syscall"

func (c *conn) watch() { c.look = c.peek }

// quiet peeks into the socket without waiting: an unused connection must be open and silent. End of stream is a provider that closed
// while we idled; bytes are its farewell (408, close_notify) or out of step. This narrows the keep-alive race to a packet in flight.
func (c *conn) quiet() bool {
	if c.sys == nil {
		return true
	}
	c.silent = false
	err := c.sys.Control(c.look)
	return err == nil && c.silent
}

func (c *conn) peek(fd uintptr) {
	var b [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err == syscall.EINTR {
			continue
		}
		c.silent = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return
	}
}
