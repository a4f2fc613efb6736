package jsonwalk

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// documents seeds every fuzz target and the tables that compare with encoding/json.
var documents = []string{
	``, ` `, `{}`, ` { } `, `[]`, `[ ]`, `null`, `true`, `false`, `tru`, `nulll`, `0`, `-0`, `01`, `-`, `1.`, `.5`, `1.5e+3`, `1e`, `1e+`, `12 `,
	`12 3`, `1x`, `-1E-7`, `[1,2,]`, `[,1]`, `[1 2]`, `{"a":1,}`, `{"a"}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":[{"b":{}}]}`, `[}`, `{]`, `[[`, `"`,
	`"a`, `"a"`, `"\""`, `"\\"`, `"\\\""`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\ud83d\ud83d\ude00"`,
	"\"a\nb\"", "\"\x00\"", "\"\x7f\"", "\"\xff\xfe\"", "\"\xe2\x80\"", "\"\u2028\u2029\u0085\"", "\ufeff{}", `{"a":1}x`, `{"a":1} `, `[1]]`,
	`{"a":1,"a":2,"\u0061":3}`, `{"k":"v","n":{"k":[1,{"x":null}]},"t":true}`, `{"":""}`, `{"a\"b":"<>&"}`, `"\/\b\f\n\r\t"`, "{\r\n\t\"a\" : [ ] }", "{\"\x80\":[]}",
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hé \ud83d\ude00"}}`,
}

func seed(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d))
	}
	f.Add([]byte(strings.Repeat("[", 300) + strings.Repeat("]", 300)))
}

func FuzzValidAgreesWithEncodingJSON(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		want := json.Valid(b)
		if got := Valid(b); got != want {
			t.Fatalf("Valid(%q) = %v, encoding/json says %v", b, got, want)
		}
		object := want && b[space(b, 0)] == '{'
		w, lax := Checked(b), Members(b)
		for {
			k, v, ok := w.Next()
			if !ok {
				break
			}
			if lk, lv, _ := lax.Next(); !bytes.Equal(k, lk) || !bytes.Equal(v, lv) {
				t.Fatalf("Checked(%q) has %q: %q where Members has %q: %q", b, k, v, lk, lv)
			}
		}
		if got := w.Err() == nil; got != object {
			t.Fatalf("Checked(%q): %v, encoding/json says %v", b, w.Err(), object)
		}
	})
}

// The oracle of a prefix: json.Decoder knows whether a document is whole (a token stream without error), unfinished
// (io.ErrUnexpectedEOF) or hopeless (a syntax error), and where it ends.
func FuzzPrefixAgreesWithEncodingJSON(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) { checkPrefix(t, b) })
}

func checkPrefix(t *testing.T, b []byte) {
	t.Helper()
	var whole Prefix
	used, st := whole.Push(b)

	var single Prefix
	singleUsed := 0
	for i := range b {
		n, s := single.Push(b[i : i+1])
		singleUsed += n
		if s != Incomplete {
			break
		}
	}
	if single.State() != st || singleUsed != used {
		t.Fatalf("%q: pushed whole: %v after %d; byte by byte: %v after %d", b, st, used, single.State(), singleUsed)
	}

	var doc json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(b))
	err := dec.Decode(&doc)
	if sound := whole.End() == Complete && space(b, used) == len(b); sound != Valid(b) {
		t.Fatalf("%q: Prefix says %v after %d, Valid says %v", b, whole.State(), used, Valid(b))
	}
	switch ended := whole.End(); {
	case ended == Complete:
		if !json.Valid(b[:used]) {
			t.Fatalf("%q: complete after %d, but encoding/json refuses that document", b, used)
		}
	case ended == Incomplete:
		if err == nil || !strings.Contains(err.Error(), "EOF") {
			t.Fatalf("%q: incomplete, but encoding/json says %v", b, err)
		}
	case err == nil && whole.Top() != KindNumber, err != nil && strings.Contains(err.Error(), "EOF"):
		// A Decoder would read 1 from "1x"; Valid, compared elsewhere, does not.
		t.Fatalf("%q: invalid, but encoding/json reads %q (%v)", b, doc, err)
	}

	quoted := Escape(nil, b)
	if utf8.Valid(b) {
		var body Prefix
		n, s := body.PushBody(quoted)
		if s != st || DecodedLen(quoted[:n]) != used {
			t.Fatalf("%q: as a body: %v after %d decoded bytes; plain: %v after %d", b, s, DecodedLen(quoted[:n]), st, used)
		}
	}
}

func FuzzWalkAgreesWithEncodingJSON(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, b []byte) { checkWalk(t, b) })
}

func checkWalk(t *testing.T, b []byte) {
	t.Helper()
	w := Members(b)
	members := map[string]string{}
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if at := Offset(b, key); b[at-1] != '"' || b[at+len(key)] != '"' {
			t.Fatalf("%q: key %q is not where Offset says", b, key)
		}
		if at := Offset(b, val); !bytes.Equal(b[at:at+len(val)], val) {
			t.Fatalf("%q: value %q is not where Offset says", b, val)
		}
		members[string(Unescape(nil, key))] = string(val)
	}
	var elements []string
	e := Elements(b)
	for val, ok := e.Next(); ok; val, ok = e.Next() {
		elements = append(elements, string(val))
	}
	if !json.Valid(b) {
		return // Only termination and bounds are promised, and both have just been exercised.
	}
	switch KindOf(b) {
	case KindObject:
		var want map[string]json.RawMessage
		if err := json.Unmarshal(b, &want); err != nil || w.Err() != nil || len(want) != len(members) {
			t.Fatalf("%q: members %v (err %v), want %v (err %v)", b, members, w.Err(), want, err)
		}
		for k, v := range want {
			if members[k] != string(v) || string(Get(b, k)) != string(v) {
				t.Fatalf("%q: member %q = %q, Get %q, want %q", b, k, members[k], Get(b, k), v)
			}
			checkEdit(t, b, k, len(want))
		}
		checkEdit(t, b, "absent", len(want))
	case KindArray:
		var want []json.RawMessage
		if err := json.Unmarshal(b, &want); err != nil || e.Err() != nil {
			t.Fatalf("%q: elements: %v, encoding/json: %v", b, e.Err(), err)
		}
		if !slices.EqualFunc(want, elements, func(r json.RawMessage, s string) bool { return string(r) == s }) {
			t.Fatalf("%q: elements %q, want %q", b, elements, want)
		}
	case KindString:
		var want string
		body, ok := String(bytes.TrimSpace(b))
		if err := json.Unmarshal(b, &want); err != nil || !ok || string(Unescape(nil, body)) != want {
			t.Fatalf("%q: text %q, want %q (%v)", b, Unescape(nil, body), want, err)
		}
		checkBody(t, body, want)
	case KindNumber:
		var want int64
		got, ok := Int(bytes.TrimSpace(b))
		if err := json.Unmarshal(b, &want); (err == nil) != ok || got != want && ok {
			t.Fatalf("%q: Int %d %v, encoding/json %d %v", b, got, ok, want, err)
		}
	}
}

func checkEdit(t *testing.T, obj []byte, key string, members int) {
	t.Helper()
	_, had := func() (v json.RawMessage, ok bool) {
		var m map[string]json.RawMessage
		_ = json.Unmarshal(obj, &m)
		v, ok = m[key]
		return v, ok
	}()
	set := SetMember(nil, obj, key, []byte(`[7]`))
	if string(Get(set, key)) != `[7]` || !json.Valid(set) {
		t.Fatalf("SetMember(%q, %q) = %q", obj, key, set)
	}
	cut := DeleteMember(nil, obj, key)
	var left map[string]json.RawMessage
	if err := json.Unmarshal(cut, &left); err != nil || Get(cut, key) != nil {
		t.Fatalf("DeleteMember(%q, %q) = %q: %v", obj, key, cut, err)
	}
	if had {
		members--
	} else if !bytes.Equal(cut, obj) {
		t.Fatalf("DeleteMember(%q, %q) changed the object: %q", obj, key, cut)
	}
	if len(left) != members {
		t.Fatalf("DeleteMember(%q, %q) = %q lost other members", obj, key, cut)
	}
}

func checkBody(t *testing.T, body []byte, text string) {
	t.Helper()
	if DecodedLen(body) != len(text) {
		t.Fatalf("DecodedLen(%q) = %d, want %d", body, DecodedLen(body), len(text))
	}
	for n := 0; n <= len(text)+1; n++ {
		up := min(n, len(text)) // round up to the next code point, as the documentation says
		for up < len(text) && !utf8.RuneStart(text[up]) {
			up++
		}
		rest := CutBody(body, n)
		if got := string(Unescape(nil, rest)); got != text[up:] {
			t.Fatalf("CutBody(%q, %d) leaves %q, want %q", body, n, got, text[up:])
		}
		Offset(body, rest)
	}
}

func FuzzEscapeRoundTrip(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, plain []byte) {
		body := Escape(nil, plain)
		if bytes.ContainsAny(body, "\u2028\u2029\u0085") || !json.Valid([]byte(`"`+string(body)+`"`)) {
			t.Fatalf("Escape(%q) = %q", plain, body)
		}
		want := string([]rune(string(plain))) // each invalid byte becomes one U+FFFD
		if got := string(Unescape(nil, body)); got != want {
			t.Fatalf("Unescape(Escape(%q)) = %q, want %q", plain, got, want)
		}
		checkBody(t, body, want)
	})
}
