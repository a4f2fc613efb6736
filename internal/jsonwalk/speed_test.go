package jsonwalk

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReadingDoesNotAllocate(t *testing.T) {
	doc, event := []byte(chunk), []byte(delta)
	body, _ := String(Get(event, "delta", "partial_json"))
	buf := make([]byte, 0, 4096)
	for name, f := range map[string]func(){
		"walk": func() {
			w := Members(doc)
			for _, _, ok := w.Next(); ok; _, _, ok = w.Next() {
			}
		},
		"elements": func() {
			e := Elements(Get(doc, "choices"))
			for _, ok := e.Next(); ok; _, ok = e.Next() {
			}
		},
		"get":      func() { Get(doc, "choices", "0", "delta", "content") },
		"valid":    func() { Valid(doc) },
		"int":      func() { Int(Get(event, "index")) },
		"unescape": func() { buf = Unescape(buf[:0], body) },
		"repair":   func() { buf = Unescape(buf[:0], []byte("\xff\xfe a long text with bytes that are no utf-8 \xff")) },
		"escape":   func() { buf = Escape(buf[:0], doc) },
		"length":   func() { DecodedLen(body) },
		"cut":      func() { CutBody(body, 7) },
		"prefix":   func() { var p Prefix; p.PushBody(body); p.End() },
		"set":      func() { buf = SetMember(buf[:0], doc, "model", event) },
		"add":      func() { buf = SetMember(buf[:0], doc, "absent", event) },
		"delete":   func() { buf = DeleteMember(buf[:0], doc, "model") },
	} {
		if n := testing.AllocsPerRun(50, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkWalk(b *testing.B) {
	doc := []byte(chunk)
	b.ReportAllocs()
	b.SetBytes(int64(len(doc)))
	for range b.N {
		w := Members(doc)
		for _, _, ok := w.Next(); ok; _, _, ok = w.Next() {
		}
	}
}

func BenchmarkGet(b *testing.B) {
	doc := []byte(chunk)
	b.ReportAllocs()
	for range b.N {
		Get(doc, "choices", "0", "delta", "content")
	}
}

func BenchmarkValid(b *testing.B) {
	for name, doc := range map[string][]byte{"chunk": []byte(chunk), "long text": []byte(`"` + strings.Repeat("some words ", 1000) + `"`)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(doc)))
			for range b.N {
				Valid(doc)
			}
		})
		b.Run(name+" by encoding/json", func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for range b.N {
				json.Valid(doc)
			}
		})
	}
}

func BenchmarkPushBody(b *testing.B) {
	body, _ := String(Get([]byte(delta), "delta", "partial_json"))
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for range b.N {
		var p Prefix
		p.PushBody(body)
	}
}

func BenchmarkText(b *testing.B) {
	plain := []byte(strings.Repeat("some words \"quoted\" and lines\n", 20))
	body := Escape(nil, plain)
	buf := make([]byte, 0, 2*len(body))
	b.Run("escape", func(b *testing.B) {
		b.SetBytes(int64(len(plain)))
		for range b.N {
			buf = Escape(buf[:0], plain)
		}
	})
	b.Run("unescape", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for range b.N {
			buf = Unescape(buf[:0], body)
		}
	})
}
