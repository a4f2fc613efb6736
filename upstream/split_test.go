package upstream

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httputil"
	"strings"
	"testing"
	"time"
)

// script is a connection whose reads return exactly the given pieces, then end.
type script struct {
	net.Conn
	pieces [][]byte
	end    error
}

func (s *script) Read(p []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, s.end
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

func (s *script) Write(p []byte) (int, error)     { return len(p), nil }
func (s *script) Close() error                    { return nil }
func (s *script) SetReadDeadline(time.Time) error { return nil }

// scripted runs one request against the pieces, on a host without a pool.
func scripted(t *testing.T, end error, pieces ...[]byte) (*Response, error) {
	t.Helper()
	sc := &script{pieces: pieces, end: end}
	c := &conn{nc: sc, raw: sc, host: &host{client: newClient(t, Config{}), closed: true}}
	res, e := c.open(within(t), &Target{URL: mustURL("http://provider.test")}, post("{}"))
	if e != nil {
		return nil, e
	}
	return res, nil
}

const wholeResponse = "\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nX-A: 1\r\nx-a:  2 \r\nFolded: a\r\n  b\r\n" +
	"Connection: X-Hop\r\nX-Hop: 1\r\nTransfer-Encoding: chunked\r\n\r\n5;e=1\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\nT: 1\r\n\r\n"

func checkWhole(t *testing.T, how string, res *Response, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", how, err)
	}
	body, err := drain(res)
	if body != "hello world" || err != io.EOF || res.Status != 200 {
		t.Fatalf("%s: status %d, body %q, end %v", how, res.Status, body, err)
	}
	h := res.Header
	if len(h) != 3 || h[0] != (Field{"X-A", "1"}) || h[1] != (Field{"x-a", "2"}) || h[2] != (Field{"Folded", "a b"}) {
		t.Fatalf("%s: header %q", how, h)
	}
}

// TestResponseSplitAnywhere cuts informational heads, head, chunks and trailers in two at every byte, and into single bytes: how a
// response arrives must not matter.
func TestResponseSplitAnywhere(t *testing.T) {
	for at := 1; at < len(wholeResponse); at++ {
		res, err := scripted(t, io.EOF, []byte(wholeResponse[:at]), []byte(wholeResponse[at:]))
		checkWhole(t, fmt.Sprintf("split at %d", at), res, err)
	}
	var bytewise [][]byte
	for i := range len(wholeResponse) {
		bytewise = append(bytewise, []byte{wholeResponse[i]})
	}
	res, err := scripted(t, io.EOF, bytewise...)
	checkWhole(t, "byte by byte", res, err)
}

// TestResponseCutAnywhere ends the connection at every byte: never a whole answer, never a byte too many, and the error knows whether
// the head was there.
func TestResponseCutAnywhere(t *testing.T) {
	head := strings.LastIndex(wholeResponse, "\r\n\r\n5;") + 4
	for at := range len(wholeResponse) {
		res, err := scripted(t, io.EOF, []byte(wholeResponse[:at]))
		if at < head {
			if e := failure(t, err); e.Kind != Truncated || e.Safety != Sent || e.Op != OpHead {
				t.Fatalf("cut at %d: %v", at, e)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", at, err)
		}
		body, err := drain(res)
		if e := failure(t, err); e.Kind != Truncated || e.Safety != Partial {
			t.Fatalf("cut at %d: %v", at, e)
		}
		if !strings.HasPrefix("hello world", body) {
			t.Fatalf("cut at %d: body %q", at, body)
		}
	}
}

// TestOneReadIsOneSlice: everything one read delivered leaves as one slice, however many chunks it held.
func TestOneReadIsOneSlice(t *testing.T) {
	var read bytes.Buffer
	w := httputil.NewChunkedWriter(&read)
	for range 50 {
		fmt.Fprint(w, "data: {}\n\n")
	}
	res, err := scripted(t, io.EOF, []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), read.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	p, err := res.Next()
	if want := strings.Repeat("data: {}\n\n", 50); string(p) != want || err != nil {
		t.Errorf("%d bytes, %v; want %d in one slice", len(p), err, len(want))
	}
}

// TestChunkedAgainstOracle plays random chunkings in random pieces and compares with the standard library's reader.
func TestChunkedAgainstOracle(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		var wire bytes.Buffer
		for range rnd.IntN(6) {
			payload := bytes.Repeat([]byte{byte('a' + rnd.IntN(26))}, 1+rnd.IntN(40))
			fmt.Fprintf(&wire, "%x%s\r\n%s\r\n", len(payload), []string{"", ";x", ";y=\"z\""}[rnd.IntN(3)], payload)
		}
		wire.WriteString("0\r\n\r\n")
		want, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(wire.Bytes())))
		if err != nil {
			t.Fatal(err)
		}
		var c chunked
		var got []byte
		for p := wire.Bytes(); len(p) > 0; {
			n := 1 + rnd.IntN(len(p))
			piece := bytes.Clone(p[:n])
			out, used, err := c.decode(piece)
			if err != nil || used != n {
				t.Fatalf("round %d: consumed %d of %d, %v", round, used, n, err)
			}
			got = append(got, out...)
			p = p[n:]
		}
		if !bytes.Equal(got, want) || c.state != chunkDone {
			t.Fatalf("round %d: %q, want %q, state %d", round, got, want, c.state)
		}
	}
}

// FuzzChunked: whatever arrives, in whatever pieces, the result is the same, no byte is invented, and nothing panics.
func FuzzChunked(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\n"), 3)
	f.Add([]byte("5;a\nhello\r\n0\r\nT: 1\r\n\r\nrest"), 1)
	f.Add([]byte("fffffffffffffff\r\nx"), 2)
	f.Fuzz(func(t *testing.T, in []byte, step int) {
		var one, many chunked
		whole, n, err := one.decode(bytes.Clone(in))
		whole = bytes.Clone(whole)
		var pieces []byte
		var total int
		var merr error
		step = max(1, step%17)
		for rest := bytes.Clone(in); len(rest) > 0 && merr == nil && many.state != chunkDone; {
			k := min(step, len(rest))
			var p []byte
			var used int
			p, used, merr = many.decode(rest[:k])
			pieces = append(pieces, p...)
			total += used
			rest = rest[k:]
		}
		if !bytes.Equal(whole, pieces) || n != total || err != merr || one.state != many.state {
			t.Fatalf("whole %q %d %v, in pieces %q %d %v", whole, n, err, pieces, total, merr)
		}
		if len(whole) > len(in) {
			t.Fatalf("%d bytes from %d", len(whole), len(in))
		}
	})
}

// TestChunkFloodIsBounded: framing without payload is a way to keep a reader busy for ever.
func TestChunkFloodIsBounded(t *testing.T) {
	for name, in := range map[string]string{
		"an endless extension": "5;" + strings.Repeat("x", maxFraming),
		"endless trailers":     "0\r\n" + strings.Repeat("a: b\r\n", maxFraming/6+1),
		"endless padding":      "5" + strings.Repeat(" ", maxFraming),
	} {
		var c chunked
		if _, _, err := c.decode([]byte(in)); err != errChunkFlood {
			t.Errorf("%s: %v", name, err)
		}
	}
}
