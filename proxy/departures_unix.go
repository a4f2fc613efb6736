//go:build unix && !linux

package proxy

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// looks is how many clients are looked at in one tick, at least: with more, each
// is looked at once a second.
const looks = 1000

// departures finds the clients that left.
type departures struct {
	next int // who is looked at next
}

func (d *departures) open()  {}
func (d *departures) close() {}

// look calls gone for those of lines whose client has left, a part of them at a time.
func (d *departures) look(lines []*lifeline, gone func(*lifeline)) {
	n := len(lines)
	for range min(n, max(looks, n/10+1)) {
		d.next++
		if d.next >= n {
			d.next = 0
		}
		if l := lines[d.next]; l.raw != nil && l.flags.Load()&flagGone == 0 && departed(l.raw) {
			gone(l)
		}
	}
}

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
