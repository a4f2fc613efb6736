package faultinject

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"golang.org/x/net/http2"
)

// h2stream is one response on HTTP/2.
type h2stream struct {
	c      *h2conn
	id     uint32
	in     received
	left   chan struct{} // closed when the client gave the stream up; under c.mu
	window int64         // for sending; under c.mu
}

// errLeft says that the client is not there any more.
var errLeft = errors.New("client left")

func (st *h2stream) transport() Transport { return HTTP2 }

func (st *h2stream) gone() <-chan struct{} { return st.left }

// context ends when the client leaves.
func (st *h2stream) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		select {
		case <-st.left:
			cancel(errLeft)
		case <-stop:
		}
	}()
	return ctx, func() {
		close(stop)
		<-finished
		cancel(nil)
	}
}

func (st *h2stream) alive() bool { return !st.c.dead && st.c.streams[st.id] == st }

func (st *h2stream) head(status int, h http.Header) error {
	st.c.mu.Lock()
	defer st.c.mu.Unlock()
	if !st.alive() {
		return errLeft
	}
	return st.c.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: st.id, EndHeaders: true,
		BlockFragment: st.c.lowerHeaders(strconv.Itoa(status), h)})
}

// write sends DATA as far as the client's windows allow, and waits for them.
func (st *h2stream) write(p []byte) error {
	c := st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(p) > 0 {
		for st.alive() && (st.window <= 0 || c.window <= 0) {
			c.windows.Wait()
		}
		if !st.alive() {
			return errLeft
		}
		n := min(int64(len(p)), st.window, c.window, int64(c.maxFrame))
		if err := c.fr.WriteData(st.id, false, p[:n]); err != nil {
			return err
		}
		st.window -= n
		c.window -= n
		p = p[n:]
	}
	return nil
}

func (st *h2stream) end(s Step) {
	c := st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if !st.alive() {
		return
	}
	switch s.End {
	case EndPolite:
		c.fr.WriteData(st.id, true, nil)
	case EndFIN:
		c.fin()
	case EndReset:
		setReset(c.conn)
		c.conn.Close()
	case EndStream:
		c.fr.WriteRSTStream(st.id, http2.ErrCode(s.Code))
	case EndGoAway:
		st.goAway(s)
	}
}

// goAway sends GOAWAY. The last stream id tells the client whether this stream
// was processed; the client is expected to close the connection.
func (st *h2stream) goAway(s Step) {
	last := st.id
	if !s.Cover {
		last = max(st.id, 2) - 2
	}
	st.c.draining = true
	st.c.fr.WriteGoAway(last, http2.ErrCode(s.Code), nil)
}
