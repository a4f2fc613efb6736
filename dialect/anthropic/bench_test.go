package anthropic_test

import (
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// BenchmarkDecodeText is what every event of an unbroken stream costs on top of the copy.
func BenchmarkDecodeText(b *testing.B) {
	dec := d.NewDecoder(nil)
	if _, err := dec.Decode(nil, sse.Event{Data: []byte(beginText(0))}); err != nil {
		b.Fatal(err)
	}
	e := sse.Event{Name: []byte("content_block_delta"), Data: []byte(says(0, "ordinary text of one event, "))}
	dst := make([]turn.Delta, 0, 4)
	b.SetBytes(int64(len(e.Data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := dec.Decode(dst, e); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRewriteText is what an event costs behind a seam.
func BenchmarkRewriteText(b *testing.B) {
	dec, s := d.NewDecoder(nil), new(turn.Snapshot)
	for _, e := range dialecttest.Units(stream(head, beginText(0))) {
		ds, err := dec.Decode(nil, e)
		if err != nil {
			b.Fatal(err)
		}
		for _, x := range ds {
			if err := s.Fold(x); err != nil {
				b.Fatal(err)
			}
		}
	}
	e := sse.Event{Name: []byte("content_block_delta"), Data: []byte(says(0, "ordinary text of one event, "))}
	ds, err := dec.Decode(nil, e)
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst = d.Rewrite(dst[:0], nil, e, ds, s)
	}
}

// BenchmarkRepairNothing is the price of the repair check on a long history.
func BenchmarkRepairNothing(b *testing.B) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("long history ", 80_000) + `"}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		d.Repair(body)
	}
}

func BenchmarkParse(b *testing.B) {
	body := []byte(`{"model":"m","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("long history ", 80_000) + `"}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Parse(body); err != nil {
			b.Fatal(err)
		}
	}
}
