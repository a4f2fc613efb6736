package upstream

import (
	"io"
	"testing"
)

// TestEndings plays every framing against every way to die. An end is io.EOF only where the framing proves it, or where there is no
// framing and CloseDelimited says so (FIELD-REPORTS A1); the bytes before a failure always arrive.
func TestEndings(t *testing.T) {
	const (
		chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		fixedHead   = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
		closeHead   = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
		oldHead     = "HTTP/1.0 200 OK\r\n\r\n"
	)
	hang := func(w *wire) { w.gone() }
	fin := func(*wire) {}
	rst := (*wire).reset
	cases := []struct {
		name     string
		say      string
		then     func(*wire)
		want     string
		eof      bool
		kind     Kind
		closeEnd bool
	}{
		{"chunked, last chunk", chunkedHead + "5\r\nhello\r\n0\r\n\r\n", hang, "hello", true, 0, false},
		{"chunked, extensions and trailers", chunkedHead + "5;a=\"b\"\r\nhello\r\n0;x\r\nETag: 1\r\nB: 2\r\n\r\n", hang, "hello", true, 0, false},
		{"chunked, bare line feeds", chunkedHead + "5\nhello\n0\n\n", hang, "hello", true, 0, false},
		{"chunked, upper and lower hex, leading zeros, blanks", chunkedHead + "00A \r\n0123456789\r\na\t;q\r\n0123456789\r\n000\r\n\r\n", hang, "01234567890123456789", true, 0, false},
		{"chunked, FIN between chunks", chunkedHead + "5\r\nhello\r\n", fin, "hello", false, Truncated, false},
		{"chunked, FIN in payload", chunkedHead + "5\r\nhel", fin, "hel", false, Truncated, false},
		{"chunked, FIN in a chunk header", chunkedHead + "5\r\nhello\r\n1", fin, "hello", false, Truncated, false},
		{"chunked, FIN behind the zero", chunkedHead + "5\r\nhello\r\n0\r\n", fin, "hello", false, Truncated, false},
		{"chunked, FIN in trailers", chunkedHead + "5\r\nhello\r\n0\r\nETag: 1\r\n", fin, "hello", false, Truncated, false},
		{"chunked, FIN before the first chunk", chunkedHead, fin, "", false, Truncated, false},
		{"chunked, garbage for a size", chunkedHead + "5\r\nhello\r\nxyz\r\n", hang, "hello", false, Protocol, false},
		{"chunked, more payload than its size", chunkedHead + "5\r\nhello!\r\n", hang, "hello", false, Protocol, false},
		{"chunked, size overflow", chunkedHead + "ffffffffffffffff1\r\n", hang, "", false, Protocol, false},
		{"chunked, empty size line", chunkedHead + "\r\n", hang, "", false, Protocol, false},
		{"chunked, CR without LF behind the size", chunkedHead + "5\rhello", hang, "", false, Protocol, false},
		{"fixed, whole", fixedHead + "0123456789", hang, "0123456789", true, 0, false},
		{"fixed, FIN early", fixedHead + "01234", fin, "01234", false, Truncated, false},
		{"fixed, bytes behind the end are not ours", fixedHead + "0123456789HTTP/1.1 200 OK\r\n\r\n", hang, "0123456789", true, 0, false},
		{"close-delimited, FIN", closeHead + "hello", fin, "hello", true, 0, true},
		{"HTTP/1.0, FIN", oldHead + "hello", fin, "hello", true, 0, true},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", hang, "", true, 0, false},
		{"length zero", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", hang, "", true, 0, false},
		{"chunked beside a length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", hang, "hello", true, 0, false},
		{"chunked, RST", chunkedHead + "5\r\nhello\r\n", rst, "hello", false, Reset, false},
		{"fixed, RST", fixedHead + "hello", rst, "hello", false, Reset, false},
		{"close-delimited, RST", closeHead + "hello", rst, "hello", false, Reset, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			read := make(chan struct{})
			p := newPeer(t, func(_ int, w *wire) {
				w.request()
				w.say(tc.say)
				if tc.kind == Reset {
					<-read // an RST may overtake bytes that are still in the client's socket
				}
				tc.then(w)
			})
			res := open(t, newClient(t, Config{}), p.target("http"), post("{}"))
			var got string
			if tc.kind == Reset {
				for got != tc.want {
					b, err := res.Next()
					if err != nil {
						t.Fatal(err)
					}
					got += string(b)
				}
				close(read)
			}
			rest, err := drain(res)
			if got += rest; got != tc.want {
				t.Errorf("body %q, want %q", got, tc.want)
			}
			if res.CloseDelimited() != tc.closeEnd {
				t.Errorf("CloseDelimited = %v", res.CloseDelimited())
			}
			if tc.eof {
				if err != io.EOF {
					t.Errorf("end is %v, want io.EOF", err)
				}
				return
			}
			e := failure(t, err)
			if e.Kind != tc.kind || e.Safety != Partial || e.Op != OpBody || e.Target != "test" {
				t.Errorf("end is %v, want kind %v, partial, in the body", e, tc.kind)
			}
			if _, again := res.Next(); again != err {
				t.Errorf("the end changed from %v to %v", err, again)
			}
		})
	}
}
