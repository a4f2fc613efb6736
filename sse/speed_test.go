package sse

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const small = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n"

func drain(s *Scanner, pieces [][]byte) (units int) {
	for _, p := range pieces {
		s.Push(p)
		for _, ok := s.Next(); ok; _, ok = s.Next() {
			units++
		}
	}
	return units
}

func TestNoAllocationPerEvent(t *testing.T) {
	many := []byte(strings.Repeat(small, 50))
	multi := []byte(strings.Repeat("data: a\r\ndata: b\r\n\r\n: hb\r\n", 50))
	for _, c := range []struct {
		name   string
		pieces [][]byte
		units  int
	}{
		{"one event a push", chop(many, len(small)), 50},
		{"many events a push", [][]byte{many}, 50},
		{"split at arbitrary points", chop(many, 61), 50},
		{"one byte at a time", chop(many, 1), 50},
		{"several data lines in crlf", chop(multi, 17), 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Scanner
			drain(&s, c.pieces) // The first round buys the buffers.
			if n := testing.AllocsPerRun(20, func() {
				if got := drain(&s, c.pieces); got != c.units {
					t.Errorf("%d units, want %d", got, c.units)
				}
			}); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

func TestWholeEventsAreNotCopied(t *testing.T) {
	var s Scanner
	p := []byte(small + small)
	s.Push(p)
	e, _ := s.Next()
	if &e.Raw[0] != &p[0] || cap(s.buf) != 0 {
		t.Error("the event was copied though nothing was left over")
	}
	if at := cap(e.Raw) - cap(e.Data); !bytes.HasPrefix(e.Raw[at:], e.Data) {
		t.Error("the data of a single line cannot be found in the raw bytes")
	}
}

// A 5 MB event must cost memory only while it lasts, also when the push that ends it already holds part of the next one,
// so that the scanner is never quite empty again.
func TestHugeEventGivesItsBufferBack(t *testing.T) {
	huge := []byte("data: " + strings.Repeat("x", 5<<20) + "\n\n")
	for name, tail := range map[string]string{"then whole events": small, "then a rest in hand for ever": small + "data: "} {
		t.Run(name, func(t *testing.T) {
			var s Scanner
			if got := drain(&s, chop(huge, 4096)); got != 1 || cap(s.buf) < 5<<20 {
				t.Fatalf("%d units in a buffer of %d", got, cap(s.buf))
			}
			s.Push([]byte(tail))
			for range 3 {
				if _, ok := s.Next(); ok {
					continue
				}
				s.Push([]byte("data: y\n\ndata: "))
			}
			if cap(s.buf) > idleBuffer {
				t.Errorf("still holding %d bytes", cap(s.buf))
			}
		})
	}
	var s Scanner
	joined := []byte("data: a\n" + string(huge) + "data: b\n\n")
	drain(&s, [][]byte{joined, []byte(small)})
	if cap(s.join) > idleBuffer {
		t.Errorf("still holding %d joined bytes", cap(s.join))
	}
}

// Linear work: the scanner looks at each byte a bounded number of times. Counting is done by size, not by the clock: the
// positions it remembers must never lie before the bytes already searched.
func TestSearchedBytesAreNotSearchedAgain(t *testing.T) {
	var s Scanner
	for range 1000 {
		s.Push(bytes.Repeat([]byte("x"), 4096))
		if _, ok := s.Next(); ok {
			t.Fatal("a unit out of nothing")
		}
		if s.lf != len(s.in) || s.cr != len(s.in) {
			t.Fatalf("searched up to %d and %d of %d", s.lf, s.cr, len(s.in))
		}
	}
}

func BenchmarkScan(b *testing.B) {
	many := []byte(strings.Repeat(small, 32))
	tiny := []byte(strings.Repeat("data: {\"x\":1}\n\n", 32))
	for _, c := range []struct {
		name   string
		pieces [][]byte
		events int
	}{
		{"one event a push", chop(many, len(small)), 32},
		{"32 events a push", [][]byte{many}, 32},
		{"32 tiny events a push", [][]byte{tiny}, 32},
		{"split events", chop(many, len(small)-7), 32},
		{"crlf", [][]byte{bytes.ReplaceAll(many, []byte("\n"), []byte("\r\n"))}, 32},
	} {
		b.Run(c.name, func(b *testing.B) {
			var s Scanner
			b.ReportAllocs()
			for range b.N {
				drain(&s, c.pieces)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.events), "ns/event")
		})
	}
	huge := []byte("data: " + strings.Repeat("x", 5<<20) + "\n\n")
	for _, size := range []int{4096, 65536} {
		b.Run(fmt.Sprintf("5 MB event in pieces of %d", size), func(b *testing.B) {
			pieces := chop(huge, size)
			b.SetBytes(int64(len(huge)))
			for range b.N {
				var s Scanner
				drain(&s, pieces)
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	data := []byte(small[len("event: content_block_delta\ndata: ") : len(small)-2])
	var dst []byte
	b.ReportAllocs()
	for range b.N {
		dst = Append(dst[:0], "content_block_delta", data)
	}
}
