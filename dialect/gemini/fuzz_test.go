package gemini

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

func seeds(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*", "stream.sse"))
	if err != nil || len(files) == 0 {
		f.Fatal("no golden streams", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

// Whatever a provider sends, decoding does not panic, deltas fold in order, and an
// error comes without deltas.
func FuzzDecode(f *testing.F) {
	seeds(f)
	r := request(f)
	f.Fuzz(func(t *testing.T, stream []byte) {
		dec, s := Dialect{}.NewDecoder(r), new(turn.Snapshot)
		for _, e := range dialecttest.Units(stream) {
			ds, err := dec.Decode(nil, e)
			if err != nil {
				if len(ds) != 0 {
					t.Fatalf("deltas beside an error: %v", ds)
				}
				continue
			}
			for _, d := range ds {
				if err := s.Fold(d); err != nil {
					t.Fatalf("%s after\n%s: %v", dialecttest.FormatDelta(d), dialecttest.Format(s), err)
				}
			}
		}
		if s.Terminated {
			t.Error("a terminal in a dialect without one")
		}
	})
}

// Rewriting an event with any of its deltas taken out gives nothing or one event
// that is sound and decodes.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"a","thought":true,"thoughtSignature":"cw=="},{"text":"b","thoughtSignature":"cw=="},{"functionCall":{"name":"f","args":{}}},{"text":""}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1},"responseId":"B"}`), uint16(0b1011))
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}},{"functionCall":{"partialArgs":[{"jsonPath":"$.a","numberValue":1}]}}]},"groundingMetadata":{"a":1},"continuationToken":"dA=="}]}`), uint16(0))
	r := request(f)
	f.Fuzz(func(t *testing.T, body []byte, out uint16) {
		if !json.Valid(body) || bytes.ContainsAny(body, "\r\n") {
			return
		}
		e := dialecttest.Units(sse.Append(nil, "", body))
		if len(e) != 1 {
			return
		}
		ds, err := Dialect{}.NewDecoder(r).Decode(nil, e[0])
		if err != nil {
			return
		}
		for i := range ds {
			if ds[i].Kind != turn.Pulse && out>>(i%16)&1 != 0 {
				ds[i].Kind = turn.Skip
			}
		}
		said := &turn.Snapshot{Head: []byte("{\"responseId\":\"A\"}\r")}
		units := dialecttest.Units(Dialect{}.Rewrite(nil, r, e[0], ds, said))
		if len(units) > 1 {
			t.Fatalf("%d events of one", len(units))
		}
		for _, u := range units {
			if !json.Valid(u.Data) || !bytes.HasSuffix(u.Raw, []byte("\r\n\r\n")) {
				t.Fatalf("not sound: %s", u.Raw)
			}
			if _, err := (Dialect{}).NewDecoder(r).Decode(nil, u); err != nil {
				t.Fatalf("%v: %s", err, u.Raw)
			}
		}
	})
}

// What a client of the array form reads is what the provider of the array form
// sent, element by element, however the bytes are split.
func FuzzArray(f *testing.F) {
	f.Add([]byte("[{\n  \"a\": \"]\\\"}\"\r\n}\n,\r\n{\"b\": [1, {}]}\n]\n"), uint8(3))
	f.Add([]byte(`{"error":{"code":400}}`), uint8(1))
	f.Fuzz(func(t *testing.T, body []byte, size uint8) {
		var want []json.RawMessage
		if json.Unmarshal(body, &want) != nil {
			if !json.Valid(body) || body[0] != '{' {
				return
			}
			want = []json.RawMessage{body}
		}
		for _, w := range want {
			if len(w) == 0 || w[0] != '{' {
				return // elements are chunks
			}
		}
		var u Unwrap
		var w Wrap
		var got []byte
		for n := int(size) + 1; len(body) > 0; {
			k := min(n, len(body))
			got = w.Append(got, u.Append(nil, body[:k]))
			body = body[k:]
		}
		got = w.Close(got)
		var again []json.RawMessage
		if err := json.Unmarshal(got, &again); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		if len(again) != len(want) {
			t.Fatalf("%d elements of %d: %s", len(again), len(want), got)
		}
		for i := range want {
			if !bytes.Equal(compact(want[i]), compact(again[i])) {
				t.Errorf("element %d: %s, want %s", i, again[i], want[i])
			}
		}
	})
}

func compact(raw []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return raw
	}
	return b.Bytes()
}
