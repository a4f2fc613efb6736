package openaichat

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/turn"
)

// spoken is a turn of text that broke.
func spoken(body string) *turn.Snapshot {
	return &turn.Snapshot{
		Head:   []byte(`{"id":"chatcmpl-A1","object":"chat.completion.chunk","created":17,"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant"}}]}`),
		Blocks: []turn.Block{{Kind: turn.Prose, Text: []byte(body)}},
	}
}

func mustContinue(t *testing.T, body string, said *turn.Snapshot, c dialect.Continuation) string {
	t.Helper()
	r := dialecttest.Parse(t, Dialect{}, []byte(body))
	out, err := Dialect{}.Continue(r, said, c)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out) {
		t.Fatalf("not json: %s", out)
	}
	if string(r.Body) != body {
		t.Fatal("the original body was changed")
	}
	return string(out)
}

func TestContinueByPrefill(t *testing.T) {
	prefill := dialect.Continuation{Manner: turn.Prefill}
	with := func(edit func(*dialect.Continuation)) dialect.Continuation { c := prefill; edit(&c); return c }
	for _, c := range []struct {
		name, body string
		said       *turn.Snapshot
		c          dialect.Continuation
		want       string
	}{
		{"the partial turn is appended, the rest stays by the byte",
			`{ "model":"m", "x_unknown" : [1, 2],"messages":[ {"role":"user","content":"H\u0069"} ],"stream":true,"stream_options":{"include_usage":true}}`,
			spoken(`Once \"upon\"\n`), prefill,
			`{ "model":"m", "x_unknown" : [1, 2],"messages":[ {"role":"user","content":"H\u0069"},{"role":"assistant","content":"Once \"upon\""} ],"stream":true,"stream_options":{"include_usage":true}}`},
		{"usage and streaming are asked for",
			`{"messages":[{"role":"user","content":"x"}],"stream_options":{"include_obfuscation":false},"n":1}`, spoken("a"), prefill,
			`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"a"}],"stream_options":{"include_obfuscation":false,"include_usage":true},"n":1,"stream":true}`},
		{"what is left of the limit, in the caller's spelling",
			`{"messages":[],"stream":true,"stream_options":null,"max_completion_tokens":100,"max_tokens":null}`, spoken("a"), with(func(c *dialect.Continuation) { c.MaxTokens = 40 }),
			`{"messages":[{"role":"assistant","content":"a"}],"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":40,"max_tokens":null}`},
		{"a stored completion's continuation is not stored: half a turn belongs in nobody's history",
			`{"messages":[],"store":true,"stream":true,"stream_options":{"include_usage":true}}`, spoken("a"), prefill,
			`{"messages":[{"role":"assistant","content":"a"}],"store":false,"stream":true,"stream_options":{"include_usage":true}}`},
		{"another model, several choices become one",
			`{"messages":[],"stream":true,"stream_options":{"include_usage":false},"model":"m","n":2}`, spoken("a"), with(func(c *dialect.Continuation) { c.Model = `o"x` }),
			`{"messages":[{"role":"assistant","content":"a"}],"stream":true,"stream_options":{"include_usage":true},"model":"o\"x","n":1}`},
		{"the schema goes, a forced tool stays",
			`{"response_format":{"type":"json_object"},"messages":[],"stream":true,"stream_options":{"include_usage":true},"tool_choice":"required","tools":[{"type":"function"}]}`, spoken(`{\"a\":`), prefill,
			`{"messages":[{"role":"assistant","content":"{\"a\":"}],"stream":true,"stream_options":{"include_usage":true},"tool_choice":"required","tools":[{"type":"function"}]}`},
		{"the caller's own prefill is extended",
			`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"Sure: ","name":"n"}],"stream":true,"stream_options":{"include_usage":true}}`, spoken(`one`), prefill,
			`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"Sure: one","name":"n"}],"stream":true,"stream_options":{"include_usage":true}}`},
		{"DeepSeek: prefix, and its finished reasoning",
			`{"messages":[],"stream":true,"stream_options":{"include_usage":true}}`,
			&turn.Snapshot{Blocks: []turn.Block{{Kind: turn.Reasoning, Name: "reasoning_content", Text: []byte(`h\n`), Closed: true}, {Kind: turn.Prose, Text: []byte("a")}}},
			with(func(c *dialect.Continuation) { c.Flags.Prefix = true }),
			`{"messages":[{"role":"assistant","content":"a","reasoning_content":"h\n","prefix":true}],"stream":true,"stream_options":{"include_usage":true}}`},
		{"Mistral: prefix, its thinking parts stay out",
			`{"messages":[],"stream":true,"stream_options":{"include_usage":true}}`,
			&turn.Snapshot{Blocks: []turn.Block{{Kind: turn.Reasoning, Name: "thinking", Text: []byte(`h`), Closed: true}, {Kind: turn.Prose, Text: []byte("a")}}},
			with(func(c *dialect.Continuation) { c.Flags.Prefix = true }),
			`{"messages":[{"role":"assistant","content":"a","prefix":true}],"stream":true,"stream_options":{"include_usage":true}}`},
		{"Moonshot: partial",
			`{"messages":[],"stream":true,"stream_options":{"include_usage":true}}`, spoken("a"), with(func(c *dialect.Continuation) { c.Flags.Partial = true }),
			`{"messages":[{"role":"assistant","content":"a","partial":true}],"stream":true,"stream_options":{"include_usage":true}}`},
		{"vLLM: both flags",
			`{"messages":[],"stream":true,"stream_options":{"include_usage":true},"add_generation_prompt":true}`, spoken("a"), with(func(c *dialect.Continuation) { c.Flags.ContinueFinal, c.Flags.NoGenerationPrompt = true, true }),
			`{"messages":[{"role":"assistant","content":"a"}],"stream":true,"stream_options":{"include_usage":true},"add_generation_prompt":false,"continue_final_message":true}`},
		{"llama.cpp: no thinking, other template arguments stay",
			`{"messages":[],"stream":true,"stream_options":{"include_usage":true},"chat_template_kwargs":{"x":1}}`, spoken("a"), with(func(c *dialect.Continuation) { c.Flags.NoThinking = true }),
			`{"messages":[{"role":"assistant","content":"a"}],"stream":true,"stream_options":{"include_usage":true},"chat_template_kwargs":{"x":1,"enable_thinking":false}}`},
		{"unfinished calls and withdrawn blocks stay out, text on both sides is one",
			`{"messages":[],"stream":true,"stream_options":{"include_usage":true}}`,
			&turn.Snapshot{Blocks: []turn.Block{{Kind: turn.Prose, Text: []byte("a")}, {Kind: turn.Prose, Text: []byte("X"), Withdrawn: true}, {Kind: turn.Call, Name: "f", Text: []byte(`{`)}, {Kind: turn.Prose, Text: []byte("b")}}}, prefill,
			`{"messages":[{"role":"assistant","content":"ab"}],"stream":true,"stream_options":{"include_usage":true}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := mustContinue(t, c.body, c.said, c.c); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestContinueByAsking(t *testing.T) {
	const before = `{"model":"m","messages":[{"role":"system","content":"Be \u0062rief."},{"role":"user","content":"Hi"}`
	body := before + `],"stream":true,"continue_final_message":true,"add_generation_prompt":false}`
	c := dialect.Continuation{Manner: turn.Asked, Flags: dialect.Flags{Prefix: true, ContinueFinal: true}, Anchor: 12, Sentinel: "UB_DONE"}
	got := mustContinue(t, body, spoken(`The quick\nbrown\u00e9 fox  `), c)
	if !strings.HasPrefix(got, before+`,{"role":"assistant","content":"The quick\nbrowné fox"},{"role":"user","content":"`) {
		t.Errorf("the prompt's prefix changed: %s", got)
	}
	var req struct {
		Messages []struct{ Role, Content string }
		Final    *bool `json:"continue_final_message"`
		Add      *bool `json:"add_generation_prompt"`
	}
	if err := json.Unmarshal([]byte(got), &req); err != nil {
		t.Fatal(err)
	}
	if len(req.Messages) != 4 || req.Final != nil || req.Add != nil {
		t.Fatalf("%+v", req)
	}
	ask := req.Messages[3].Content
	for _, want := range []string{"UB_DONE", "no preamble"} {
		if !strings.Contains(ask, want) {
			t.Errorf("%q is not in %q", want, ask)
		}
	}
	if !strings.Contains(ask, "→\nbrowné fox←") {
		t.Errorf("the anchor is not verbatim: %q", ask)
	}
	if strings.Contains(got, `"prefix"`) {
		t.Error("a prefill flag in an asked continuation")
	}
}

func TestAskedContinuationOfTheCallersPrefill(t *testing.T) {
	got := mustContinue(t, `{"messages":[{"role":"user","content":"x"},{"prefix":true,"role":"assistant","content":"Sure: "}],"stream":true}`, spoken("one"), dialect.Continuation{Manner: turn.Asked})
	if !strings.Contains(got, `{"role":"assistant","content":"Sure: one"},{"role":"user"`) {
		t.Errorf("got %s", got)
	}
}

func TestContinueRefuses(t *testing.T) {
	prefill := dialect.Continuation{Manner: turn.Prefill}
	for _, c := range []struct {
		name string
		said *turn.Snapshot
		c    dialect.Continuation
		want error
	}{
		{"resume", spoken("a"), dialect.Continuation{Manner: turn.Provider}, ErrManner},
		{"no manner", spoken("a"), dialect.Continuation{}, ErrManner},
		{"nothing said", &turn.Snapshot{}, prefill, ErrNothingSaid},
		{"blanks only", spoken(`\n \t`), prefill, ErrNothingSaid},
		{"a complete call", &turn.Snapshot{Blocks: []turn.Block{{Kind: turn.Prose, Text: []byte("a")}, {Kind: turn.Call, Name: "f", Closed: true}}}, prefill, ErrUnsplicable},
		{"a refusal", &turn.Snapshot{Blocks: []turn.Block{{Kind: turn.Refusal, Text: []byte("no")}}}, prefill, ErrUnsplicable},
		{"an unknown block", &turn.Snapshot{Blocks: []turn.Block{{Kind: turn.Prose, Text: []byte("a")}, {Kind: turn.Unknown}}}, prefill, ErrUnsplicable},
		{"a second choice", &turn.Snapshot{Blocks: []turn.Block{{Kind: turn.Prose, Text: []byte("a"), Choice: 1}}}, prefill, ErrUnsplicable},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := (Dialect{}).Continue(request(t), c.said, c.c); err != c.want {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// A prompt of megabytes is copied once, not once per member.
func BenchmarkContinue(b *testing.B) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("word ", 200_000) + `"}],"stream":true,"max_tokens":9,"n":1}`)
	r := dialecttest.Parse(b, Dialect{}, body)
	said := spoken(strings.Repeat("text ", 100))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if out, err := (Dialect{}).Continue(r, said, dialect.Continuation{Manner: turn.Asked, Anchor: 40, MaxTokens: 5}); err != nil || !bytes.Contains(out, []byte("text")) {
			b.Fatal(err)
		}
	}
}
