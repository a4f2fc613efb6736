package upstream

import (
	"context"
	"io"
	"net"
	"sync"

	"golang.org/x/net/http2"
)

// h2body is an HTTP/2 response body. The library's reads know no deadline, so a goroutine of its own reads ahead by one buffer and
// hands over; Next waits for it or for a wake.
type h2body struct {
	// immutable
	chunks chan h2chunk  // unbuffered: accepting one says that the one before is no longer used
	woken  chan struct{} // holds one wake
	done   chan struct{} // closed by close
	cancel context.CancelFunc
	up     *h2upload
	cc     *http2.ClientConn // whose stream it is

	// reader only
	end  error
	rest error // the error that came with the last chunk

	once sync.Once
}

type h2chunk struct {
	p   []byte
	err error
}

func newH2Body(r io.ReadCloser, cc *http2.ClientConn, up *h2upload, cancel context.CancelFunc, size int) *h2body {
	b := &h2body{
		chunks: make(chan h2chunk),
		woken:  make(chan struct{}, 1),
		done:   make(chan struct{}),
		cancel: cancel,
		up:     up,
		cc:     cc,
	}
	go b.pump(r, size)
	return b
}

// pump is owned by the body: it ends with the stream, or after close, which makes a blocked read fail.
func (b *h2body) pump(r io.ReadCloser, size int) {
	// Closing returns the flow control of what was not read. Nobody waits for it: the library may have to wait for the peer's socket.
	defer r.Close()
	bufs := [2][]byte{make([]byte, size), nil}
	for i := 0; ; i ^= 1 {
		if bufs[i] == nil {
			bufs[i] = make([]byte, size) // many answers end within the first
		}
		n, err := r.Read(bufs[i])
		select {
		case b.chunks <- h2chunk{bufs[i][:n], err}:
		case <-b.done:
			return
		}
		if err != nil {
			return
		}
	}
}

func (b *h2body) next() ([]byte, error) {
	select {
	case <-b.woken:
		return nil, ErrWoken
	default:
	}
	for b.end == nil {
		if b.rest != nil {
			b.finish(b.rest)
			break
		}
		select {
		case c := <-b.chunks:
			b.rest = c.err
			if len(c.p) > 0 {
				return c.p, nil
			}
		case <-b.woken:
			return nil, ErrWoken
		case <-b.done:
			b.finish(net.ErrClosed)
		}
	}
	return nil, b.end
}

// finish turns the library's last word into ours.
func (b *h2body) finish(err error) {
	select {
	case <-b.done:
		err = net.ErrClosed // whatever the library says of our own cancel
	default:
	}
	b.end = err
	if err != io.EOF {
		b.end = h2Error(err, b.cc, OpBody, Partial)
	}
}

func (b *h2body) wake() {
	select {
	case b.woken <- struct{}{}:
	default:
	}
}

// close cancels the stream: RST_STREAM CANCEL unless both sides have ended it.
func (b *h2body) close() error {
	b.once.Do(func() {
		close(b.done)
		b.cancel()
		_ = b.up.Close()
	})
	return nil
}
