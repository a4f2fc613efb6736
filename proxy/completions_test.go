package proxy

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// tc is a chunk of the legacy completions.
func tc(id, text, more string) string {
	return `data: {"id":"` + id + `","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":` + quote(text) + `,"logprobs":null` + more + `}]}` + "\n\n"
}

// The official client streams a legacy completion that breaks twice: once before the
// first word is whole, and once in the middle. The prompts that the provider gets
// are the client's own and what was said, to the byte.
func TestOfficialClientReadsABrokenCompletionWhole(t *testing.T) {
	const prompt, first, second, third = "Q: why \"é\"?\nA:", " Because of\n\n", "  the accent ", "and 🦊."
	p := newProvider(t,
		func(a *asked) { a.stream(); a.chunks(tc("cmpl-1", first, ""), `data: {"id":"cm`); a.rst() },
		func(a *asked) { a.stream(); a.chunks(tc("cmpl-2", second, "")); a.end() },
		func(a *asked) {
			a.stream()
			a.chunks(tc("cmpl-3", third, `,"finish_reason":"stop"`),
				`data: {"id":"cmpl-3","object":"text_completion","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`+"\n\n", done)
			a.end()
		})
	s := start(t, p)
	client := openai.NewClient(option.WithAPIKey("sk-x"), option.WithBaseURL("http://"+s.addr+"/v1"), option.WithMaxRetries(0))
	stream := client.Completions.NewStreaming(context.Background(), openai.CompletionNewParams{
		Model: "m", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String(prompt)},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	text, finish, counts := "", "", 0
	for stream.Next() {
		c := stream.Current()
		if c.ID != "cmpl-1" {
			t.Errorf("a chunk of another message: %s", c.RawJSON())
		}
		for _, ch := range c.Choices {
			text += ch.Text
			finish += string(ch.FinishReason)
		}
		if c.Usage.TotalTokens > 0 {
			counts++
		}
	}
	if err := stream.Err(); err != nil || text != first+second+third || finish != "stop" || counts != 1 {
		t.Errorf("the client reads %q, %q, %d usage records, %v", text, finish, counts, err)
	}
	if p.hits() != 3 {
		t.Fatalf("%d requests", p.hits())
	}
	for i, want := range []string{prompt, prompt + first, prompt + first + second} {
		var q struct{ Prompt string }
		if err := json.Unmarshal(p.seen[i].body, &q); err != nil || q.Prompt != want {
			t.Errorf("prompt %d is %q, want %q (%v)", i, q.Prompt, want, err)
		}
	}
}

// What cannot be appended to fails with its name, once something is visible.
func TestCompletionOfTokensIsRefusedByName(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.stream(); a.chunks(tc("cmpl-1", "some words", "")); a.rst() })
	s := start(t, p)
	got, err := allOf(dial(t, s.addr).post("/v1/completions", `{"model":"m","prompt":[464,3290],"stream":true}`).response())
	if err == nil || p.hits() != 1 || !strings.Contains(got, "unsplicable:prompt of tokens") || strings.Contains(got, "[DONE]") {
		t.Errorf("%d requests, %v: %s", p.hits(), err, got)
	}
}
