package jsonwalk

import (
	"bytes"
	"strings"
	"testing"
)

// slowPlainEnd is plainEnd byte by byte.
func slowPlainEnd(b []byte, i int) int {
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
		i++
	}
	return i
}

// Every byte, in every place of two words and the rest behind them, beside neighbours that a lent bit
// could be mistaken for.
func TestTextEndsAtTheFirstByteThatIsNoText(t *testing.T) {
	for _, fill := range []byte{'a', ' ', '!', '#', '[', ']', 0x7f, 0x80, 0xa2, 0xdc, 0xff} {
		for c := range 256 {
			for at := range 20 {
				b := bytes.Repeat([]byte{fill}, 20)
				b[at] = byte(c)
				for i := range 4 {
					if got, want := plainEnd(b, i), slowPlainEnd(b, i); got != want {
						t.Fatalf("%q from %d: %d, want %d", b, i, got, want)
					}
				}
			}
		}
	}
}

func FuzzPlainEnd(f *testing.F) {
	f.Add([]byte("some text, then \x1f\" and \\ behind it"), 3)
	f.Fuzz(func(t *testing.T, b []byte, i int) {
		if i < 0 || i > len(b) {
			return
		}
		if got, want := plainEnd(b, i), slowPlainEnd(b, i); got != want {
			t.Fatalf("%q from %d: %d, want %d", b, i, got, want)
		}
	})
}

func FuzzHas(f *testing.F) {
	for _, word := range []string{`"tool_call_id"`, "ub1.drop", `"toolResult"`, `_output"`, "word", ""} {
		f.Add([]byte(`{"a":"tool_cal","`+word+`"`), word)
		f.Add([]byte(word[min(1, len(word)):]+word), word)
	}
	f.Fuzz(func(t *testing.T, doc []byte, word string) {
		if got, want := Has(doc, word), bytes.Contains(doc, []byte(word)); got != want {
			t.Fatalf("%q in %q: %v", word, doc, got)
		}
	})
}

func BenchmarkHas(b *testing.B) {
	doc := []byte(strings.Repeat(`{"role":"user","content":"some words of a question"},`, 40))
	b.Run("has", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			Has(doc, `"tool_call_id"`)
		}
	})
	b.Run("bytes.Contains", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			bytes.Contains(doc, []byte(`"tool_call_id"`))
		}
	})
}
