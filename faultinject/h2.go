package faultinject

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2conn is one HTTP/2 connection on a bare framer: a library server would not
// let us send GOAWAY, RST_STREAM or nothing at the moment we choose (RFC 9113).
type h2conn struct {
	s    *Server
	conn net.Conn

	// Shared by all streams, under mu.
	mu       sync.Mutex
	windows  *sync.Cond // signalled when a window grows or a stream dies
	fr       *http2.Framer
	enc      *hpack.Encoder
	encBuf   bytes.Buffer
	streams  map[uint32]*h2stream
	window   int64 // of the connection, for sending
	initial  int64 // of new streams
	maxFrame int
	draining bool // GOAWAY was sent
	dead     bool
}

// windowSize is what we let clients send unasked: request bodies are read
// whole, so flow control would only slow them down.
const windowSize = 1 << 30

// serveH2 serves a connection until it dies, and waits for its streams.
func (s *Server) serveH2(conn net.Conn, r io.Reader) {
	defer conn.Close()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(r, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	c := &h2conn{s: s, conn: conn, fr: http2.NewFramer(conn, r), streams: map[uint32]*h2stream{}, window: 65535, initial: 65535, maxFrame: 16384}
	c.windows = sync.NewCond(&c.mu)
	c.enc = hpack.NewEncoder(&c.encBuf)
	c.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.fr.SetMaxReadFrameSize(1 << 20)
	var handlers sync.WaitGroup
	defer handlers.Wait()
	defer c.die()
	if c.hello() != nil {
		return
	}
	for {
		f, err := c.fr.ReadFrame()
		if err != nil {
			return
		}
		if st := c.frame(f); st != nil {
			handlers.Add(1)
			go func() {
				defer handlers.Done()
				c.serve(st)
			}()
		}
	}
}

func (c *h2conn) hello() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fr.WriteSettings(
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 250},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: windowSize},
		http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20},
	); err != nil {
		return err
	}
	return c.fr.WriteWindowUpdate(0, windowSize)
}

// frame handles one frame and returns a stream whose request is complete.
func (c *h2conn) frame(f http2.Frame) *h2stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return nil
	}
	switch f := f.(type) {
	case *http2.SettingsFrame:
		c.settings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			c.fr.WritePing(true, f.Data)
		}
	case *http2.WindowUpdateFrame:
		if st := c.streams[f.StreamID]; st != nil {
			st.window += int64(f.Increment)
		} else if f.StreamID == 0 {
			c.window += int64(f.Increment)
		}
		c.windows.Broadcast()
	case *http2.RSTStreamFrame:
		c.drop(f.StreamID)
	case *http2.MetaHeadersFrame:
		return c.begin(f)
	case *http2.DataFrame:
		if n := len(f.Data()); n > 0 {
			c.fr.WriteWindowUpdate(0, uint32(n))
		}
		st := c.streams[f.StreamID]
		if st == nil {
			return nil
		}
		st.in.body = append(st.in.body, f.Data()...)
		if f.StreamEnded() {
			return st
		}
	}
	return nil
}

func (c *h2conn) settings(f *http2.SettingsFrame) {
	if f.IsAck() {
		return
	}
	f.ForeachSetting(func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingInitialWindowSize:
			for _, st := range c.streams {
				st.window += int64(s.Val) - c.initial
			}
			c.initial = int64(s.Val)
		case http2.SettingMaxFrameSize:
			c.maxFrame = int(s.Val)
		case http2.SettingHeaderTableSize:
			c.enc.SetMaxDynamicTableSizeLimit(s.Val)
		}
		return nil
	})
	c.fr.WriteSettingsAck()
	c.windows.Broadcast()
}

// begin opens a stream. One that comes after our GOAWAY was not processed, and
// is told so.
func (c *h2conn) begin(f *http2.MetaHeadersFrame) *h2stream {
	if st := c.streams[f.StreamID]; st != nil { // trailers
		return st
	}
	if c.draining {
		c.fr.WriteRSTStream(f.StreamID, http2.ErrCodeRefusedStream)
		return nil
	}
	st := &h2stream{c: c, id: f.StreamID, left: make(chan struct{}), window: c.initial}
	st.in = received{method: f.PseudoValue("method"), path: f.PseudoValue("path"), header: http.Header{"Host": {f.PseudoValue("authority")}}}
	for _, h := range f.RegularFields() {
		st.in.header.Add(h.Name, h.Value)
	}
	c.streams[st.id] = st
	if f.StreamEnded() {
		return st
	}
	return nil
}

// drop ends a stream that the client or the connection gave up.
func (c *h2conn) drop(id uint32) {
	if st := c.streams[id]; st != nil {
		delete(c.streams, id)
		close(st.left)
		c.windows.Broadcast()
	}
}

// lingering is how long a client that was sent FIN is listened to until it closes its side.
const lingering = 5 * time.Second

// fin sends FIN behind all that was written. To close at once would take back what is
// still on its way, and send RST in its place, whenever the client has said something that
// was not read yet (RFC 9293 §3.6.1); it is listened to until it has gone. mu is held.
func (c *h2conn) fin() {
	c.bury()
	if err := closeWrite(c.conn); err != nil {
		c.conn.Close()
		return
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(lingering))
}

// die ends all streams of a connection that is over.
func (c *h2conn) die() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bury()
}

// bury is die with mu held.
func (c *h2conn) bury() {
	c.dead = true
	for id := range c.streams {
		c.drop(id)
	}
}

// serve answers the request of one stream.
func (c *h2conn) serve(st *h2stream) {
	ctx, cancel := st.context()
	defer cancel()
	c.s.handle(ctx, st.in, st)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(st.id)
}

// lowerHeaders renders a header block; hop-by-hop fields do not exist in
// HTTP/2. The caller holds mu.
func (c *h2conn) lowerHeaders(status string, h http.Header) []byte {
	c.encBuf.Reset()
	c.enc.WriteField(hpack.HeaderField{Name: ":status", Value: status})
	for name, values := range h {
		switch name {
		case "Connection", "Transfer-Encoding", "Keep-Alive":
			continue
		}
		for _, v := range values {
			c.enc.WriteField(hpack.HeaderField{Name: strings.ToLower(name), Value: v})
		}
	}
	return c.encBuf.Bytes()
}
