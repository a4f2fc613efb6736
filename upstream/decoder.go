package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Decoder undoes a content coding incrementally: every plain byte that the pushed bytes determine is available before more are asked
// for, so an event the provider flushed is an event in time. The use is Push, then Next until it returns nothing; Close at last.
//
// It is not safe for concurrent use.
type Decoder struct {
	in     []byte // pushed, not yet consumed
	seen   bool   // any byte was pushed
	ending bool   // nothing more will be pushed
	out    []byte // what the last step yielded
	err    error  // the last word
	resume func() (more struct{}, ok bool)
	stop   func()
	yield  func(struct{}) bool
}

// ErrCoding is returned by NewDecoder for a content coding that it does not know.
var ErrCoding = errors.New("unknown content coding")

const (
	decodeStep   = 16 << 10 // plain bytes per Next: a small input may hold megabytes
	zstdMaxFrame = 8 << 20  // window of a zstd frame; RFC 9659 allows no more on the wire
)

// NewDecoder returns a decoder for a Content-Encoding: gzip, deflate (zlib or raw), br, zstd, identity, or a list of them.
func NewDecoder(encoding string) (*Decoder, error) {
	var opens []func(io.Reader) (io.Reader, error)
	for coding := range strings.SplitSeq(encoding, ",") {
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			opens = append(opens, openGzip)
		case "deflate":
			opens = append(opens, openDeflate)
		case "br":
			opens = append(opens, func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil })
		case "zstd":
			opens = append(opens, openZstd)
		case "identity", "":
		default:
			return nil, fmt.Errorf("%w %q", ErrCoding, strings.TrimSpace(coding))
		}
	}
	d := &Decoder{}
	d.resume, d.stop = iter.Pull(d.run(opens))
	return d, nil
}

// Push gives the decoder bytes, which must stay unchanged until Next has returned nothing.
func (d *Decoder) Push(p []byte) {
	d.in = p
	d.seen = d.seen || len(p) > 0
}

// End says that nothing more will be pushed. Next then ends with io.EOF, or with io.ErrUnexpectedEOF if the coded body was cut.
func (d *Decoder) End() { d.ending = true }

// Next returns plain bytes, valid until the following call; none and no error when it needs another Push. After its last error, io.EOF
// at the end of the coded body, what is pushed is ignored.
func (d *Decoder) Next() ([]byte, error) {
	if d.err != nil {
		return nil, d.err
	}
	d.out = nil
	if _, ok := d.resume(); !ok && d.err == nil {
		d.err = io.EOF
	}
	if len(d.out) > 0 {
		return d.out, nil
	}
	return nil, d.err
}

// Close gives the decoder's memory back. It is idempotent.
func (d *Decoder) Close() {
	if d.err == nil {
		d.err = io.ErrClosedPipe
	}
	d.stop()
}

// run is the coroutine in which the libraries' pull readers live. Its reads suspend it instead of blocking, so there is neither a
// goroutine to wait for nor a pipe to close, and control is back exactly when all input is used up.
func (d *Decoder) run(opens []func(io.Reader) (io.Reader, error)) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		d.yield = yield
		var r io.Reader = (*pushed)(d)
		var outer []io.Reader // the layers that a layer within may leave unfinished
		var closers []io.Closer
		defer func() {
			for _, c := range closers {
				_ = c.Close()
			}
		}()
		for i := len(opens) - 1; i >= 0; i-- { // the last coding was applied last
			// A buffer per layer: some readers take single bytes. It asks for input only when it is empty.
			opened, err := opens[i](bufio.NewReaderSize(r, 4<<10))
			if err != nil {
				d.fail(err)
				return
			}
			if c, ok := opened.(io.Closer); ok {
				closers = append(closers, c)
			}
			if i > 0 {
				outer = append(outer, opened)
			}
			r = opened
		}
		buf := make([]byte, decodeStep)
		for {
			n, err := r.Read(buf)
			if n > 0 {
				d.out = buf[:n]
				if !yield(struct{}{}) {
					return
				}
			}
			for i := len(outer) - 1; err == io.EOF && i >= 0; i-- {
				if _, cut := io.Copy(io.Discard, outer[i]); cut != nil {
					err = cut
				}
			}
			if err != nil {
				d.fail(err)
				return
			}
		}
	}
}

func (d *Decoder) fail(err error) {
	if d.ending && !d.seen && (err == io.EOF || err == io.ErrUnexpectedEOF) {
		err = io.EOF // an empty body has no coded form
	}
	d.err = err
}

// pushed is the decoder as the innermost reader.
type pushed Decoder

func (p *pushed) Read(b []byte) (int, error) {
	for len(p.in) == 0 {
		if p.ending {
			return 0, io.EOF
		}
		if !p.yield(struct{}{}) {
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(b, p.in)
	p.in = p.in[n:]
	return n, nil
}

// members reads concatenated gzip members. The library's own loop would hold back the end of one until the next begins.
type members struct {
	src *bufio.Reader
	z   *gzip.Reader
}

func openGzip(r io.Reader) (io.Reader, error) {
	src := r.(*bufio.Reader)
	z, err := gzip.NewReader(src)
	if err != nil {
		return nil, cut(err)
	}
	z.Multistream(false)
	return &members{src, z}, nil
}

func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.z.Read(p)
		if err != io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
		if next, err := m.src.Peek(2); err != nil || next[0] != 0x1f || next[1] != 0x8b {
			return 0, io.EOF // trailing zeros and other padding
		}
		if err := m.z.Reset(m.src); err != nil {
			return 0, cut(err)
		}
		m.z.Multistream(false)
	}
}

func (m *members) Close() error { return m.z.Close() }

// openDeflate takes zlib, which the name means (RFC 9110, section 8.4.1.2), and the raw form, which some servers send.
func openDeflate(r io.Reader) (io.Reader, error) {
	src := r.(*bufio.Reader)
	h, err := src.Peek(2)
	if err != nil {
		return nil, cut(err)
	}
	if h[0]&0x0f == 8 && (uint(h[0])<<8|uint(h[1]))%31 == 0 {
		return zlib.NewReader(src)
	}
	return flate.NewReader(src), nil
}

func openZstd(r io.Reader) (io.Reader, error) {
	// One decoder goroutine would read ahead; zero concurrency decodes in ours.
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdMaxFrame))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}

// cut names an end of input inside a header for what it is.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
