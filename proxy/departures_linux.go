package proxy

import (
	"errors"

	"golang.org/x/sys/unix"
)

// departures finds the clients that left. The kernel is told once of each client that is
// still here at a tick, and asked at every tick who of them all has left: what many silent
// streams cost does not grow with how often somebody looks. Without an epoll instance,
// which a process that has no descriptor left does not get, departures show in writes only.
type departures struct {
	ep     int // 0: none
	events [128]unix.EpollEvent
	left   map[int32]struct{}
}

func (d *departures) open() {
	if ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		d.ep = ep
	}
	d.left = map[int32]struct{}{}
}

func (d *departures) close() {
	if d.ep != 0 {
		_ = unix.Close(d.ep)
	}
}

// look calls gone for those of lines whose client has closed its side of the connection or
// whose connection is dead. It waits for EPOLLRDHUP and not for a peeked byte, because a
// FIN can hide behind bytes that nobody has read: a pipelined request, or TLS's
// close_notify. A peer that shuts down only its sending side is taken for gone, as net/http
// does; SDKs never do that.
func (d *departures) look(lines []*lifeline, gone func(*lifeline)) {
	if d.ep == 0 {
		return
	}
	for _, l := range lines {
		if l.raw != nil && l.fd == 0 && !d.enlist(l) {
			gone(l)
		}
	}
	for {
		n, err := unix.EpollWait(d.ep, d.events[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		for _, e := range d.events[:max(n, 0)] {
			d.left[e.Fd] = struct{}{}
		}
		if n < len(d.events) {
			break
		}
	}
	if len(d.left) == 0 {
		return
	}
	// A descriptor says whose it is only as long as the connection is open; one that is
	// told of here and is nobody's in lines was closed meanwhile, and the kernel has
	// forgotten it.
	for _, l := range lines {
		if _, ok := d.left[l.fd]; ok && l.fd != 0 {
			gone(l)
		}
	}
	clear(d.left)
}

// enlist has the kernel watch a client, once: a connection that goes on to another request
// is told of again. False: it is closed already.
func (d *departures) enlist(l *lifeline) bool {
	var err error
	closed := l.raw.Control(func(fd uintptr) {
		e := unix.EpollEvent{Events: unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: int32(fd)}
		if err = unix.EpollCtl(d.ep, unix.EPOLL_CTL_ADD, int(fd), &e); errors.Is(err, unix.EEXIST) {
			err = unix.EpollCtl(d.ep, unix.EPOLL_CTL_MOD, int(fd), &e)
		}
		l.fd = int32(fd)
	})
	return closed == nil && !errors.Is(err, unix.EBADF)
}
