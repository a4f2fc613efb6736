package openairesponses_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// FuzzStream feeds any bytes as two attempts. Whatever a provider sends: nothing panics, a sound stream is rendered as
// sound events, and an ending makes no item of an unfinished call.
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
		again := s.Clone()
		out = d.Replay(out, nil, again)
		s.Truncate(min(base, len(s.Blocks)))
		for n := range s.Blocks {
			out = d.Emit(out, nil, s, n)
			out = d.CloseBlock(out, s, n)
			out = d.DropReasoning(out, s, n)
		}
		unfinished := map[int]bool{}
		for i := range s.Blocks {
			k := &s.Blocks[i]
			unfinished[k.Index] = k.IsCall() && !k.Closed && !k.Complete()
		}
		ending := d.Finish(nil, nil, s, dialect.Ending{Why: turn.Stopped})
		for _, e := range dialecttest.Units(ending) {
			var x event
			if json.Unmarshal(e.Data, &x) == nil && x.Type == "response.output_item.done" && unfinished[x.Output] {
				t.Fatalf("an unfinished call was ended: %s", ending)
			}
		}
		out = d.Fail(append(out, ending...), s, dialect.Failure{})
		for _, e := range dialecttest.Units(out) {
			if sound && e.Data != nil && string(e.Data) != "[DONE]" && !json.Valid(e.Data) {
				t.Fatalf("rendered %q", e.Raw)
			}
		}
	})
}

func play(b []byte, each func(sse.Event, []turn.Delta)) {
	dec := d.NewDecoder(nil)
	for _, e := range dialecttest.Units(b) {
		if ds, err := dec.Decode(nil, e); err == nil {
			each(e, ds)
		}
	}
}

// FuzzContinue continues any text in any request.
func FuzzContinue(f *testing.F) {
	f.Add("The end \u00a0\n", hello, true, int64(5))
	f.Add("\"quoted\" \\ 🙂", `{"input":[{"role":"assistant","status":"in_progress","content":"x"}],"text":{"format":{"type":"json_object"}}}`, false, int64(1500))
	f.Add("x", `{"input":[]}`, true, int64(0))
	f.Fuzz(func(t *testing.T, text, request string, ask bool, limit int64) {
		req, err := d.Parse([]byte(request))
		if err != nil || !utf8.ValidString(request) || !utf8.ValidString(text) {
			return
		}
		c := dialect.Continuation{Manner: turn.Prefill, MaxTokens: max(0, limit)}
		if ask {
			c.Manner, c.Anchor, c.Sentinel = turn.Asked, 40, "DONE"
		}
		body, err := d.Continue(req, fold(t, string(begin("resp_A").message(0, "m", text).out)), c)
		if err == nil && !json.Valid(body) {
			t.Fatalf("%s", body)
		}
	})
}

// FuzzRepair: a sound request stays sound, holds no marked reasoning afterwards and is otherwise left alone.
func FuzzRepair(f *testing.F) {
	f.Add([]byte(`{"input":[{"type":"reasoning","encrypted_content":"ub1.drop"},{"type":"message"}]}`))
	f.Add([]byte(`{"input":[{"role":"user"},{"type":"reasoning","encrypted_content":"ub1.drop"}]}`))
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
