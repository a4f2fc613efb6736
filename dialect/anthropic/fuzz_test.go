package anthropic_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// FuzzStream feeds any bytes as two attempts. Whatever a provider sends: nothing panics, a sound stream is rendered as
// sound events, and an ending makes no complete call of an unfinished one.
func FuzzStream(f *testing.F) {
	for _, pattern := range []string{"*", "broken/*"} {
		files, err := filepath.Glob(filepath.Join("testdata", pattern, "stream.sse"))
		if err != nil || len(files) == 0 {
			f.Fatal("no seeds")
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b, len(b)/2)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		at = max(0, min(at, len(b)))
		likewise(t, b)
		s, sound := new(turn.Snapshot), true
		play(b[:at], func(e sse.Event, ds []turn.Delta) {
			sound = sound && json.Valid(e.Data)
			for _, x := range ds {
				if s.Fold(x) != nil {
					return
				}
			}
		})
		s.Truncate(len(s.Blocks))
		base, out := len(s.Blocks), []byte(nil)
		play(b, func(e sse.Event, ds []turn.Delta) {
			sound = sound && json.Valid(e.Data)
			for i := range ds {
				if ds[i].Block += base; ds[i].Kind == turn.Open {
					ds[i].Index = ds[i].Block
				}
			}
			out = d.Rewrite(out, nil, e, ds, s)
			for _, x := range ds {
				if s.Fold(x) != nil {
					return
				}
			}
		})
		s.Truncate(base)
		for n := range s.Blocks {
			out = d.Emit(out, nil, s, n)
			out = d.CloseBlock(out, s, n)
			out = d.DropReasoning(out, s, n)
		}
		ending := d.Finish(nil, nil, s, dialect.Ending{Why: turn.Stopped})
		out = d.Fail(append(out, ending...), s, dialect.Failure{})
		for _, e := range dialecttest.Units(out) {
			if sound && e.Data != nil && !json.Valid(e.Data) {
				t.Fatalf("rendered %q", e.Raw)
			}
		}
		for i := range s.Blocks {
			if b := &s.Blocks[i]; b.IsCall() && !b.Closed && !b.Complete() && bytes.Contains(ending, stream(stop(b.Index))) && alone(s, i) {
				t.Fatalf("call %d was closed: %s", i, ending)
			}
		}
	})
}

// likewise checks that an event which is compared with the one before it says what it says when
// it is read: a ping between two makes the decoder forget the first.
func likewise(t *testing.T, b []byte) {
	t.Helper()
	fast, slow := d.NewDecoder(nil), d.NewDecoder(nil)
	for _, e := range dialecttest.Units(b) {
		got, err := fast.Decode(nil, e)
		if _, err := slow.Decode(nil, sse.Event{Data: []byte(`{"type":"ping"}`)}); err != nil {
			t.Fatal(err)
		}
		if want, werr := slow.Decode(nil, e); err != werr || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is %v, %v where every event is read, %v, %v where it is compared", e.Data, want, werr, got, err)
		}
	}
}

func play(b []byte, each func(sse.Event, []turn.Delta)) {
	dec := d.NewDecoder(nil)
	for _, e := range dialecttest.Units(b) {
		if ds, err := dec.Decode(nil, e); err == nil {
			each(e, ds)
		}
	}
}

// alone reports whether no other block has block i's index.
func alone(s *turn.Snapshot, i int) bool {
	for j := range s.Blocks {
		if j != i && s.Blocks[j].Index == s.Blocks[i].Index {
			return false
		}
	}
	return true
}

// FuzzContinue continues any text in any request.
func FuzzContinue(f *testing.F) {
	f.Add("The end \u00a0\n", plainRequest, true, int64(5))
	f.Add("\"quoted\" \\ 🙂", thinkRequest, false, int64(1500))
	f.Add("x", `{"model":"m","messages":[{"role":"assistant","content":[]}]}`, true, int64(0))
	f.Fuzz(func(t *testing.T, text, request string, ask bool, limit int64) {
		req, err := d.Parse([]byte(request))
		if err != nil || !utf8.ValidString(request) || !json.Valid([]byte(request)) {
			return
		}
		c := dialect.Continuation{Manner: turn.Prefill, MaxTokens: max(0, limit)}
		if ask {
			c.Manner, c.Anchor, c.Sentinel = turn.Asked, 40, "DONE"
		}
		body, err := d.Continue(req, said(t, beginText(0), says(0, text)), c)
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%s", body)
		}
	})
}

// FuzzRepair: a sound request stays sound, holds no marked thinking afterwards and is otherwise left alone.
func FuzzRepair(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"thinking","signature":"ub1.drop"},{"type":"text"}]}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"thinking","signature":"ub1.drop"}]},{"role":"user"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		out := d.Repair(body)
		if !json.Valid(body) {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%s became %s", body, out)
		}
		if again := d.Repair(out); !bytes.Equal(again, out) {
			t.Fatalf("%s is repaired again to %s", out, again)
		}
	})
}
