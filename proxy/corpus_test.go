package proxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
)

// recordings are the streams of a dialect in the shared corpus, by name.
func recordings(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	root := os.Getenv("UNBROKEN_CORPUS")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "corpus")
	}
	found := map[string]string{}
	for _, dir := range dirs {
		names, _ := filepath.Glob(filepath.Join(root, dir, "*.sse"))
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			found[dir+"/"+strings.TrimSuffix(filepath.Base(name), ".sse")] = string(b)
		}
	}
	if len(found) == 0 {
		t.Skip("no recordings: set UNBROKEN_CORPUS to the corpus directory")
	}
	return found
}

// altered are the recordings that must not pass as they are, and why.
var altered = map[string]string{
	"anthropic/sdkpy-incomplete_partial_json_response":                              "its last event lacks the blank line (A5)",
	"gpustack-vllm/streaming_responses_gpustack_qwen3_supports_streaming_responses": "it has no [DONE] (A2)",
	"groq/tool-use-failed-error-with-text":                                          "an error inside the stream, retried",
	"openrouter/stream-error":                                                       "an error behind the finish",
}

// What real providers said comes out as it went in, whatever the reads deliver.
func TestRecordingsPassByteIdentical(t *testing.T) {
	for _, d := range []struct {
		path, ask string
		dirs      []string
	}{
		{"/v1/messages", messagesAsk, []string{"anthropic"}},
		{"/v1/chat/completions", chatAsk, []string{"openai-chat", "azure", "deepseek", "gpustack-vllm", "groq", "mistral", "ollama", "openai-compat-other", "openrouter"}},
	} {
		for name, stream := range recordings(t, d.dirs...) {
			if altered[name] != "" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				p := newProvider(t, func(a *asked) {
					a.stream()
					for rest := stream; rest != ""; {
						n := min(len(rest), 1+len(rest)%997)
						a.chunk(rest[:n])
						rest = rest[n:]
					}
					a.end()
				})
				s := start(t, p, func(c *Config) {
					for i := range c.Upstreams {
						// As the table has it for the host that was recorded.
						c.Upstreams[i].Abilities = []dialect.AbilityRule{{Ability: dialect.Ability{NoFinish: strings.Contains(name, "snowflake")}}}
					}
				})
				got, err := allOf(dial(t, s.addr).post(d.path, d.ask).response())
				if got != stream || err != nil || p.hits() != 1 {
					i := 0
					for i < min(len(got), len(stream)) && got[i] == stream[i] {
						i++
					}
					t.Errorf("%v; %d requests; %d bytes of %d, first difference at %d: got %.120q want %.120q", err, p.hits(), len(got), len(stream), i, got[i:], stream[i:])
				}
			})
		}
	}
}
