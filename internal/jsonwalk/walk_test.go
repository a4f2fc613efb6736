package jsonwalk

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A chat chunk and a Messages delta, composed after WIRE 1.1 and 1.3.
const (
	chunk = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" w\u00f6rd \"x\""},"finish_reason":null}],"usage":null}`
	delta = `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"/a\\n\", \"n\": [1, 2]}"}}`
)

func TestDocumentsAgreeWithEncodingJSON(t *testing.T) {
	for _, d := range append(documents, chunk, delta) {
		if got, want := Valid([]byte(d)), json.Valid([]byte(d)); got != want {
			t.Errorf("Valid(%q) = %v, encoding/json says %v", d, got, want)
		}
		for cut := range len(d) + 1 {
			checkPrefix(t, []byte(d[:cut]))
			checkWalk(t, []byte(d[:cut]))
		}
	}
}

func TestGet(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		path      []string
		want      string // "" for nil
	}{
		{"through arrays", chunk, []string{"choices", "0", "delta", "content"}, `" w\u00f6rd \"x\""`},
		{"no path is the trimmed value", " {} ", nil, `{}`},
		{"absent", chunk, []string{"nope"}, ``},
		{"null is a value", chunk, []string{"usage"}, `null`},
		{"below a scalar", chunk, []string{"id", "x"}, ``},
		{"index out of range", chunk, []string{"choices", "1"}, ``},
		{"index that is none", chunk, []string{"choices", "x"}, ``},
		{"empty index", chunk, []string{"choices", ""}, ``},
		{"index beyond any int", chunk, []string{"choices", "99999999999999999999999"}, ``},
		{"last duplicate counts", `{"a":1,"a":2}`, []string{"a"}, `2`},
		{"escaped key", `{"\u0061\n":1}`, []string{"a\n"}, `1`},
		{"empty key", `{"":1}`, []string{""}, `1`},
		{"malformed behind the value", `{"a":1,}`, []string{"a"}, ``},
		{"cut", `{"a":1`, []string{"a"}, ``},
		{"bytes behind the document", `{"a":1}x`, []string{"a"}, ``},
		{"nothing", ``, []string{"a"}, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Get([]byte(c.doc), c.path...)
			if string(got) != c.want || (got == nil) != (c.want == "") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWalkErrors(t *testing.T) {
	for doc, want := range map[string]error{
		`{}`: nil, `{"a":1}`: nil, ` {"a" : [1] } `: nil, ``: ErrKind, `[]`: ErrKind, `null`: ErrKind, `{`: ErrSyntax, `{"a"`: ErrSyntax,
		`{"a":`: ErrSyntax, `{"a":1,}`: ErrSyntax, `{,}`: ErrSyntax, `{"a":1 "b":2}`: ErrSyntax, `{a:1}`: ErrSyntax, `{"a":tru}`: ErrSyntax,
		`{"a":01}`: ErrSyntax, `{} x`: ErrSyntax, `{"a`: ErrSyntax,
	} {
		w := Members([]byte(doc))
		for _, _, ok := w.Next(); ok; _, _, ok = w.Next() {
			if w.Err() != nil {
				t.Errorf("%q: a member and an error", doc)
			}
		}
		if !errors.Is(w.Err(), want) {
			t.Errorf("%q: %v, want %v", doc, w.Err(), want)
		}
	}
	e := Elements([]byte(`[1,2 3]`))
	for _, ok := e.Next(); ok; _, ok = e.Next() {
	}
	if !errors.Is(e.Err(), ErrSyntax) {
		t.Errorf("elements: %v", e.Err())
	}
}

func TestScalars(t *testing.T) {
	for raw, want := range map[string]string{
		"0": "0", "-0": "0", "42": "42", "-7": "-7", "9223372036854775807": "9223372036854775807", "-9223372036854775808": "-9223372036854775808",
		"9223372036854775808": "no", "-9223372036854775809": "no", "99999999999999999999": "no", "1.0": "no", "1e3": "no", "01": "no", "": "no", "-": "no", `"1"`: "no",
	} {
		got := "no"
		if v, ok := Int([]byte(raw)); ok {
			got = fmt.Sprint(v)
		}
		if got != want {
			t.Errorf("Int(%s) = %s, want %s", raw, got, want)
		}
	}
	if v, ok := Bool([]byte("true")); !v || !ok {
		t.Error("true")
	}
	if v, ok := Bool([]byte("false")); v || !ok {
		t.Error("false")
	}
	if _, ok := Bool([]byte("1")); ok || IsNull(nil) || !IsNull([]byte("null")) {
		t.Error("1 is no boolean, an absent value is not null, null is")
	}
	for raw, want := range map[string]Kind{"": KindNone, " {": KindObject, "[": KindArray, `"`: KindString, "-1": KindNumber, "t": KindBool, "null": KindNull, "x": KindNone} {
		if KindOf([]byte(raw)) != want {
			t.Errorf("KindOf(%q) = %v, want %v", raw, KindOf([]byte(raw)), want)
		}
	}
}

// A cut between two deltas may fall between the halves of an escape pair (FIELD-REPORTS C6).
func TestPairCutInTwo(t *testing.T) {
	for body, want := range map[string]bool{
		`a\ud83d`: true, `\uD83D`: true, `\uDBFF`: true, `\ud83d\ude00`: false, `\ude00`: false, `\ud7ff`: false, `\\ud83d`: false, `\\\ud83d`: true,
		`ud83d`: false, ``: false, `\ud83`: false, `\ud83d `: false,
	} {
		if got := EndsInHighSurrogate([]byte(body)); got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}

func TestEscapeKeepsClientsAlive(t *testing.T) {
	got := string(Escape(nil, []byte("<&>\"\\/\n\t\x01\u2028\u2029\u0085é😀\xff\x7f")))
	want := `<&>\"\\/\n\t\u0001\u2028\u2029\u0085é😀\ufffd` + "\x7f"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEdit(t *testing.T) {
	for _, c := range []struct{ name, obj, key, set, deleted string }{
		{"replaced in place", `{ "a" : 1 , "b":2}`, "a", `{ "a" : 9 , "b":2}`, `{ "b":2}`},
		{"last member", `{"a":1, "b" : 2 }`, "b", `{"a":1, "b" : 9 }`, `{"a":1 }`},
		{"middle member", `{"a":1, "b":2, "c":3}`, "b", `{"a":1, "b":9, "c":3}`, `{"a":1, "c":3}`},
		{"only member", ` { "a" : 1 } `, "a", ` { "a" : 9 } `, ` {  } `},
		{"added behind the last", "{\n  \"a\": 1\n}", "b", "{\n  \"a\": 1,\"b\":9\n}", "{\n  \"a\": 1\n}"},
		{"added to an empty object", `{ }`, "a", `{"a":9 }`, `{ }`},
		{"key that needs escapes", `{}`, "a\"b", `{"a\"b":9}`, `{}`},
		{"last duplicate set, all deleted", `{"a":1,"b":2,"a":3,"c":4,"\u0061":5}`, "a", `{"a":1,"b":2,"a":3,"c":4,"\u0061":9}`, `{"b":2,"c":4}`},
		{"duplicates at the head", `{"a":1, "a":2, "b":3}`, "a", `{"a":1, "a":9, "b":3}`, `{"b":3}`},
		{"duplicates at the tail", `{"b":3, "a":1, "a":2}`, "a", `{"b":3, "a":1, "a":9}`, `{"b":3}`},
		{"nothing but duplicates", `{"a":1, "a":2}`, "a", `{"a":1, "a":9}`, `{}`},
		{"no object", `[1]`, "a", ``, ``},
		{"cut object", `{"a":1`, "a", ``, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(SetMember(nil, []byte(c.obj), c.key, []byte("9"))); got != c.set {
				t.Errorf("set %q, want %q", got, c.set)
			}
			if got := string(DeleteMember(nil, []byte(c.obj), c.key)); got != c.deleted {
				t.Errorf("deleted %q, want %q", got, c.deleted)
			}
		})
	}
}

func TestApply(t *testing.T) {
	got := Apply([]byte(">"), []byte("abcdef"), []Patch{{0, 0, []byte("0")}, {1, 3, nil}, {3, 3, []byte("x")}, {3, 4, []byte("y")}, {6, 6, []byte("z")}})
	if string(got) != ">0axyefz" {
		t.Errorf("got %q", got)
	}
	other := []byte("abc")
	for name, f := range map[string]func(){
		"overlap":       func() { Apply(nil, other, []Patch{{0, 2, nil}, {1, 3, nil}}) },
		"backwards":     func() { Apply(nil, other, []Patch{{2, 1, nil}}) },
		"beyond":        func() { Apply(nil, other, []Patch{{0, 4, nil}}) },
		"foreign slice": func() { Offset(other, []byte("bc")) },
	} {
		func() {
			defer func() {
				if r := fmt.Sprint(recover()); !strings.HasPrefix(r, "BUG:") {
					t.Errorf("%s: recovered %s", name, r)
				}
			}()
			f()
		}()
	}
}
