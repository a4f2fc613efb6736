package openairesponses_test

import (
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/turn"
)

func BenchmarkDecodeText(b *testing.B) {
	units := dialecttest.Units(begin("resp_A").message(0, "msg_A", "some", " words").out)
	dec := d.NewDecoder(nil)
	var dst []turn.Delta
	for _, e := range units {
		var err error
		if dst, err = dec.Decode(dst[:0], e); err != nil {
			b.Fatal(err)
		}
	}
	last := units[len(units)-1]
	b.SetBytes(int64(len(last.Raw)))
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = dec.Decode(dst[:0], last); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRewriteText(b *testing.B) {
	first := begin("resp_A").message(0, "msg_A", "some")
	req := dialecttest.Parse(b, d, []byte(hello))
	said := dialecttest.Read(b, d, req, first.out)
	units := dialecttest.Units(begin("resp_B").message(0, "msg_B", " words").out)
	last := units[len(units)-1]
	ds := []turn.Delta{{Kind: turn.Text, Block: 0, Text: []byte(" words")}}
	var dst []byte
	b.SetBytes(int64(len(last.Raw)))
	b.ReportAllocs()
	for b.Loop() {
		dst = d.Rewrite(dst[:0], req, last, ds, said)
	}
}
