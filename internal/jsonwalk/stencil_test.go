package jsonwalk

import (
	"bytes"
	"testing"
)

func TestStencil(t *testing.T) {
	const openai = `{"id":"1","choices":[{"delta":{"content":"a"},"finish_reason":null}],"obfuscation":"Xyz"}`
	for _, c := range []struct {
		name, learned, body, doc, want string
	}{
		{"other text", `{"k":1,"text":"a"}`, "a", `{"k":1,"text":"bcd"}`, "bcd"},
		{"the same text", `{"text":"a"}`, "a", `{"text":"a"}`, "a"},
		{"escapes", `{"text":"a"}`, "a", `{"text":"\"\\"}`, `\"\\`},
		{"a quote that is escaped ends nothing", `{"text":"a"}`, "a", `{"text":"a\"}`, ""},
		{"text that closes early", `{"text":"a"}`, "a", `{"text":"a","b":"a"}`, ""},
		{"text that goes on as the tail", `{"text":"a","b":"c"}`, "a", `{"text":"x\",\"b\":\"c"}`, ""},
		{"no text", `{"text":"a"}`, "a", `{"text":""}`, ""},
		{"none was learned", `{"text":""}`, "", `{"text":"b"}`, ""},
		{"another number", `{"k":1,"text":"a"}`, "a", `{"k":2,"text":"a"}`, ""},
		{"something behind it", `{"text":"a"}`, "a", `{"text":"a"} `, ""},
		{"cut", `{"text":"a"}`, "a", `{"text":"ab`, ""},
		{"nothing", `{"text":"a"}`, "a", ``, ""},
		{"padding varies", openai, "a", `{"id":"1","choices":[{"delta":{"content":" word"},"finish_reason":null}],"obfuscation":"q"}`, " word"},
		{"padding that hides a member", openai, "a", `{"id":"1","choices":[{"delta":{"content":" word"},"finish_reason":null}],"obfuscation":"q","usage":"x"}`, ""},
		{"padding that does not end", openai, "a", `{"id":"1","choices":[{"delta":{"content":" word"},"finish_reason":null}],"obfuscation":"q\"}`, ""},
		{"padding of nothing", openai, "a", `{"id":"1","choices":[{"delta":{"content":" word"},"finish_reason":null}],"obfuscation":""}`, ""},
		{"padding in the middle does not vary", `{"text":"a","obfuscation":"x","b":1}`, "a", `{"text":"a","obfuscation":"y","b":1}`, ""},
		{"padding deeper down does not vary", `{"c":{"text":"a","obfuscation":"x"}}`, "a", `{"c":{"text":"a","obfuscation":"y"}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Stencil
			learned := []byte(c.learned)
			at := bytes.Index(learned, []byte(`t":"`+c.body+`"`)) + len(`t":"`)
			s.Learn(learned, learned[at:at+len(c.body)])
			got, ok := s.Body([]byte(c.doc))
			if ok != (c.want != "") || ok && string(got) != c.want {
				t.Errorf("%q, %v", got, ok)
			}
			s.Forget()
			if _, ok := s.Body([]byte(c.learned)); ok {
				t.Error("recognised what was forgotten")
			}
		})
	}
}

// FuzzStencil holds what a stencil says of a document against a walk through both: every
// member of the one is the other's, but for the text and the padding at the end.
func FuzzStencil(f *testing.F) {
	f.Add([]byte(`{"a":[1],"text":"x"}`), []byte(`{"a":[1],"text":"y\\"}`))
	f.Add([]byte(`{"text":"x","obfuscation":"ab"}`), []byte(`{"text":"y","obfuscation":"c"}`))
	f.Add([]byte(`{"text":"x","z":{"obfuscation":"ab"}}`), []byte(`{"text":"y","z":{"obfuscation":"c"}}`))
	f.Fuzz(func(t *testing.T, learned, doc []byte) {
		body, ok := String(Get(learned, "text"))
		if !ok || !Valid(learned) {
			return
		}
		var s Stencil
		s.Learn(learned, body)
		text, ok := s.Body(doc)
		if !ok {
			return
		}
		a, b := Members(learned), Members(doc)
		for {
			k, v, more := a.Next()
			l, w, also := b.Next()
			if more != also || !bytes.Equal(k, l) {
				t.Fatalf("%q is not %q: %q, %q", doc, learned, k, l)
			}
			if !more {
				break
			}
			if bytes.Equal(v, w) || string(k) == "obfuscation" {
				continue
			}
			if string(k) != "text" || !bytes.Equal(w[1:len(w)-1], text) {
				t.Fatalf("%q and %q differ in %q: %q, %q", doc, learned, k, v, w)
			}
		}
		if b.Err() != nil {
			t.Fatalf("%q: %v", doc, b.Err())
		}
	})
}
