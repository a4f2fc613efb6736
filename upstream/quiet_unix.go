//go:build unix

package upstream

import "syscall"

// quiet peeks into the socket without waiting: an unused connection must be open and silent. End of stream is a provider that closed
// while we idled; bytes are its farewell (408, close_notify) or out of step. This narrows the keep-alive race to a packet in flight.
func (c *conn) quiet() bool {
	if c.sys == nil {
		return true
	}
	open := false
	err := c.sys.Control(func(fd uintptr) {
		var b [1]byte
		for {
			_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			if err == syscall.EINTR {
				continue
			}
			open = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
			return
		}
	})
	return err == nil && open
}
