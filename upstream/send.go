package upstream

import (
	"encoding/base64"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
)

// inline is the size of a body that is written before the head of the answer is read. It fits the smallest socket buffers of a send and
// a receive side together, so the write cannot wait for a provider that has already answered and reads no more. Larger bodies have
// their own goroutine: waiting to finish an upload before reading loses early 401s and 413s (FIELD-REPORTS F4, HOUSE 12.10).
const inline = 16 << 10

// requests holds buffers for requests that are written at once.
var requests = sync.Pool{New: func() any { return new([]byte) }}

// over is the done of uploads that are over when there is somebody to ask.
var over = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

var errShortSource = errors.New("request body is shorter than its size")

// upload is the sending of one request.
type upload struct {
	sent     atomic.Int64 // bytes of finished writes, handed to the kernel or to TLS
	answered atomic.Bool  // a final head arrived: a failing source no longer ends the attempt
	done     chan struct{}
	streamed bool // the body comes from a reader we cannot interrupt

	mu     sync.Mutex
	err    error
	source bool // err is the reader's, not the network's
}

// send writes the request, as far as it can without waiting for the peer.
func (c *conn) send(up *upload, t *Target, r *Request) {
	if r.BodyStream == nil && len(r.Body) <= inline {
		up.done = over
		buf := requests.Get().(*[]byte)
		*buf = append(c.appendHead((*buf)[:0], t, r), r.Body...)
		up.write(c.nc, *buf) // one packet, one TLS record
		if cap(*buf) <= 2*inline {
			requests.Put(buf)
		}
		return
	}
	up.done, up.streamed = make(chan struct{}), r.BodyStream != nil
	head := c.appendHead(make([]byte, 0, 1<<10), t, r)
	switch {
	case r.BodyStream != nil:
		go c.stream(up, head, r)
	default:
		go c.upload(up, head, r.Body)
	}
}

// upload sends a body from memory. It owns nothing but up: closing the connection ends it.
func (c *conn) upload(up *upload, head, body []byte) {
	defer close(up.done)
	if _, plain := c.nc.(*net.TCPConn); plain {
		bufs := net.Buffers{head, body}
		n, err := bufs.WriteTo(c.nc)
		up.sent.Add(n)
		up.fail(err, false)
		return
	}
	if up.write(c.nc, head) {
		up.write(c.nc, body)
	}
}

// stream sends a body from a reader.
func (c *conn) stream(up *upload, head []byte, r *Request) {
	defer close(up.done)
	if !up.write(c.nc, head) {
		return
	}
	if err := up.copy(c.nc, r); err != nil {
		up.fail(err, true)
		if !up.answered.Load() {
			c.abort() // the provider would wait for the rest, and we for its answer
		}
	}
}

// copy returns only the reader's errors; those of the network are noted.
func (up *upload) copy(w io.Writer, r *Request) error {
	buf := make([]byte, 32<<10)
	const room = 10 // for "7fec\r\n" before the bytes; "\r\n" behind them
	for left := r.BodySize; left != 0; {
		p := buf[room : len(buf)-2]
		if left > 0 && int64(len(p)) > left {
			p = p[:left]
		}
		n, err := r.BodyStream.Read(p)
		if n > 0 {
			out := p[:n]
			if left < 0 {
				size := strconv.AppendInt(buf[:0:room], int64(n), 16)
				at := room - 2 - len(size)
				copy(buf[at:], size)
				copy(buf[room-2:], "\r\n")
				copy(buf[room+n:], "\r\n")
				out = buf[at : room+n+2]
			} else {
				left -= int64(n)
			}
			if !up.write(w, out) {
				return nil
			}
		}
		switch {
		case err == io.EOF && left > 0:
			return errShortSource
		case err == io.EOF:
			left = 0
		case err != nil:
			return err
		}
	}
	if r.BodySize < 0 {
		up.write(w, []byte("0\r\n\r\n"))
	}
	return nil
}

func (up *upload) write(w io.Writer, p []byte) bool {
	n, err := w.Write(p)
	up.sent.Add(int64(n))
	up.fail(err, false)
	return err == nil
}

func (up *upload) fail(err error, source bool) {
	if err != nil {
		up.mu.Lock()
		up.err, up.source = err, source
		up.mu.Unlock()
	}
}

func (up *upload) failure() (err error, sent int64, source bool) {
	up.mu.Lock()
	defer up.mu.Unlock()
	return up.err, up.sent.Load(), up.source
}

// complete reports that the whole request left: only then can the connection carry another.
func (up *upload) complete() bool {
	select {
	case <-up.done:
		err, _, _ := up.failure()
		return err == nil
	default:
		return false
	}
}

// nothingLeft reports the proof that not one byte of the request left: the sending is over, and its count is zero. A write still under
// way may have got anywhere.
func (up *upload) nothingLeft() bool {
	select {
	case <-up.done:
		return up.sent.Load() == 0
	default:
		return false
	}
}

// wait returns when the caller's body is no longer read. The connection is closed.
func (up *upload) wait() {
	if !up.streamed {
		<-up.done
	}
}

// appendHead renders the request head.
func (c *conn) appendHead(b []byte, t *Target, r *Request) []byte {
	b = append(append(b, r.method()...), ' ')
	if c.host.forward {
		b = append(append(b, "http://"...), t.authority()...)
	}
	b = append(append(b, r.Path...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, t.authority()...), "\r\n"...)
	for f := range r.endToEnd() {
		b = append(append(b, f.Name...), ": "...)
		b = append(append(b, f.Value...), "\r\n"...)
	}
	if c.host.forward && c.host.proxy.User != nil {
		b = append(append(b, "Proxy-Authorization: "...), basicAuth(c.host)...)
		b = append(b, "\r\n"...)
	}
	switch size := r.size(); {
	case size < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case r.declaresLength():
		b = strconv.AppendInt(append(b, "Content-Length: "...), size, 10)
		b = append(b, "\r\n"...)
	}
	return append(b, "\r\n"...)
}

func basicAuth(h *host) string {
	password, _ := h.proxy.User.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(h.proxy.User.Username()+":"+password))
}
