package eventstream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	aws "github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/unbroken-llm/unbroken/sse"
)

// composed is a stream of every kind of frame.
func composed() []byte {
	b := Append(nil, Event, "messageStart", []byte(`{"role":"assistant"}`))
	b = Append(b, Event, "contentBlockDelta", []byte(`{"contentBlockIndex":0,"delta":{"text":"grüß dich"}}`))
	b = Append(b, Event, "empty", nil)
	b = Append(b, Event, "long", bytes.Repeat([]byte(`{"x":1}`), 300))
	b = Append(b, Event, "messageStop", []byte(`{"stopReason":"end_turn"}`))
	b = AppendFault(b, "InternalFailure", "it broke")
	return Append(b, Exception, "throttlingException", []byte(`{"message":"slow down"}`))
}

// corpus are the recorded streams, if they are there, and the composed one.
func corpus(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{"composed": composed()}
	dir := os.Getenv("UNBROKEN_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "corpus")
	}
	names, _ := filepath.Glob(filepath.Join(dir, "bedrock", "*.eventstream.bin"))
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(n)] = b
	}
	if len(names) == 0 {
		t.Log("no recorded streams: only what is composed here is read")
	}
	return all
}

func line(e sse.Event) string { return fmt.Sprintf("%s|%s|%d\n", e.Name, e.Data, len(e.Raw)) }

func scan(s *Scanner, pieces ...[]byte) (raw []byte, events string) {
	for _, p := range pieces {
		p = bytes.Clone(p)
		s.Push(p)
		for e, ok := s.Next(); ok; e, ok = s.Next() {
			raw = append(raw, e.Raw...)
			events += line(e)
		}
		for i := range p {
			p[i] = 0xff // the caller's buffer is its own again
		}
	}
	return raw, events
}

func TestEverySplitReadsTheSame(t *testing.T) {
	for name, b := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			var s Scanner
			whole, want := scan(&s, b)
			if !bytes.Equal(whole, b) || s.Unfinished() != 0 || s.Err() != nil {
				t.Fatalf("frames do not reassemble: %d of %d bytes, %v", len(whole), len(b), s.Err())
			}
			for at := range len(b) {
				s.Reset()
				raw, got := scan(&s, b[:at], b[at:])
				if !bytes.Equal(raw, b) || got != want {
					t.Fatalf("split at %d: got %s\nwant %s", at, got, want)
				}
			}
			s.Reset()
			var single [][]byte
			for i := range b {
				single = append(single, b[i:i+1])
			}
			if raw, got := scan(&s, single...); !bytes.Equal(raw, b) || got != want {
				t.Fatal("one byte at a time reads otherwise")
			}
		})
	}
}

func TestACutLeavesItsBytesInHand(t *testing.T) {
	b := composed()
	for at := range len(b) {
		var s Scanner
		raw, _ := scan(&s, b[:at])
		if got := s.Unfinished(); got != at-len(raw) {
			t.Fatalf("cut at %d: %d bytes in hand, want %d", at, got, at-len(raw))
		}
		if _, ok := s.Rest(); ok {
			t.Fatal("half a frame says something")
		}
	}
}

// What is handed out stays valid while further frames of the same push are read.
func TestFramesOfOnePushLiveTogether(t *testing.T) {
	b := composed()
	var s Scanner
	s.Push(b[:1])
	s.Next()
	s.Push(b[1 : len(b)-1])
	var kept []sse.Event
	want := ""
	for e, ok := s.Next(); ok; e, ok = s.Next() {
		kept = append(kept, e)
		want += line(e)
	}
	got := ""
	for _, e := range kept {
		got += line(e)
	}
	if got != want || len(kept) != 6 {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestAnyFlippedBitIsFound(t *testing.T) {
	b := Append(nil, Event, "contentBlockDelta", []byte(`{"delta":{"text":"a"}}`))
	for bit := range len(b) * 8 {
		c := bytes.Clone(b)
		c[bit/8] ^= 1 << (bit % 8)
		var s Scanner
		if _, got := scan(&s, c); got != "" || s.Err() == nil {
			t.Fatalf("bit %d: read %q, %v", bit, got, s.Err())
		}
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	prelude := func(total, headers uint32) []byte {
		b := binary.BigEndian.AppendUint32(nil, total)
		b = binary.BigEndian.AppendUint32(b, headers)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	}
	odd := func(headers string) []byte {
		b := append(prelude(uint32(16+len(headers)), uint32(len(headers))), headers...)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	}
	for _, c := range []struct {
		name string
		in   []byte
		want error
	}{
		{"an html page", []byte("<html><body>bad gateway</body></html>"), ErrPrelude},
		{"less than a frame", prelude(15, 0), ErrLength},
		{"headers longer than the frame", prelude(64, 49), ErrLength},
		{"a frame beyond the limit, before it is waited for", prelude(1001, 0), ErrTooLong},
		{"a header cut in its name", odd("\x05:a"), ErrHeaders},
		{"a header cut in its value", odd("\x01a\x07\x00\x05abc"), ErrHeaders},
		{"a header of no known type", odd("\x01a\x0a"), ErrHeaders},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Scanner{Limit: 1000}
			if _, got := scan(&s, c.in); got != "" || !errors.Is(s.Err(), c.want) {
				t.Errorf("read %q, %v; want %v", got, s.Err(), c.want)
			}
			if _, got := scan(&s, composed()); got != "" {
				t.Errorf("read on behind an error: %q", got)
			}
			s.Reset()
			if _, got := scan(&s, Append(nil, Event, "a", nil)); !strings.HasPrefix(got, "a||") {
				t.Errorf("a reset scanner reads %q", got)
			}
		})
	}
}

// The library of AWS is the oracle for both directions.
func TestTheOfficialLibraryAgrees(t *testing.T) {
	for name, b := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			dec := aws.NewDecoder()
			r := bytes.NewReader(b)
			for rest := b; len(rest) > 0; {
				f, size, err := Read(rest, 0)
				if err != nil || size > len(rest) {
					t.Fatal(err, size)
				}
				m, err := dec.Decode(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(m.Payload, f.Payload) {
					t.Fatalf("payload %q, want %q", f.Payload, m.Payload)
				}
				for _, h := range m.Headers {
					if got := string(f.Header(h.Name)); got != h.Value.String() {
						t.Fatalf("header %s is %q, want %q", h.Name, got, h.Value)
					}
				}
				if again := f.Reload(nil, f.Payload); !bytes.Equal(again, f.Raw) {
					t.Fatal("a frame with the same payload has other bytes")
				}
				rest = rest[size:]
			}
			if r.Len() != 0 {
				t.Fatalf("the library has %d bytes left", r.Len())
			}
		})
	}
}

func TestHeadersOfAllTypesAreStepped(t *testing.T) {
	var m aws.Message
	m.Headers.Set("true", aws.BoolValue(true))
	m.Headers.Set("byte", aws.Int8Value(1))
	m.Headers.Set("short", aws.Int16Value(1))
	m.Headers.Set("int", aws.Int32Value(1))
	m.Headers.Set("long", aws.Int64Value(1))
	m.Headers.Set("bytes", aws.BytesValue("abc"))
	m.Headers.Set("uuid", aws.UUIDValue{1})
	m.Headers.Set(":message-type", aws.StringValue("error"))
	m.Headers.Set(":error-code", aws.StringValue("InternalFailure"))
	m.Headers.Set(":error-message", aws.StringValue("it broke"))
	var b bytes.Buffer
	if err := aws.NewEncoder().Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	f, _, err := Read(b.Bytes(), 0)
	if err != nil || f.IsEvent() || string(f.Name) != "InternalFailure" || string(f.Header(":error-message")) != "it broke" || f.Header("bytes") != nil {
		t.Errorf("read %+v, %v", f, err)
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	b := composed()
	var s Scanner
	read := func() {
		for in := b; len(in) > 0; {
			n := min(len(in), 700)
			s.Push(in[:n])
			for _, ok := s.Next(); ok; _, ok = s.Next() {
			}
			in = in[n:]
		}
	}
	read()
	if n := testing.AllocsPerRun(20, read); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestALengthIsNotBelieved(t *testing.T) {
	b := make([]byte, 16)
	binary.BigEndian.PutUint32(b, 60<<20)
	binary.BigEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[:8]))
	var s Scanner
	for i := range b {
		s.Push(b[i : i+1])
		s.Next()
	}
	if s.Err() != nil || cap(s.buf) > 1<<10 {
		t.Errorf("%d bytes in hand take %d of memory (%v)", s.Unfinished(), cap(s.buf), s.Err())
	}
}

func FuzzScanner(f *testing.F) {
	f.Add(composed(), uint16(5))
	f.Add([]byte("data: {}\n\n"), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		at := min(int(cut), len(b))
		one, two := Scanner{Limit: 1 << 16}, Scanner{Limit: 1 << 16}
		raw, want := scan(&one, b)
		if _, got := scan(&two, b[:at], b[at:]); got != want || (one.Err() == nil) != (two.Err() == nil) {
			t.Fatalf("split at %d reads %q, want %q", at, got, want)
		}
		if !bytes.HasPrefix(b, raw) || one.Err() == nil && len(raw)+one.Unfinished() != len(b) {
			t.Fatal("bytes were lost")
		}
	})
}
