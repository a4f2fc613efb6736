package completions

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// saying is a message that said body, an escaped text.
func saying(body string) *turn.Snapshot {
	return &turn.Snapshot{Head: []byte(`{"id":"cmpl-A1"}`), Blocks: []turn.Block{{Kind: turn.Prose, Text: []byte(body)}}}
}

func TestContinueAppendsToThePrompt(t *testing.T) {
	for _, c := range []struct {
		name, request, said, want string
		left                      int64
		model                     string
	}{
		{
			name:    "a text, white space and all",
			request: `{"prompt":"Once upon","stream":true}`, said: " a time \\n",
			want: `{"prompt":"Once upon a time \n","stream":true,"stream_options":{"include_usage":true}}`,
		},
		{
			name:    "blank text is text",
			request: `{"prompt":"Once upon","stream":true}`, said: "\\n\\n",
			want: `{"prompt":"Once upon\n\n","stream":true,"stream_options":{"include_usage":true}}`,
		},
		{
			name:    "escapes on both sides",
			request: `{"prompt":"say \"é\u00e9\\\"","stream":true}`, said: `\ud83d\ude00 \"x\"`,
			want: `{"prompt":"say \"éé\\\"😀 \"x\"","stream":true,"stream_options":{"include_usage":true}}`,
		},
		{
			name:    "the only text of a list stays in it",
			request: `{"stream":true,"prompt":["Once upon"],"n":1}`, said: " a",
			want: `{"stream":true,"prompt":["Once upon a"],"n":1,"stream_options":{"include_usage":true}}`,
		},
		{
			name:    "an empty prompt",
			request: `{"prompt":"","stream":true}`, said: "Hi",
			want: `{"prompt":"Hi","stream":true,"stream_options":{"include_usage":true}}`,
		},
		{
			name:    "suffix, seed, stops and what nobody knows stay; the limit is what is left",
			request: `{"model":"m","prompt":"a","suffix":"z","seed":1,"stop":["\n"],"later":{"x":1},"max_tokens":100,"stream":true,"stream_options":{"continuous_usage_stats":true}}`, said: "b",
			left: 90, model: "other",
			want: `{"model":"other","prompt":"ab","suffix":"z","seed":1,"stop":["\n"],"later":{"x":1},"max_tokens":90,"stream":true,"stream_options":{"continuous_usage_stats":true,"include_usage":true}}`,
		},
		{
			name:    "an echoed prompt is not asked for again",
			request: `{"prompt":"Once \u0075pon","echo":true,"stream":true}`, said: "Once upon a",
			want: `{"prompt":"Once upon a","echo":false,"stream":true,"stream_options":{"include_usage":true}}`,
		},
		{
			name:    "cut right behind the echo",
			request: `{"prompt":"Once upon","echo":true,"stream":true}`, said: "Once upon",
			want: `{"prompt":"Once upon","echo":false,"stream":true,"stream_options":{"include_usage":true}}`,
		},
		{
			name:    "a grammar would start over",
			request: `{"prompt":"a","guided_json":{"type":"object"},"response_format":{"type":"json_object"},"stream":true}`, said: `{\"x\":`,
			want: `{"prompt":"a{\"x\":","stream":true,"stream_options":{"include_usage":true}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := dialecttest.Parse(t, Dialect{}, []byte(c.request))
			got, err := Dialect{}.Continue(r, saying(c.said), dialect.Continuation{Manner: turn.Prefill, MaxTokens: c.left, Model: c.model})
			if err != nil {
				t.Fatal(err)
			}
			if !jsonwalk.Valid(got) || !same(t, got, []byte(c.want)) {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

// same compares two documents as encoding/json reads them.
func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	var texts [2]string
	for i, doc := range [][]byte{a, b} {
		var v any
		if err := json.Unmarshal(doc, &v); err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(out)
	}
	return texts[0] == texts[1]
}

func TestContinueRefuses(t *testing.T) {
	for _, c := range []struct {
		name, request string
		said          *turn.Snapshot
		manner        turn.Manner
		want          error
	}{
		{"to ask in words", `{"prompt":"a"}`, saying("b"), turn.Asked, ErrManner},
		{"when nothing was said", `{"prompt":"a"}`, saying(""), turn.Prefill, ErrNothingSaid},
		{"a prompt of tokens", `{"prompt":[1,2]}`, saying("b"), turn.Prefill, ErrUnsplicable},
		{"a batch", `{"prompt":["a","b"]}`, saying("b"), turn.Prefill, ErrUnsplicable},
		{"inside of the echo", `{"prompt":"Once upon","echo":true}`, saying("Once"), turn.Prefill, ErrEcho},
		{"an echo in other words", `{"prompt":"Once upon","echo":true}`, saying("<s>Once upon a"), turn.Prefill, ErrEcho},
		{"another choice", `{"prompt":"a"}`, &turn.Snapshot{Blocks: []turn.Block{{Kind: turn.Prose, Choice: 1, Text: []byte("b")}}}, turn.Prefill, ErrUnsplicable},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := dialecttest.Parse(t, Dialect{}, []byte(c.request))
			if _, err := (Dialect{}).Continue(r, c.said, dialect.Continuation{Manner: c.manner}); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// Whatever was asked and said, the next prompt is both, one behind the other.
func FuzzContinue(f *testing.F) {
	f.Add("Once upon", ` a \"time\"\n`)
	f.Add("\x00\xff", `\ud83d\ude00`)
	f.Add("", ` `)
	f.Fuzz(func(t *testing.T, prompt, said string) {
		body, err := json.Marshal(map[string]any{"prompt": prompt, "stream": true})
		if err != nil || !jsonwalk.Valid([]byte(`"`+said+`"`)) || said == "" {
			return
		}
		r := dialecttest.Parse(t, Dialect{}, body)
		got, err := Dialect{}.Continue(r, saying(said), dialect.Continuation{Manner: turn.Prefill})
		if err != nil {
			t.Fatal(err)
		}
		var was, next, more struct{ Prompt string }
		for doc, v := range map[string]any{string(body): &was, string(got): &next, `{"prompt":"` + said + `"}`: &more} {
			if err := json.Unmarshal([]byte(doc), v); err != nil {
				t.Fatalf("%v: %s", err, doc)
			}
		}
		if next.Prompt != was.Prompt+more.Prompt {
			t.Errorf("%q and %q became %q", was.Prompt, more.Prompt, next.Prompt)
		}
	})
}
