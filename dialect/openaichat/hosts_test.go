package openaichat

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

// hosts are the rows of WIRE 1.1's table of variants: how a turn is continued there,
// and the golden cases that hold what the host does to the stream. An engine is
// named by configuration, all others by their host.
var hosts = []struct {
	name, host, engine, model string
	prefill                   bool
	flags                     dialect.Flags
	cases                     []string
}{
	{name: "OpenAI", host: "api.openai.com/v1", model: "gpt-5", cases: []string{"text-with-usage", "text-then-parallel-calls", "two-choices-interleaved", "refusal", "custom-tool", "logprobs-and-annotations", "audio-and-old-functions"}},
	{name: "Azure", host: "x.openai.azure.com/openai/deployments/x", model: "gpt-5", cases: []string{"azure-filter-results-first"}},
	{name: "OpenRouter", host: "openrouter.ai/api/v1", model: "qwen/qwen3", cases: []string{"openrouter-role-in-every-chunk", "openrouter-error-in-a-chunk", "openrouter-finish-reason-error", "openrouter-hidden-network-error"}},
	{name: "OpenRouter, a Claude that takes it", host: "openrouter.ai/api/v1", model: "anthropic/claude-sonnet-4.5", prefill: true, cases: []string{"openrouter-role-in-every-chunk"}},
	{name: "Groq", host: "api.groq.com/openai/v1", model: "openai/gpt-oss-120b", prefill: true, cases: []string{"groq-usage-in-x-groq", "groq-error-event", "groq-compound-changes-its-id"}},
	{name: "DeepSeek", host: "api.deepseek.com", model: "deepseek-chat", cases: []string{"deepseek-out-of-resource"}},
	{name: "DeepSeek beta", host: "api.deepseek.com/beta", model: "deepseek-reasoner", prefill: true, flags: dialect.Flags{Prefix: true}, cases: []string{"deepseek-out-of-resource"}},
	{name: "Mistral", host: "api.mistral.ai/v1", model: "magistral-medium-latest", prefill: true, flags: dialect.Flags{Prefix: true}, cases: []string{"mistral-thinking-parts", "mistral-model-length"}},
	{name: "xAI", host: "api.x.ai/v1", model: "grok-4", cases: []string{"xai-whole-call-and-citations"}},
	{name: "Perplexity", host: "api.perplexity.ai", model: "sonar", cases: []string{"perplexity-running-usage"}},
	{name: "Together", host: "api.together.xyz/v1", model: "meta-llama/Llama-4", cases: []string{"together-token-ids"}},
	{name: "Fireworks", host: "api.fireworks.ai/inference/v1", model: "accounts/fireworks/models/x", cases: []string{"fireworks-perf-metrics"}},
	{name: "Cerebras", host: "api.cerebras.ai/v1", model: "gpt-oss-120b", cases: []string{"cerebras-time-info"}},
	{name: "Moonshot", host: "api.moonshot.ai/v1", model: "kimi-k3", prefill: true, flags: dialect.Flags{Partial: true}, cases: []string{"moonshot-usage-in-the-choice"}},
	{name: "Z.ai", host: "api.z.ai/api/paas/v4", model: "glm-4.6", cases: []string{"zai-no-object-role-always"}},
	{name: "Hugging Face", host: "router.huggingface.co/v1", model: "zai-org/GLM-4.6", cases: []string{"huggingface-router"}},
	{name: "Alibaba", host: "dashscope-intl.aliyuncs.com/compatible-mode/v1", model: "qwen3-coder-plus", prefill: true, flags: dialect.Flags{Partial: true}, cases: []string{"alibaba-partial"}},
	{name: "Ollama cloud", host: "ollama.com/v1", model: "gpt-oss:120b", prefill: true, cases: []string{"ollama-role-in-every-delta"}},
	{name: "Ollama", engine: "ollama", prefill: true, cases: []string{"ollama-role-in-every-delta", "ollama-failure-is-an-empty-chunk"}},
	{name: "vLLM", engine: "vllm", prefill: true, flags: dialect.Flags{ContinueFinal: true, NoGenerationPrompt: true}, cases: []string{"vllm-continuous-usage", "vllm-error-object", "vllm-error-member-then-done"}},
	{name: "SGLang", engine: "sglang", prefill: true, flags: dialect.Flags{ContinueFinal: true}, cases: []string{"sglang-matched-stop"}},
	{name: "llama.cpp", engine: "llama.cpp", prefill: true, flags: dialect.Flags{NoThinking: true}, cases: []string{"llama-cpp-error-line", "llama-cpp-error-frame-and-timings", "llama-cpp-timings"}},
	{name: "LM Studio", engine: "lmstudio", cases: []string{"lmstudio-error-event"}},
	{name: "Gemini's compatible endpoint", host: "generativelanguage.googleapis.com/v1beta/openai", model: "gemini-2.5-flash", cases: []string{"calls-without-ids-or-index"}},
}

func TestEveryHostHasItsMannerAndItsStreams(t *testing.T) {
	for _, h := range hosts {
		t.Run(h.name, func(t *testing.T) {
			e := dialect.Endpoint{Dialect: Dialect{}.Name(), Host: h.host, Model: h.model}
			ability := dialect.AbilityOf(e)
			if h.engine != "" {
				rules, ok := dialect.EngineRules(h.engine)
				if !ok {
					t.Fatal("no such engine")
				}
				ability, _ = dialect.Match(rules, e)
			}
			want := []turn.Manner{turn.Asked}
			if h.prefill {
				want = []turn.Manner{turn.Prefill, turn.Asked}
			}
			if !slices.Equal(ability.Manners, want) || ability.Flags != h.flags {
				t.Errorf("continues by %v with %+v, want %v with %+v", ability.Manners, ability.Flags, want, h.flags)
			}
			for _, c := range h.cases {
				if _, err := os.Stat(filepath.Join("testdata", c, "want.txt")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// The odd ends of the table: what is an error, an end and none, told by the golden
// transcripts, so that writing those anew cannot unsay it.
func TestOddEnds(t *testing.T) {
	for _, c := range []struct {
		name, fault string // the golden fault line without its message; "": none
		finished    bool
	}{
		{"groq-error-event", `type="invalid_request_error" code="tool_use_failed" status=400`, false},
		{"openrouter-error-in-a-chunk", `type="" code="400" status=400`, true}, // it had finished before
		{"openrouter-finish-reason-error", `type="" code="502" status=502`, false},
		{"openrouter-hidden-network-error", "", false},
		{"deepseek-out-of-resource", "", false},
		{"ollama-failure-is-an-empty-chunk", "", false},
		{"vllm-error-object", `type="InternalServerError" code="500" status=500`, false},
		{"vllm-error-member-then-done", `type="InternalServerError" code="500" status=500`, false},
		{"llama-cpp-error-line", `type="server_error" code="500" status=500`, false},
		{"llama-cpp-error-frame-and-timings", `type="server_error" code="500" status=500`, false},
		{"lmstudio-error-event", `type="" code="" status=0`, false},
		{"perplexity-running-usage", "", true}, // no marker
		{"mistral-model-length", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", c.name, "want.txt"))
			if err != nil {
				t.Fatal(err)
			}
			fault, finished := "", false
			for _, line := range strings.Split(string(b), "\n") {
				if rest, ok := strings.CutPrefix(line, "fault "); ok {
					fault, _, _ = strings.Cut(rest, " message=")
				}
				finished = finished || line == "finished"
			}
			if fault != c.fault || finished != c.finished {
				t.Errorf("fault %q, finished %v; want %q, %v", fault, finished, c.fault, c.finished)
			}
		})
	}
}
