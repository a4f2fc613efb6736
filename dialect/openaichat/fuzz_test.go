package openaichat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
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

// Whatever a provider sends, decoding does not panic, deltas fold in order, and
// the text of a delta is text of its event.
func FuzzDecode(f *testing.F) {
	seeds(f)
	r := request(f)
	f.Fuzz(func(t *testing.T, stream []byte) {
		dec, s := Dialect{}.NewDecoder(r), new(turn.Snapshot)
		var slow Decoder
		for _, e := range dialecttest.Units(stream) {
			ds, err := dec.Decode(nil, e)
			slow.like.Forget()
			if want, werr := slow.Decode(nil, e); !reflect.DeepEqual(ds, want) || err != werr {
				t.Fatalf("%q is %v, %v where every event is read, %v, %v where it is compared", e.Data, want, werr, ds, err)
			}
			if err != nil {
				if len(ds) != 0 {
					t.Fatalf("deltas beside an error: %v", ds)
				}
				continue
			}
			for _, d := range ds {
				// More of a call that was over is a fold error: what the client has is then no
				// longer known.
				if err := s.Fold(d); err != nil && (err != turn.ErrClosedBlock || !s.Blocks[d.Block].IsCall()) {
					t.Fatalf("%s after\n%s: %v", dialecttest.FormatDelta(d), dialecttest.Format(s), err)
				}
			}
		}
		if s.Terminated && s.Head == nil && s.Finished() {
			t.Error("finished without a head")
		}
	})
}

// Rewriting an event with any of its deltas taken out gives nothing or whole
// events that decode.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte(`{"id":"B","choices":[{"index":0,"delta":{"role":"assistant","content":"x","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`), uint16(0b101))
	f.Add([]byte(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},{"type":"text","text":"b"}],"reasoning_details":[{"signature":"s"}]}}]}`), uint16(0))
	r := request(f)
	f.Fuzz(func(t *testing.T, data []byte, out uint16) {
		if !json.Valid(data) {
			return
		}
		e := dialecttest.Units(append(append([]byte("data: "), data...), "\n\n"...))
		if len(e) != 1 {
			return
		}
		ds, err := Dialect{}.NewDecoder(r).Decode(nil, e[0])
		if err != nil {
			return
		}
		for i := range ds {
			if out>>(i%16)&1 != 0 {
				ds[i].Kind = turn.Skip
			}
		}
		said := &turn.Snapshot{Head: []byte(`{"id":"A"}`)}
		for _, u := range dialecttest.Units(Dialect{}.Rewrite(nil, r, e[0], ds, said)) {
			if !json.Valid(u.Data) {
				t.Fatalf("not json: %s", u.Raw)
			}
			if _, err := (Dialect{}).NewDecoder(r).Decode(nil, u); err != nil {
				t.Fatalf("%v: %s", err, u.Raw)
			}
		}
	})
}
