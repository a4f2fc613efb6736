package upstream

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
)

// decoding sits between a compressed body and Next.
type decoding struct {
	// reader only
	hold bool  // the decoder may have more of what was pushed
	over bool  // the coded body ended; the transfer has still to
	end  error // how the transfer ended; told once the plain bytes before it are out
	last error // the last word

	// mu lets Close, from any goroutine, give the decoder's memory back. It is never held while waiting for bytes.
	mu sync.Mutex
	d  *Decoder
}

// decoded makes r yield plain bytes if its coding is known. A coding we cannot undo stays visible in the header.
func (r *Response) decoded() {
	coding := strings.Join(r.Header.Values("Content-Encoding"), ",")
	if coding == "" {
		return
	}
	d, err := NewDecoder(coding)
	if err != nil {
		return
	}
	r.decode = &decoding{d: d}
	r.Header = r.Header.without(func(name string) bool {
		return strings.EqualFold(name, "Content-Encoding") || strings.EqualFold(name, "Content-Length")
	})
}

// next hands out what is decoded before it reads on.
func (d *decoding) next(b body) ([]byte, error) {
	for d.last == nil {
		if d.hold {
			p, err := d.plain()
			if len(p) > 0 {
				return p, nil
			}
			d.hold = false
			switch {
			case d.end != nil && d.end != io.EOF:
				d.finish(d.end) // what the decoder makes of a transfer that broke off says less
			case err == io.EOF && d.end == nil:
				d.over = true
			case err != nil:
				d.finish(err)
			}
			continue
		}
		p, err := b.next()
		switch {
		case err == ErrWoken:
			return nil, err
		case d.over && err != nil:
			d.finish(err)
		case d.over: // padding behind the coded body
		default:
			d.push(p, err)
		}
	}
	return nil, d.last
}

func (d *decoding) plain() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.d.Next()
}

func (d *decoding) push(p []byte, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hold, d.end = true, err
	if err != nil {
		d.d.End() // also of a transfer that broke off: what it determined may wait for the end of a block
	} else {
		d.d.Push(p)
	}
}

// finish tells the end of the transfer, a cut inside the coded body and a broken coding apart.
func (d *decoding) finish(err error) {
	d.close()
	var e *Error
	switch {
	case err == io.EOF, errors.As(err, &e):
		d.last = err
	case errors.Is(err, io.ErrClosedPipe):
		d.last = &Error{Op: OpBody, Safety: Partial, Kind: Canceled, Err: net.ErrClosed}
	case errors.Is(err, io.ErrUnexpectedEOF):
		d.last = &Error{Op: OpBody, Safety: Partial, Kind: Truncated, Err: err}
	default:
		d.last = &Error{Op: OpBody, Safety: Partial, Kind: Corrupt, Err: err}
	}
}

func (d *decoding) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.d.Close()
}
