package relay_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"

	"github.com/unbroken-llm/unbroken/dialect/openaichat"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

var chat = family{
	name:     "chat",
	d:        openaichat.Dialect{},
	fallback: `{"model":"gpt-4o-mini","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"go on"}]}`,
	folders: []string{"openai-chat", "azure", "openrouter", "groq", "deepseek", "mistral", "xai", "perplexity", "ollama",
		"openai-compat-other", "gpustack-vllm"},
	half:   "data: {\"id\":\"chatcmpl-1\",\"choi",
	fault:  "data: {\"error\":{\"message\":\"The server had an error\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n",
	marker: "data: [DONE]\n\n",
	ping:   ": keep-alive\n\n",
	render: faultinject.RenderChat,
	read:   readChat,
	strays: map[string]string{
		"mistral/thinking-iter.sse":                  "content as a list of parts",
		"openai-compat-other/snowflake-thinking.sse": "finish_reason is an empty string",
		"groq/tool-use-failed-error-with-text.sse":   "the provider itself failed in the recording",
		"openrouter/stream-error.sse":                "the provider itself failed in the recording",
	},
	skip: map[string]string{
		"openai-chat/legacy-completions-text.chunks.txt": "legacy /v1/completions",
		"openai-compat-other/vllm-completions.sse":       "legacy /v1/completions",
	},
}

var chatChunks heard[sdk.ChatCompletionChunk]

// readChat is openai-go's accumulator over a stream. Hosts that change id or model
// between chunks are read all the same, since the recordings do; what Unbroken
// rewrites must not.
func readChat(stream []byte) (message, error) {
	var acc sdk.ChatCompletionAccumulator
	var order []string
	kind := func(k string) {
		if len(order) == 0 || order[len(order)-1] != k {
			order = append(order, k)
		}
	}
	id, rejected := "", 0
	err := eachOpenAI(&chatChunks, stream, func(c sdk.ChatCompletionChunk) error {
		if id == "" {
			id = c.ID
		}
		c.ID = id
		if !acc.AddChunk(c) {
			rejected++
		}
		for _, ch := range c.Choices {
			if ch.Index != 0 {
				continue
			}
			if ch.Delta.Content != "" {
				kind("text")
			}
			if ch.Delta.Refusal != "" {
				kind("refusal")
			}
			for _, tc := range ch.Delta.ToolCalls {
				if tc.Function.Name != "" {
					order = append(order, "tool_use")
				}
			}
		}
		return nil
	})
	if err != nil {
		return message{}, err
	}
	if rejected > 0 {
		return message{}, fmt.Errorf("the accumulator rejected %d chunks", rejected)
	}
	if len(acc.Choices) == 0 {
		return message{}, fmt.Errorf("no choice")
	}
	ch := acc.Choices[0]
	if ch.FinishReason == "" {
		return message{}, fmt.Errorf("no finish_reason")
	}
	if n := bytes.Count(stream, []byte("data: [DONE]")); n > 1 {
		return message{}, fmt.Errorf("%d [DONE]", n)
	}
	out := message{text: ch.Message.Content, finish: ch.FinishReason, order: strings.Join(order, ",")}
	for _, tc := range ch.Message.ToolCalls {
		args := tc.Function.Arguments
		if !jsonwalk.Valid([]byte(args)) {
			return message{}, fmt.Errorf("tool %s has cut arguments %q", tc.Function.Name, args)
		}
		out.calls = append(out.calls, tc.Function.Name+compact(args))
	}
	return out, nil
}

func TestCutEverywhereChat(t *testing.T) {
	chat.cutEverywhere(t, relaytest.Recordings(t, chat.fallback, chat.named, chat.folders...))
}
