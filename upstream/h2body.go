package upstream

import (
	"context"
	"io"
	"net"
	"sync"
)

const (
	// h2BufferMin is what a stream begins with, and comes back to: most chunks are an
	// event or two.
	h2BufferMin = 1 << 10
	// h2BufferMax is as much as a stream that never waits is read at once.
	h2BufferMax = 32 << 10
)

// h2body is an HTTP/2 response body. The library's reads know no deadline, so a
// goroutine of its own reads ahead by one buffer and hands over; next waits for it or
// for a wake.
type h2body struct {
	// immutable
	cancel context.CancelFunc
	up     *h2upload
	on     *shared // the connection whose stream it is

	mu    sync.Mutex
	come  sync.Cond // full, woken or closed was set
	gone  sync.Cond // full or held was cleared, or closed set
	chunk []byte    // handed over and not yet taken, if full
	err   error     // what came with it
	full  bool
	held  bool // the reader still uses the chunk it took last
	woken bool
	// closed: the reader has gone, and the pump is to.
	closed bool

	// reader only
	end  error
	rest error // the error that came with the last chunk
}

func newH2Body(r io.ReadCloser, on *shared, up *h2upload, cancel context.CancelFunc) *h2body {
	b := &h2body{cancel: cancel, up: up, on: on}
	b.come.L, b.gone.L = &b.mu, &b.mu
	go b.pump(r)
	return b
}

// pump is owned by the body: it ends with the stream, or after close, which makes a
// blocked read fail.
func (b *h2body) pump(r io.ReadCloser) {
	// Closing returns the flow control of what was not read. Nobody waits for it: the
	// library may have to wait for the peer's socket.
	whole := false
	defer func() {
		_ = r.Close()
		b.on.leave(whole)
	}()
	var bufs [2][]byte
	size := h2BufferMin
	for i := 0; ; i ^= 1 {
		if len(bufs[i]) != size { // the other one may still be in use
			bufs[i] = make([]byte, size)
		}
		n, err := r.Read(bufs[i])
		if whole = err == io.EOF; err != nil && !whole {
			if b.left() { // what the library says of our own cancel tells nothing of the connection
				return
			}
			err = b.on.failed(err, OpBody, Partial)
		}
		if !b.hand(bufs[i][:n], err) || err != nil {
			return
		}
		switch {
		case n == size:
			size = min(4*size, h2BufferMax)
		case n < size/16:
			size = h2BufferMin
		}
	}
}

// left reports whether the reader has gone.
func (b *h2body) left() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// hand offers a chunk, and waits until the buffer of the one before is free. It
// reports whether anybody is there.
func (b *h2body) hand(p []byte, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.full && !b.closed {
		b.gone.Wait()
	}
	if b.closed {
		return false // what is still in there is not to be replaced: bytes would be missing before it
	}
	b.chunk, b.err, b.full = p, err, true
	b.come.Signal()
	for b.full && b.held && !b.closed {
		b.gone.Wait()
	}
	return !b.closed
}

func (b *h2body) next() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held {
		b.held = false
		b.gone.Signal()
	}
	for {
		switch {
		case b.woken:
			b.woken = false
			return nil, ErrWoken
		case b.end != nil:
			return nil, b.end
		case b.rest != nil:
			b.finish(b.rest)
		case b.full:
			p := b.chunk
			b.chunk, b.rest, b.full = nil, b.err, false
			b.gone.Signal()
			if len(p) > 0 {
				b.held = true
				return p, nil
			}
		case b.closed:
			b.finish(nil)
		default:
			b.come.Wait()
		}
	}
}

// finish is the end of the body: the last word of the pump, unless nobody was to hear it.
func (b *h2body) finish(err error) {
	if b.closed {
		err = &Error{Op: OpBody, Safety: Partial, Kind: kindOf(net.ErrClosed), Err: net.ErrClosed}
	}
	b.end = err
}

func (b *h2body) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.woken = true
	b.come.Signal()
}

// close cancels the stream: RST_STREAM CANCEL unless both sides have ended it.
func (b *h2body) close() error {
	b.mu.Lock()
	again := b.closed
	b.closed = true
	b.come.Signal()
	b.gone.Signal()
	b.mu.Unlock()
	if !again {
		b.cancel()
		_ = b.up.Close()
	}
	return nil
}
