package upstream

import (
	"io"
	"strings"
	"testing"
)

// TestRequestOnTheWire compares whole request heads byte for byte: order, repetition and spelling are kept, the path is not touched, and
// nothing of the connection or of our own making slips in (FIELD-REPORTS F10, F11, F13, F16, F21).
func TestRequestOnTheWire(t *testing.T) {
	for _, tc := range []struct {
		name string
		host string
		req  *Request
		want string
	}{
		{"order, spelling and repetition", "", &Request{Method: "POST", Path: "/a", Body: []byte("{}"), Header: Header{
			{"x-B", "1"}, {"anthropic-beta", "a"}, {"X-A", ""}, {"Anthropic-Beta", "b"}, {"Content-Type", "application/json"}}},
			"POST /a HTTP/1.1\r\nHost: HOST\r\nx-B: 1\r\nanthropic-beta: a\r\nX-A: \r\nAnthropic-Beta: b\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"},
		{"raw path", "", &Request{Path: "//v1/../%2f;x//?q=%zz&a;b#?"}, "GET //v1/../%2f;x//?q=%zz&a;b#? HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"host override", "api.example", &Request{Path: "/", Header: Header{{"Host", "caller"}}}, "GET / HTTP/1.1\r\nHost: api.example\r\n\r\n"},
		{"hop-by-hop and computed fields", "", &Request{Method: "POST", Path: "/", Body: []byte("{}"), Header: Header{
			{"Connection", "close, X-Hop"}, {"connection", "x-also"}, {"X-Hop", "1"}, {"X-Also", "1"}, {"Keep-Alive", "timeout=5"}, {"TE", "trailers"},
			{"Trailer", "X"}, {"Transfer-Encoding", "chunked"}, {"Upgrade", "websocket"}, {"Proxy-Connection", "keep-alive"}, {"Proxy-Authorization", "x"},
			{"Proxy-Authenticate", "x"}, {"HTTP2-Settings", "x"}, {"Content-Length", "99"}, {"Expect", "100-continue"}, {"Accept-Encoding", "gzip"}}},
			"POST / HTTP/1.1\r\nHost: HOST\r\nAccept-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"},
		{"empty body of a POST", "", &Request{Method: "POST", Path: "/"}, "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n"},
		{"no body of a DELETE", "", &Request{Method: "DELETE", Path: "/"}, "DELETE / HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"streamed body of known size", "", &Request{Method: "PUT", Path: "/", BodyStream: strings.NewReader("hello, and more"), BodySize: 5},
			"PUT / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\n\r\nhello"},
		{"streamed body of unknown size", "", &Request{Method: "PUT", Path: "/", BodyStream: iotestPieces("hello", strings.Repeat("x", 40)), BodySize: -1},
			"PUT / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n28\r\n" + strings.Repeat("x", 40) + "\r\n0\r\n\r\n"},
		{"streamed empty body of unknown size", "", &Request{Method: "PUT", Path: "/", BodyStream: strings.NewReader(""), BodySize: -1},
			"PUT / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := make(chan string, 1)
			p := newPeer(t, func(_ int, w *wire) {
				b := make([]byte, len(strings.Replace(tc.want, "HOST", w.LocalAddr().String(), 1)))
				n, _ := io.ReadFull(w.br, b)
				extra, _ := w.br.Peek(w.br.Buffered())
				got <- string(b[:n]) + string(extra)
				w.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				w.gone()
			})
			to := p.target("http")
			to.HostOverride = tc.host
			open(t, newClient(t, Config{}), to, tc.req)
			if g, want := <-got, strings.Replace(tc.want, "HOST", p.ln.Addr().String(), 1); g != want {
				t.Errorf("on the wire:\n%q\nwant:\n%q", g, want)
			}
		})
	}
}

// iotestPieces returns one piece per Read.
func iotestPieces(pieces ...string) io.Reader {
	var r []io.Reader
	for _, p := range pieces {
		r = append(r, strings.NewReader(p))
	}
	return io.MultiReader(r...)
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	for name, r := range map[string]*Request{
		"header injection by value": {Path: "/", Header: Header{{"X", "a\r\nY: b"}}},
		"header injection by name":  {Path: "/", Header: Header{{"X: a\r\nY", "b"}}},
		"empty header name":         {Path: "/", Header: Header{{"", "b"}}},
		"request line injection":    {Path: "/ HTTP/1.1\r\nX: y"},
		"line feed in the path":     {Path: "/a\nb"},
		"relative path":             {Path: "v1/messages"},
		"absolute form":             {Path: "http://other/"},
		"empty path":                {},
		"method with a blank":       {Method: "GET /", Path: "/"},
		"negative size":             {Path: "/", BodySize: -2, BodyStream: strings.NewReader("")},
	} {
		_, err := newClient(t, Config{}).Open(within(t), &Target{URL: mustURL("http://127.0.0.1:1")}, r)
		if e := failure(t, err); e.Kind != Invalid || e.Safety != NotSent || e.Op != OpRequest {
			t.Errorf("%s: %v", name, e)
		}
	}
	for name, to := range map[string]*Target{
		"none": nil, "no URL": {}, "unknown scheme": {URL: mustURL("ftp://x")}, "no host": {URL: mustURL("http:///x")},
	} {
		_, err := newClient(t, Config{}).Open(within(t), to, post("{}"))
		if e := failure(t, err); e.Kind != Invalid || e.Safety != NotSent {
			t.Errorf("target %s: %v", name, e)
		}
	}
}

func TestResponseHopByHopFieldsAreDropped(t *testing.T) {
	res, err := scripted(t, io.EOF, []byte("HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: x\r\n"+
		"Set-Cookie: a\r\nset-cookie: b\r\nTrailer: T\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Header{{"Set-Cookie", "a"}, {"set-cookie", "b"}, {"Content-Length", "0"}}
	if len(res.Header) != 3 || res.Header[0] != want[0] || res.Header[1] != want[1] || res.Header[2] != want[2] {
		t.Errorf("header %q, want %q", res.Header, want)
	}
	if v := res.Header.Values("SET-COOKIE"); len(v) != 2 || v[1] != "b" {
		t.Errorf("values %q", v)
	}
}
