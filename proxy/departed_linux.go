package proxy

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// departed reports whether the peer has closed its side of the connection or the
// connection is dead. It asks for POLLRDHUP and not for a peeked byte, because a
// FIN can hide behind bytes that nobody has read: a pipelined request, or TLS's
// close_notify. A peer that shuts down only its sending side is taken for gone,
// as net/http does; SDKs never do that.
func departed(c syscall.RawConn) bool {
	gone := false
	err := c.Control(func(fd uintptr) {
		p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p[:], 0)
		gone = err == nil && n > 0 && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
	})
	return gone || err != nil
}
