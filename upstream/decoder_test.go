package upstream

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

type flusher interface {
	io.WriteCloser
	Flush() error
}

var codings = []struct {
	name, header string
	writer       func(io.Writer) flusher
}{
	{"gzip", "gzip", func(w io.Writer) flusher { return gzip.NewWriter(w) }},
	{"x-gzip, upper case", "X-GZIP", func(w io.Writer) flusher { return gzip.NewWriter(w) }},
	{"deflate as zlib", "deflate", func(w io.Writer) flusher { return zlib.NewWriter(w) }},
	{"deflate, raw", "deflate", func(w io.Writer) flusher { f, _ := flate.NewWriter(w, 6); return f }},
	{"br", "br", func(w io.Writer) flusher { return brotli.NewWriter(w) }},
	{"zstd", "zstd", func(w io.Writer) flusher { z, _ := zstd.NewWriter(w); return z }},
	{"br over gzip", "gzip, br", func(w io.Writer) flusher { return newStacked(w) }},
}

// stacked is br over gzip: gzip was applied first.
type stacked struct {
	*gzip.Writer
	outer *brotli.Writer
}

func newStacked(w io.Writer) *stacked {
	outer := brotli.NewWriter(w)
	return &stacked{gzip.NewWriter(outer), outer}
}

func (s *stacked) Flush() error { return errors.Join(s.Writer.Flush(), s.outer.Flush()) }
func (s *stacked) Close() error { return errors.Join(s.Writer.Close(), s.outer.Close()) }

// take returns all that d has to say.
func take(d *Decoder) (string, error) {
	var b []byte
	for {
		p, err := d.Next()
		b = append(b, p...)
		if err != nil || len(p) == 0 {
			return string(b), err
		}
	}
}

// TestDecoderFlushLatency: an event the provider flushed is there before anything else is pushed, whole and alone, and however the
// compressed bytes are split (FIELD-REPORTS F1).
func TestDecoderFlushLatency(t *testing.T) {
	for _, tc := range codings {
		for _, step := range []int{1 << 20, 1, 7} {
			t.Run(tc.name, func(t *testing.T) {
				d, err := NewDecoder(tc.header)
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				var wire bytes.Buffer
				w := tc.writer(&wire)
				rnd := rand.New(rand.NewPCG(1, 2))
				for i := range 50 {
					event := "data: " + strings.Repeat(string(rune('a'+i%26)), rnd.IntN(300)) + "\n\n"
					if i%10 == 9 {
						event = strings.Repeat(event, 200)
					}
					_, _ = io.WriteString(w, event)
					if err := w.Flush(); err != nil {
						t.Fatal(err)
					}
					var got string
					for wire.Len() > 0 {
						d.Push(bytes.Clone(wire.Next(step)))
						s, err := take(d)
						if err != nil {
							t.Fatalf("event %d: %v", i, err)
						}
						got += s
					}
					if got != event {
						t.Fatalf("event %d, in steps of %d: %d of %d bytes are there", i, step, len(got), len(event))
					}
				}
				_ = w.Close()
				d.Push(wire.Bytes())
				s, err := take(d)
				if err == nil {
					d.End()
					s, err = take(d)
				}
				if s != "" || err != io.EOF {
					t.Errorf("end: %q, %v", s, err)
				}
			})
		}
	}
}

// TestDecoderCutAnywhere: a compressed body that lacks its last bytes is never a whole one, and nothing is invented.
func TestDecoderCutAnywhere(t *testing.T) {
	plain := strings.Repeat("data: {\"x\":1}\n\n", 40)
	for _, tc := range codings {
		t.Run(tc.name, func(t *testing.T) {
			var wire bytes.Buffer
			w := tc.writer(&wire)
			_, _ = io.WriteString(w, plain[:100])
			_ = w.Flush()
			_, _ = io.WriteString(w, plain[100:])
			_ = w.Close()
			for at := 1; at < wire.Len(); at++ {
				d, err := NewDecoder(tc.header)
				if err != nil {
					t.Fatal(err)
				}
				d.Push(wire.Bytes()[:at])
				d.End()
				s, err := take(d)
				if err != io.ErrUnexpectedEOF || !strings.HasPrefix(plain, s) {
					t.Errorf("cut at %d of %d: %d bytes, %v", at, wire.Len(), len(s), err)
				}
				d.Close()
			}
		})
	}
}

func TestDecoderOddInputs(t *testing.T) {
	member := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, s)
		_ = w.Close()
		return b.String()
	}
	bomb := strings.Repeat("\x00", 4<<20)
	for _, tc := range []struct {
		name, coding, in, want string
		err                    error
	}{
		{"empty body", "gzip", "", "", io.EOF},
		{"identity", "identity", "plain", "plain", io.EOF},
		{"two members", "gzip", member("hello ") + member("world"), "hello world", io.EOF},
		{"zero padding behind the end", "gzip", member("hello") + "\x00\x00\x00", "hello", io.EOF},
		{"a bomb comes in steps", "gzip", member(bomb), bomb, io.EOF},
		{"second member cut", "gzip", member("hello") + member("world")[:12], "hello", io.ErrUnexpectedEOF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, err := NewDecoder(tc.coding)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			d.Push([]byte(tc.in))
			d.End()
			var got []byte
			for err == nil {
				var p []byte
				if p, err = d.Next(); len(p) > decodeStep {
					t.Fatalf("%d bytes at once", len(p))
				}
				got = append(got, p...)
			}
			if string(got) != tc.want || err != tc.err {
				t.Errorf("%d bytes, %v; want %d, %v", len(got), err, len(tc.want), tc.err)
			}
		})
	}
	if _, err := NewDecoder("gzip, rot13"); !errors.Is(err, ErrCoding) {
		t.Errorf("unknown coding: %v", err)
	}
	d, err := NewDecoder("gzip")
	if err != nil {
		t.Fatal(err)
	}
	d.Push([]byte("not gzip at all"))
	if _, err := take(d); err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
		t.Errorf("garbage: %v", err)
	}
	d.Close()
	d.Close()
}

// TestCompressedAnswer: events come in time through Next, the header matches the bytes (F1, F2), and a wake passes through.
func TestCompressedAnswer(t *testing.T) {
	for _, tc := range codings {
		t.Run(tc.name, func(t *testing.T) {
			next := make(chan struct{})
			p := newPeer(t, func(_ int, w *wire) {
				w.request()
				w.say("HTTP/1.1 200 OK\r\nContent-Encoding: " + tc.header + "\r\nContent-Type: text/event-stream\r\n\r\n")
				z := tc.writer(w.Conn)
				for range 3 {
					_, _ = io.WriteString(z, "data: {}\n\n")
					_ = z.Flush()
					<-next
				}
				_ = z.Close()
			})
			r := post("{}")
			r.Decode = true
			res := open(t, newClient(t, Config{}), p.target("http"), r)
			if res.Header.Has("Content-Encoding") || !res.Header.Has("Content-Type") {
				t.Errorf("header %q", res.Header)
			}
			for range 3 {
				var got []byte
				for string(got) != "data: {}\n\n" {
					b, err := res.Next()
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, b...)
				}
				res.Wake()
				if _, err := res.Next(); err != ErrWoken {
					t.Fatalf("wake: %v", err)
				}
				next <- struct{}{}
			}
			if _, err := drain(res); err != io.EOF {
				t.Errorf("end is %v", err)
			}
		})
	}
}

func TestCompressedAnswerEndings(t *testing.T) {
	var whole bytes.Buffer
	z := gzip.NewWriter(&whole)
	_, _ = io.WriteString(z, "hello")
	_ = z.Flush()
	flushed := whole.Len()
	_ = z.Close()
	var unflushed bytes.Buffer
	z.Reset(&unflushed)
	_, _ = io.WriteString(z, "hello")
	_ = z.Close()
	const head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
	for _, tc := range []struct {
		name, say, want string
		kind            Kind
		eof             bool
	}{
		{"whole, close-delimited", head + "\r\n" + whole.String(), "hello", 0, true},
		{"cut, close-delimited: the coding tells what the framing cannot", head + "\r\n" + whole.String()[:flushed], "hello", Truncated, false},
		{"whole, but the transfer is cut", head + "Content-Length: 999\r\n\r\n" + whole.String(), "hello", Truncated, false},
		{"the transfer is cut before the checksum: what was said is not lost with it", head + "Content-Length: 999\r\n\r\n" + unflushed.String()[:unflushed.Len()-8], "hello", Truncated, false},
		{"broken", head + "\r\n" + whole.String()[:flushed] + "\xff\xff\xff\xff\xff\xff\xff\xff", "hello", Corrupt, false},
		{"not gzip", head + "\r\ndata: {}\n\n", "", Corrupt, false},
		{"unknown coding passes as it came", "HTTP/1.1 200 OK\r\nContent-Encoding: rot13\r\n\r\nuryyb", "uryyb", 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPeer(t, func(_ int, w *wire) {
				w.request()
				w.say(tc.say)
			})
			r := post("{}")
			r.Decode = true
			res := open(t, newClient(t, Config{}), p.target("http"), r)
			body, err := drain(res)
			if body != tc.want {
				t.Errorf("body %q, want %q", body, tc.want)
			}
			if tc.eof {
				if err != io.EOF {
					t.Errorf("end is %v", err)
				}
				return
			}
			if e := failure(t, err); e.Kind != tc.kind || e.Safety != Partial || e.Target != "test" {
				t.Errorf("end is %v, want %v", e, tc.kind)
			}
		})
	}
}

// TestCompressedAnswerClosedEarly leaves nothing behind, from whatever goroutine; goleak and the race detector are the judges.
func TestCompressedAnswerClosedEarly(t *testing.T) {
	for _, tc := range codings {
		p := newPeer(t, func(_ int, w *wire) {
			w.request()
			w.say("HTTP/1.1 200 OK\r\nContent-Encoding: " + tc.header + "\r\n\r\n")
			z := tc.writer(w.Conn)
			for {
				_, _ = io.WriteString(z, "data: {}\n\n")
				if z.Flush() != nil {
					return
				}
			}
		})
		r := post("{}")
		r.Decode = true
		res := open(t, newClient(t, Config{}), p.target("http"), r)
		ended := make(chan error)
		go func() {
			_, err := res.Next()
			go res.Close()
			for err == nil {
				_, err = res.Next()
			}
			ended <- err
		}()
		if e := failure(t, <-ended); e.Kind != Canceled {
			t.Errorf("%s: %v", tc.name, e)
		}
	}
}
