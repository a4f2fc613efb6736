package upstream

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frames is the provider's end of an HTTP/2 connection, frame by frame.
type frames struct {
	*wire
	fr  *http2.Framer
	enc *hpack.Encoder
	buf *bytes.Buffer
}

func h2peer(t *testing.T, serve func(n int, f *frames)) *peer {
	return newPeer(t, func(n int, w *wire) {
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(w.br, preface); err != nil {
			return
		}
		f := &frames{wire: w, fr: http2.NewFramer(w.Conn, w.br), buf: new(bytes.Buffer)}
		f.enc = hpack.NewEncoder(f.buf)
		f.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		_ = f.fr.WriteSettings()
		serve(n, f)
	})
}

// next returns the next frame of one of the types, nil at the end of the connection. SETTINGS and PING are answered on the way.
func (f *frames) next(types ...http2.FrameType) http2.Frame {
	for {
		fr, err := f.fr.ReadFrame()
		if err != nil {
			return nil
		}
		switch fr := fr.(type) {
		case *http2.SettingsFrame:
			if !fr.IsAck() {
				_ = f.fr.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !fr.IsAck() {
				_ = f.fr.WritePing(true, fr.Data)
			}
		}
		for _, want := range types {
			if fr.Header().Type == want {
				return fr
			}
		}
	}
}

// request reads a whole request and returns its stream id and fields; 0 at the end of the connection.
func (f *frames) request() (uint32, map[string]string) {
	fr := f.next(http2.FrameHeaders)
	if fr == nil {
		return 0, nil
	}
	h := fr.(*http2.MetaHeadersFrame)
	fields := map[string]string{}
	for _, hf := range h.Fields {
		fields[hf.Name] = hf.Value
	}
	for ended := h.StreamEnded(); !ended; {
		d := f.next(http2.FrameData)
		if d == nil {
			return 0, nil
		}
		fields[":body"] += string(d.(*http2.DataFrame).Data())
		ended = d.(*http2.DataFrame).StreamEnded()
	}
	return h.StreamID, fields
}

func (f *frames) head(id uint32, end bool, fields ...string) {
	f.buf.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = f.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_ = f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.buf.Bytes(), EndHeaders: true, EndStream: end})
}

func (f *frames) ok(id uint32) {
	f.head(id, false, ":status", "200", "content-type", "text/event-stream")
}

func TestH2PassesRequestAsItIs(t *testing.T) {
	seen := make(chan map[string]string, 1)
	p := h2peer(t, func(_ int, f *frames) {
		id, fields := f.request()
		seen <- fields
		f.head(id, false, ":status", "103", "link", "</x>")
		f.head(id, false, ":status", "200", "x-b", "1", "x-a", "2", "x-b", "3")
		_ = f.fr.WriteData(id, false, []byte("hello "))
		_ = f.fr.WriteData(id, true, []byte("world"))
		f.gone()
	})
	to := p.target("h2c")
	to.HostOverride = "api.example"
	r := &Request{Method: "POST", Path: "//v1/%2f;x?q=%zz&", Body: []byte("{}"), Header: Header{
		{"Anthropic-Beta", "a"}, {"Connection", "X-Hop"}, {"X-Hop", "1"}, {"TE", "trailers"}, {"Accept-Encoding", "identity"}, {"Host", "caller"}}}
	res := open(t, newClient(t, Config{}), to, r)
	if body, err := drain(res); body != "hello world" || err != io.EOF {
		t.Errorf("body %q, end %v", body, err)
	}
	want := Header{{"X-A", "2"}, {"X-B", "1"}, {"X-B", "3"}}
	if res.Status != 200 || res.Proto != "HTTP/2.0" || len(res.Header) != 3 || res.Header[0] != want[0] || res.Header[1] != want[1] || res.Header[2] != want[2] {
		t.Errorf("response is %d %s %q", res.Status, res.Proto, res.Header)
	}
	got := <-seen
	for name, want := range map[string]string{":path": r.Path, ":authority": "api.example", ":method": "POST", ":body": "{}", "anthropic-beta": "a",
		"accept-encoding": "identity", "content-length": "2"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, name := range []string{"x-hop", "connection", "te", "user-agent", "host"} {
		if v, ok := got[name]; ok {
			t.Errorf("%s: %q must not be sent", name, v)
		}
	}
}

// TestH2RefusalIsNotRepeated: the library repeats such requests by itself, up to seven times with pauses (HOUSE 12.12). Each must come
// back at once as NotSent, with one request on the wire (FIELD-REPORTS F5).
func TestH2RefusalIsNotRepeated(t *testing.T) {
	refused := func(f *frames, id uint32) { _ = f.fr.WriteRSTStream(id, http2.ErrCodeRefusedStream) }
	drainBelow := func(f *frames, id uint32) { _ = f.fr.WriteGoAway(id-2, http2.ErrCodeNo, nil) }
	angry := func(f *frames, id uint32) {
		_ = f.fr.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
	}
	for _, tc := range []struct {
		name  string
		first bool // refuse the first stream of the connection; otherwise the second
		act   func(*frames, uint32)
		code  http2.ErrCode
		req   *Request
	}{
		{"REFUSED_STREAM with a body", true, refused, http2.ErrCodeRefusedStream, post("{}")},
		{"REFUSED_STREAM without a body", true, refused, http2.ErrCodeRefusedStream, &Request{Path: "/v1/models"}},
		{"REFUSED_STREAM with a streamed body", true, refused, http2.ErrCodeRefusedStream,
			&Request{Method: "POST", Path: "/", BodyStream: strings.NewReader("{}"), BodySize: -1}},
		{"graceful GOAWAY below our stream", false, drainBelow, http2.ErrCodeNo, post("{}")},
		{"GOAWAY with an error below our first stream", true, angry, http2.ErrCodeEnhanceYourCalm, post("{}")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			requests := make(chan uint32, 9)
			p := h2peer(t, func(_ int, f *frames) {
				for n := 0; ; n++ {
					id, _ := f.request()
					if id == 0 {
						return
					}
					requests <- id
					if n == 0 && !tc.first {
						f.head(id, true, ":status", "200")
						continue
					}
					tc.act(f, id)
				}
			})
			c := newClient(t, Config{})
			sent := 1
			if !tc.first {
				open(t, c, p.target("h2c"), post("{}"))
				sent++
			}
			_, err := c.Open(within(t), p.target("h2c"), tc.req)
			e := failure(t, err)
			if e.Kind != NotProcessed || e.Safety != NotSent || e.Code != int(tc.code) {
				t.Errorf("got %v, want not processed with code %d", e, tc.code)
			}
			if len(requests) != sent {
				t.Errorf("%d requests on the wire, want %d", len(requests), sent)
			}
		})
	}
}

// TestH2GoAwayThatCoversUsKeepsReading: the provider's graceful shutdown lets our stream finish (FIELD-REPORTS F6).
func TestH2GoAwayThatCoversUsKeepsReading(t *testing.T) {
	p := h2peer(t, func(_ int, f *frames) {
		id, _ := f.request()
		f.ok(id)
		_ = f.fr.WriteData(id, false, []byte("before "))
		_ = f.fr.WriteGoAway(id, http2.ErrCodeNo, nil)
		_ = f.fr.WriteData(id, true, []byte("after"))
		f.gone()
	})
	c := newClient(t, Config{})
	if body, err := drain(open(t, c, p.target("h2c"), post("{}"))); body != "before after" || err != io.EOF {
		t.Errorf("body %q, end %v", body, err)
	}
}

func TestH2Endings(t *testing.T) {
	for _, tc := range []struct {
		name string
		act  func(f *frames, id uint32)
		kind Kind
		code http2.ErrCode
	}{
		{"RST_STREAM INTERNAL_ERROR", func(f *frames, id uint32) { _ = f.fr.WriteRSTStream(id, http2.ErrCodeInternal) }, StreamReset, http2.ErrCodeInternal},
		{"RST_STREAM CANCEL", func(f *frames, id uint32) { _ = f.fr.WriteRSTStream(id, http2.ErrCodeCancel) }, StreamReset, http2.ErrCodeCancel},
		{"RST_STREAM NO_ERROR before the end", func(f *frames, id uint32) { _ = f.fr.WriteRSTStream(id, http2.ErrCodeNo) }, StreamReset, http2.ErrCodeNo},
		{"GOAWAY that covers us, then the connection closes", func(f *frames, id uint32) {
			_ = f.fr.WriteGoAway(id, http2.ErrCodeNo, nil)
			f.fin()
		}, GoAway, http2.ErrCodeNo},
		{"GOAWAY with an error that covers us, then the connection closes", func(f *frames, id uint32) {
			_ = f.fr.WriteGoAway(id, http2.ErrCodeInternal, nil)
			f.fin()
		}, GoAway, http2.ErrCodeInternal},
		{"GOAWAY below us, after the head", func(f *frames, id uint32) { _ = f.fr.WriteGoAway(id-1, http2.ErrCodeNo, nil) }, GoAway, http2.ErrCodeNo},
		{"GOAWAY with an error below us, after the head", func(f *frames, id uint32) { _ = f.fr.WriteGoAway(id-1, http2.ErrCodeInternal, nil) }, GoAway, http2.ErrCodeInternal},
		{"connection closed", func(f *frames, id uint32) { f.fin() }, Truncated, 0},
		{"connection reset", func(f *frames, id uint32) { f.reset() }, Reset, 0},
		{"data on a stream that was never opened", func(f *frames, id uint32) { _ = f.fr.WriteData(99, false, []byte("x")) }, Protocol, http2.ErrCodeProtocol},
	} {
		t.Run(tc.name, func(t *testing.T) {
			read := make(chan struct{})
			p := h2peer(t, func(_ int, f *frames) {
				id, _ := f.request()
				f.ok(id)
				_ = f.fr.WriteData(id, false, []byte("hello"))
				<-read
				tc.act(f, id)
				f.gone()
			})
			res := open(t, newClient(t, Config{}), p.target("h2c"), post("{}"))
			b, err := res.Next()
			if string(b) != "hello" || err != nil {
				t.Fatalf("first chunk %q, %v", b, err)
			}
			close(read)
			_, err = res.Next()
			e := failure(t, err)
			if e.Kind != tc.kind || e.Code != int(tc.code) || e.Safety != Partial || e.Op != OpBody {
				t.Errorf("got %v (code %d), want %v with code %d", e, e.Code, tc.kind, tc.code)
			}
			if alone := tc.kind == StreamReset; alone != (e.Conn == nil) {
				t.Errorf("it is about this stream alone: %v; the connection that died: %v", alone, e.Conn)
			}
		})
	}
}

// TestH2ContentLengthIsChecked: END_STREAM before the declared length is a cut, not an end.
func TestH2ContentLengthIsChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		data string
		kind Kind
	}{"short": {"hel", Truncated}, "long": {"hello!", Protocol}} {
		t.Run(name, func(t *testing.T) {
			p := h2peer(t, func(_ int, f *frames) {
				id, _ := f.request()
				f.head(id, false, ":status", "200", "content-length", "5")
				_ = f.fr.WriteData(id, true, []byte(tc.data))
				f.gone()
			})
			_, err := drain(open(t, newClient(t, Config{}), p.target("h2c"), post("{}")))
			if e := failure(t, err); e.Kind != tc.kind {
				t.Errorf("got %v, want %v", e, tc.kind)
			}
		})
	}
}

func TestH2CloseResetsTheStreamAndKeepsTheConnection(t *testing.T) {
	reset := make(chan http2.ErrCode, 1)
	p := h2peer(t, func(_ int, f *frames) {
		id, _ := f.request()
		f.ok(id)
		_ = f.fr.WriteData(id, false, []byte("hello"))
		if fr := f.next(http2.FrameRSTStream); fr != nil {
			reset <- fr.(*http2.RSTStreamFrame).ErrCode
		}
		id, _ = f.request()
		f.head(id, true, ":status", "200")
		f.gone()
	})
	c := newClient(t, Config{})
	res := open(t, c, p.target("h2c"), post("{}"))
	if _, err := res.Next(); err != nil {
		t.Fatal(err)
	}
	blocked := make(chan error, 1)
	go func() {
		_, err := res.Next()
		blocked <- err
	}()
	res.Close()
	if e := failure(t, <-blocked); e.Kind != Canceled {
		t.Errorf("blocked Next returned %v", e)
	}
	if code := <-reset; code != http2.ErrCodeCancel {
		t.Errorf("provider saw %v", code)
	}
	if res := open(t, c, p.target("h2c"), post("{}")); !res.Reused || p.accepted() != 1 {
		t.Errorf("second request: reused %v, %d connections", res.Reused, p.accepted())
	}
}

// TestH2DeadConnectionIsFoundByPing: the provider's host is gone without a word; nothing but an unanswered PING can tell.
func TestH2DeadConnectionIsFoundByPing(t *testing.T) {
	release := make(chan struct{})
	p := h2peer(t, func(_ int, f *frames) {
		id, _ := f.request()
		f.ok(id)
		<-release // reads nothing more, answers nothing more
	})
	defer close(release)
	c := newClient(t, Config{PingInterval: 50 * time.Millisecond, PingTimeout: 50 * time.Millisecond})
	res, err := c.Open(within(t), p.target("h2c"), post("{}"))
	if err == nil { // on a machine that is busy enough the ping is overdue before the head
		defer res.Close()
		_, err = drain(res)
	}
	if e := failure(t, err); e.Kind != Timeout || e.Safety == NotSent {
		t.Errorf("got %v, want a timeout", e)
	}
}

// TestH2PeerThatTakesNothingIsFound: it says enough to seem alive, and reads no more. Whoever writes to it waits with the
// connection's lock held, and all its streams with him, and whoever gives up waits for that lock to say so.
func TestH2PeerThatTakesNothingIsFound(t *testing.T) {
	over := make(chan struct{})
	p := h2peer(t, func(_ int, f *frames) {
		_ = f.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		_ = f.fr.WriteWindowUpdate(0, 1<<30)
		_ = f.next(http2.FrameHeaders)
		for f.fr.WritePing(true, [8]byte{}) == nil {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-over:
				return
			}
		}
	})
	defer close(over)
	c := newClient(t, Config{PingInterval: time.Hour, PingTimeout: 100 * time.Millisecond})
	ctx := within(t)
	_, err := c.Open(ctx, p.target("h2c"), post(strings.Repeat("x", 64<<20)))
	if e := failure(t, err); e.Kind != Timeout || ctx.Err() != nil {
		t.Errorf("got %v, want a timeout, and not that of the caller", e)
	}
}

// TestH2ConcurrentOpensShareOneConnection: a burst at start must not dial once each.
func TestH2ConcurrentOpensShareOneConnection(t *testing.T) {
	p := h2peer(t, func(_ int, f *frames) {
		for {
			id, _ := f.request()
			if id == 0 {
				return
			}
			f.head(id, true, ":status", "200")
		}
	})
	c := newClient(t, Config{})
	errs := make(chan error)
	const n = 20
	for range n {
		go func() {
			res, err := c.Open(within(t), p.target("h2c"), post(""))
			if err == nil {
				err = res.Close()
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if p.accepted() != 1 {
		t.Errorf("%d connections, want 1", p.accepted())
	}
}

// Whatever ends a connection ends all its streams, so that many of them do not share one, however many the provider
// permits; and a burst dials as often as it must, at once.
func TestH2ConnectionCarriesNotTooManyStreams(t *testing.T) {
	const n, most = 100, 8
	p := h2peer(t, func(_ int, f *frames) {
		for open := 1; ; open++ {
			id, _ := f.request()
			if id == 0 {
				return
			}
			if open > most {
				f.head(id, true, ":status", "503")
				continue
			}
			f.head(id, false, ":status", "200") // and goes on for ever
		}
	})
	c := newClient(t, Config{StreamsPerConn: most})
	type opened struct {
		res *Response
		err error
	}
	come := make(chan opened)
	for range n {
		go func() {
			res, err := c.Open(within(t), p.target("h2c"), post(""))
			come <- opened{res, err}
		}()
	}
	var all []*Response
	for range n {
		o := <-come
		if o.err != nil {
			t.Fatal(o.err)
		}
		if o.res.Status != 200 {
			t.Errorf("a connection got more than %d streams", most)
		}
		all = append(all, o.res)
	}
	if got, atLeast := p.accepted(), (n+most-1)/most; got < atLeast || got > 2*atLeast {
		t.Errorf("%d connections for %d streams, want %d or a few more", got, n, atLeast)
	}
	h, err := c.host(p.target("h2c"))
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range all {
		_ = res.Close()
	}
	for free := false; !free; { // or the test's time is over
		runtime.Gosched()
		h.mu.Lock()
		free = !slices.ContainsFunc(h.h2, func(s *shared) bool { return s.live != 0 })
		h.mu.Unlock()
	}
}

// A dial that failed says nothing about another one: who waited for it does not wait again, and one that brought no
// room for all is waited for by the rest once more.
func TestH2SeatsOfADial(t *testing.T) {
	h := &host{proto: protoH2, room: 3}
	_, first := h.boardLocked()
	for range 2 {
		if others, own := h.boardLocked(); others != first || own != nil {
			t.Fatal("a seat was left, and not taken")
		}
	}
	_, second := h.boardLocked()
	if second == nil {
		t.Fatal("no seat was left, and no other dial began")
	}
	h.land(first, true)
	<-first.over
	if !first.failed || len(h.dials) != 1 || h.dials[0] != second {
		t.Fatal("the wrong dial is over")
	}
}

// A provider, or a middlebox, that ends connections breaks every turn on them. Those that share one are fewer from then
// on, down to one, and more again when streams come to their end.
func TestH2FewerShareWhatDies(t *testing.T) {
	const most = 8
	var mu sync.Mutex
	deadly := true
	p := h2peer(t, func(_ int, f *frames) {
		for n := 1; ; n++ {
			id, _ := f.request()
			if id == 0 {
				return
			}
			mu.Lock()
			kills := deadly
			mu.Unlock()
			f.head(id, !kills, ":status", "200")
			if kills && n == 2 {
				return
			}
		}
	})
	c := newClient(t, Config{StreamsPerConn: most})
	room := func() int {
		h, err := c.host(p.target("h2c"))
		if err != nil {
			t.Fatal(err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.room
	}
	for _, want := range []int{4, 2, 1} {
		a, b := open(t, c, p.target("h2c"), post("")), open(t, c, p.target("h2c"), post(""))
		for _, res := range []*Response{a, b} {
			if _, err := drain(res); err == nil || err == io.EOF {
				t.Fatal("the connection did not die")
			}
			_ = res.Close()
		}
		if got := room(); got != want {
			t.Fatalf("%d may share a connection behind one that died, want %d", got, want)
		}
	}
	// Alone on its connection a stream takes nobody with it.
	a, b := open(t, c, p.target("h2c"), post("")), open(t, c, p.target("h2c"), post(""))
	if p.accepted() != 5 {
		t.Fatalf("%d connections, want one for each of the last two streams", p.accepted())
	}
	_, _ = a.Close(), b.Close()

	mu.Lock()
	deadly = false
	mu.Unlock()
	for n := 0; room() < most; n++ {
		res := open(t, c, p.target("h2c"), post(""))
		if _, err := drain(res); err != io.EOF && n > 1 { // the two connections from before
			t.Fatal(err)
		}
		_ = res.Close()
	}
}

// A stream that its reader leaves says nothing of a connection that takes no further ones: nothing died.
func TestH2LeavingARetiredConnectionIsNoDeath(t *testing.T) {
	p := h2peer(t, func(_ int, f *frames) {
		for n := 1; ; n++ {
			id, _ := f.request()
			if id == 0 {
				return
			}
			f.head(id, false, ":status", "200")
			if n == 2 {
				_ = f.fr.WriteGoAway(id, http2.ErrCodeNo, nil)
			}
		}
	})
	c := newClient(t, Config{StreamsPerConn: 8})
	a, b := open(t, c, p.target("h2c"), post("")), open(t, c, p.target("h2c"), post(""))
	h, err := c.host(p.target("h2c"))
	if err != nil {
		t.Fatal(err)
	}
	on := a.body.(*h2body).on
	for !on.cc.State().Closing {
		runtime.Gosched()
	}
	_ = a.Close()
	for left := 2; left == 2; {
		runtime.Gosched()
		h.mu.Lock()
		left = on.live
		h.mu.Unlock()
	}
	_ = b.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.room != 8 || on.dead {
		t.Errorf("%d may share a connection, dead %v", h.room, on.dead)
	}
}

// A connection that answers pings and swallows requests (a load balancer in front of a dead server) looks alive for
// ever. Whoever waited on it in vain leaves it to nobody else: the next request goes out on a fresh one.
func TestH2DeafConnectionIsLeft(t *testing.T) {
	p := h2peer(t, func(conn int, f *frames) {
		for {
			id, _ := f.request()
			if id == 0 {
				return
			}
			if conn > 0 {
				f.head(id, true, ":status", "200")
			}
		}
	})
	c := newClient(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), deaf+200*time.Millisecond)
	defer cancel()
	_, err := c.Open(ctx, p.target("h2c"), post("{}"))
	if e := failure(t, err); e.Kind != Timeout {
		t.Fatalf("got %v, want a timeout", e)
	}
	res, err := c.Open(within(t), p.target("h2c"), post("{}"))
	if err != nil || res.Status != 200 {
		t.Fatalf("the next request: %v", err)
	}
	_ = res.Close()
}
