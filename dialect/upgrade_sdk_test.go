package dialect_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/unbroken-llm/unbroken/dialect/anthropic"
	"github.com/unbroken-llm/unbroken/dialect/bedrock"
	"github.com/unbroken-llm/unbroken/dialect/gemini"
	"github.com/unbroken-llm/unbroken/dialect/openaichat"
	"github.com/unbroken-llm/unbroken/dialect/openairesponses"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

func typeOf(payload []byte) string {
	name, _ := jsonwalk.String(jsonwalk.Get(payload, "type"))
	return string(name)
}

// ends reports whether a recording is one whole stream: neither an error nor half of one.
func ends(r relaytest.Recording, marks ...string) bool {
	all := r.Stream()
	for _, m := range marks {
		if bytes.Count(all, []byte(m)) != 1 {
			return false
		}
	}
	return !bytes.Contains(all, []byte("event: error"))
}

// The official SDK reads out of the folded answer of a recording what it accumulates of
// the stream.
func TestSDKReadsTheFoldAsItReadsTheStream(t *testing.T) {
	chat, messages := 0, 0
	for _, r := range relaytest.Recordings(t, `{}`, nil, "azure", "deepseek", "gpustack-vllm", "groq", "ollama", "openai-chat", "openrouter", "perplexity", "xai") {
		if strings.Contains(r.Name, "legacy") || strings.Contains(r.Name, "error") {
			continue
		}
		res := &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(r.Stream()))}
		s := ssestream.NewStream[openai.ChatCompletionChunk](ssestream.NewDecoder(res), nil)
		acc, ok := new(openai.ChatCompletionAccumulator), true
		for s.Next() {
			ok = ok && acc.AddChunk(s.Current())
		}
		if !ok || s.Err() != nil || len(acc.Choices) == 0 {
			continue // the SDK cannot accumulate it
		}
		var got openai.ChatCompletion
		if err := json.Unmarshal(folded(t, openaichat.Dialect{}, r.Stream()), &got); err != nil {
			t.Fatal(err)
		}
		chat++
		if got.ID != acc.ID || got.Model != acc.Model || acc.Usage.TotalTokens != 0 && bytes.Count(r.Stream(), []byte(`"total_tokens"`)) == 1 && got.Usage.TotalTokens != acc.Usage.TotalTokens || len(got.Choices) != len(acc.Choices) {
			t.Errorf("%s: %s %s %d, want %s %s %d", r.Name, got.ID, got.Model, got.Usage.TotalTokens, acc.ID, acc.Model, acc.Usage.TotalTokens)
			continue
		}
		for i := range acc.Choices {
			a, b := got.Choices[i], acc.Choices[i]
			if a.FinishReason != b.FinishReason || a.Message.Content != b.Message.Content || len(a.Message.ToolCalls) != len(b.Message.ToolCalls) {
				t.Errorf("%s: %s %q %d, want %s %q %d", r.Name, a.FinishReason, a.Message.Content, len(a.Message.ToolCalls), b.FinishReason, b.Message.Content, len(b.Message.ToolCalls))
				continue
			}
			for n := range b.Message.ToolCalls {
				x, y := a.Message.ToolCalls[n], b.Message.ToolCalls[n]
				if x.ID != y.ID || x.Function.Name != y.Function.Name || x.Function.Arguments != y.Function.Arguments {
					t.Errorf("%s: call %s, want %s", r.Name, x.RawJSON(), y.RawJSON())
				}
			}
		}
	}
	for _, r := range relaytest.Recordings(t, `{}`, typeOf, "anthropic") {
		if !ends(r, `"type":"message_start"`, `"type":"message_stop"`) && !ends(r, `"type": "message_start"`, `"type": "message_stop"`) {
			continue
		}
		var acc, got sdk.Message
		broken := false
		for _, u := range r.Units {
			_, data, ok := bytes.Cut(u, []byte("data: "))
			var e sdk.MessageStreamEventUnion
			if !ok || json.Unmarshal(bytes.TrimSpace(data), &e) != nil || e.Type == "ping" {
				continue
			}
			broken = broken || acc.Accumulate(e) != nil
		}
		if broken {
			continue
		}
		if err := json.Unmarshal(folded(t, anthropic.Dialect{}, r.Stream()), &got); err != nil {
			t.Fatal(err)
		}
		messages++
		if got.ID != acc.ID || got.StopReason != acc.StopReason || got.Usage.OutputTokens != acc.Usage.OutputTokens || len(got.Content) != len(acc.Content) {
			t.Errorf("%s: %s %s %d %d", r.Name, got.ID, got.StopReason, got.Usage.OutputTokens, len(got.Content))
			continue
		}
		for i := range acc.Content {
			a, b := got.Content[i], acc.Content[i]
			var x, y any
			_ = json.Unmarshal(a.Input, &x)
			_ = json.Unmarshal(b.Input, &y)
			if a.Type != b.Type || a.Text != b.Text || a.Thinking != b.Thinking || a.Signature != b.Signature || a.Data != b.Data || a.Name != b.Name || len(a.Citations) != len(b.Citations) ||
				json.Valid(b.Input) && !reflect.DeepEqual(x, y) {
				t.Errorf("%s: block %d is %s, want %s", r.Name, i, a.RawJSON(), b.RawJSON())
			}
		}
	}
	t.Logf("%d chat, %d messages", chat, messages)
	if chat < 15 || messages < 20 {
		t.Error("that is not the corpus")
	}
}

// wellFormed reports whether every payload is JSON: some hand-made ones are not.
func wellFormed(r relaytest.Recording) bool {
	for _, u := range r.Units {
		if _, data, ok := bytes.Cut(u, []byte("data: ")); ok && !jsonwalk.Valid(data) {
			return false
		}
	}
	return true
}

// Recordings of the dialects whose SDKs accumulate nothing fold to valid answers that
// say every word once.
func TestRecordingsFold(t *testing.T) {
	n := 0
	for _, r := range relaytest.Recordings(t, `{}`, nil, "gemini") {
		if bytes.Contains(r.Stream(), []byte(`"error"`)) {
			continue
		}
		n++
		folded(t, gemini.Dialect{}, r.Stream())
	}
	for _, r := range relaytest.Recordings(t, `{}`, typeOf, "openai-responses") {
		if bytes.Count(r.Stream(), []byte(`"type":"response.completed"`)) == 1 && wellFormed(r) {
			n++
			if typ := string(jsonwalk.Get(folded(t, openairesponses.Dialect{}, r.Stream()), "object")); typ != `"response"` {
				t.Errorf("%s: %s", r.Name, typ)
			}
		}
	}
	for _, r := range relaytest.Recordings(t, `{}`, nil, "bedrock") {
		n++
		if strings.Contains(r.Name, "invoke") {
			folded(t, bedrock.Invoke{}, r.Stream())
			continue
		}
		whole := folded(t, bedrock.Converse{}, r.Stream())
		for _, path := range [][]string{{"output", "message", "content", "0"}, {"stopReason"}, {"usage", "outputTokens"}, {"metrics", "latencyMs"}} {
			if jsonwalk.Get(whole, path...) == nil {
				t.Errorf("%s has no %v: %s", r.Name, path, whole)
			}
		}
	}
	t.Logf("%d recordings", n)
}
