//go:build unix && !linux

package proxy

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// departed reports whether the peer has closed its side of the connection or the
// connection is dead. It peeks: end of file is departure, a pipelined byte is
// not.
func departed(c syscall.RawConn) bool {
	gone := false
	err := c.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		gone = err == nil && n == 0 || err != nil && err != unix.EAGAIN && err != unix.EWOULDBLOCK && err != unix.EINTR
	})
	return gone || err != nil
}
