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
