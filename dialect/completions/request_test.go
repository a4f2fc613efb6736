package completions

import (
	"errors"
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, body  string
		n           int
		unsplicable string
		logprobs    bool
		max         int64
	}{
		{name: "a text", body: `{"model":"m","prompt":"a","stream":true}`, n: 1},
		{name: "one text in a list", body: `{"prompt":["a"]}`, n: 1},
		{name: "several choices", body: `{"prompt":"a","n":3}`, n: 3},
		{name: "a batch has a choice for each", body: `{"prompt":["a","b"]}`, n: 2, unsplicable: "batch of prompts"},
		{name: "a batch of several choices", body: `{"n":2,"prompt":["a","b"]}`, n: 4, unsplicable: "batch of prompts"},
		{name: "tokens", body: `{"prompt":[464,3290]}`, n: 1, unsplicable: "prompt of tokens"},
		{name: "a batch of one list of tokens", body: `{"prompt":[[464,3290]]}`, n: 1, unsplicable: "prompt of tokens"},
		{name: "a batch of tokens", body: `{"prompt":[[464],[3290]]}`, n: 2, unsplicable: "batch of prompts"},
		{name: "no prompt in a list", body: `{"prompt":[]}`, n: 1, unsplicable: "prompt of tokens"},
		{name: "embeddings", body: `{"prompt_embeds":"AAAA"}`, n: 1, unsplicable: "prompt_embeds"},
		{name: "best of several", body: `{"prompt":"a","best_of":2}`, n: 1, unsplicable: "best_of"},
		{name: "best of one", body: `{"prompt":"a","best_of":1}`, n: 1},
		{name: "token ids", body: `{"prompt":"a","return_token_ids":true}`, n: 1, unsplicable: "return_token_ids"},
		{name: "a grammar", body: `{"prompt":"a","guided_regex":"x+"}`, n: 1, unsplicable: "guided_regex"},
		{name: "per-token data, none besides", body: `{"prompt":"a","logprobs":0}`, n: 1, logprobs: true},
		{name: "no per-token data", body: `{"prompt":"a","logprobs":null}`, n: 1},
		{name: "per-token data as a flag", body: `{"prompt":"a","logprobs":false}`, n: 1},
		{name: "a limit", body: `{"prompt":"abcdefgh","max_tokens":10}`, n: 1, max: 10},
		{name: "a limit behind an echo", body: `{"max_tokens":10,"echo":true,"prompt":"abcdefgh"}`, n: 1, max: 12},
		{name: "an echo without a limit", body: `{"echo":true,"prompt":"abcdefgh"}`, n: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Dialect{}.Parse([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if r.N != c.n || r.Unsplicable != c.unsplicable || r.Logprobs != c.logprobs || r.MaxTokens != c.max {
				t.Errorf("n=%d unsplicable=%q logprobs=%v max=%d", r.N, r.Unsplicable, r.Logprobs, r.MaxTokens)
			}
		})
	}
}

func TestParseReadsTheRest(t *testing.T) {
	r, err := Dialect{}.Parse([]byte(`{"model":"m","prompt":"a","stream":true,"stop":"END","stream_options":{"include_usage":true},"guided_json":{"type":"object"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.Model != "m" || !r.Stream || !r.IncludeUsage || !slices.Equal(r.Stops, []string{"END"}) || !r.Structured || string(r.Schema) != `{"type":"object"}` {
		t.Errorf("read %+v", r)
	}
}

func TestParseRefuses(t *testing.T) {
	for body, want := range map[string]error{
		`[]`:                         ErrRequest,
		`{"prompt":"a"`:              ErrRequest,
		`{"model":"m"}`:              ErrPrompt,
		`{"prompt":null}`:            ErrPrompt,
		`{"messages":[],"model":""}`: ErrPrompt,
	} {
		if _, err := (Dialect{}).Parse([]byte(body)); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", body, err, want)
		}
	}
}
