package dialect

import (
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/turn"
)

// unfinished is an ability of a host that gives no finish_reason.
func unfinished(a Ability) Ability { a.NoFinish = true; return a }

func TestAbilityOfEveryRowOfTheTable(t *testing.T) {
	prefill := Ability{Manners: []turn.Manner{turn.Prefill, turn.Asked}}
	asked := Ability{Manners: []turn.Manner{turn.Asked}}
	with := func(a Ability, f Flags) Ability { a.Flags = f; return a }
	pings := func(a Ability) Ability { a.Pings = true; return a }
	echoes := func(a Ability) Ability { a.Echoes = true; return a }
	for _, c := range []struct {
		name, dialect, host, model string
		want                       Ability
	}{
		{"claude 2", "messages", "api.anthropic.com", "claude-2.1", prefill},
		{"claude 3", "messages", "api.anthropic.com", "claude-3-opus-20240229", prefill},
		{"claude 3.7", "messages", "api.anthropic.com", "claude-3-7-sonnet-latest", prefill},
		{"opus 4, dated", "messages", "api.anthropic.com", "claude-opus-4-20250514", prefill},
		{"opus 4.0", "messages", "api.anthropic.com", "claude-opus-4-0", prefill},
		{"opus 4.1", "messages", "api.anthropic.com", "claude-opus-4-1-20250805", prefill},
		{"opus 4.5", "messages", "api.anthropic.com", "claude-opus-4-5-20251101", prefill},
		{"sonnet 4.0", "messages", "api.anthropic.com", "claude-sonnet-4-0", prefill},
		{"sonnet 4.5", "messages", "api.anthropic.com", "claude-sonnet-4-5-20250929", prefill},
		{"haiku 4.5", "messages", "api.anthropic.com", "claude-haiku-4-5", prefill},
		{"opus 4.6", "messages", "api.anthropic.com", "claude-opus-4-6", asked},
		{"sonnet 4.6", "messages", "api.anthropic.com", "claude-sonnet-4-6", asked},
		{"opus 4.7", "messages", "api.anthropic.com", "claude-opus-4-7-20260401", asked},
		{"a two-digit minor is not a 4.1", "messages", "api.anthropic.com", "claude-opus-4-10", asked},
		{"opus 5", "messages", "api.anthropic.com", "claude-opus-5", asked},
		{"opus 5.5", "messages", "api.anthropic.com", "claude-opus-5-5", asked},
		{"a claude of a later year", "messages", "api.anthropic.com", "claude-mythos-9", asked},
		{"bedrock sonnet 4.5", "messages", "bedrock-runtime.us-east-1.amazonaws.com", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", prefill},
		{"bedrock opus 4", "messages", "bedrock-runtime.us-east-1.amazonaws.com", "anthropic.claude-opus-4-20250514-v1:0", prefill},
		{"bedrock sonnet 4.6", "messages", "bedrock-runtime.us-east-1.amazonaws.com", "us.anthropic.claude-sonnet-4-6", asked},
		{"vertex sonnet 4", "messages", "us-east5-aiplatform.googleapis.com", "claude-sonnet-4@20250514", prefill},
		{"vertex opus 4.1", "messages", "us-east5-aiplatform.googleapis.com", "claude-opus-4-1@20250805", prefill},
		{"vertex sonnet 4.6", "messages", "us-east5-aiplatform.googleapis.com", "claude-sonnet-4-6@20260101", asked},
		{"openrouter claude 4.5", "chat", "openrouter.ai/api/v1", "anthropic/claude-4.5-haiku-20251001", pings(prefill)},
		{"openrouter sonnet 4.5", "chat", "openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5", pings(prefill)},
		{"openrouter claude 4.6", "chat", "openrouter.ai/api/v1", "anthropic/claude-sonnet-4.6", pings(asked)},
		{"openrouter others", "chat", "openrouter.ai/api/v1", "qwen/qwen3-235b", pings(asked)},
		{"snowflake claude 4", "chat", "org.snowflakecomputing.com", "claude-4-sonnet", unfinished(prefill)},
		{"snowflake claude 4.6", "chat", "org.snowflakecomputing.com", "claude-sonnet-4-6", unfinished(asked)},
		{"deepseek beta", "chat", "api.deepseek.com/beta", "deepseek-chat", with(prefill, Flags{Prefix: true})},
		{"deepseek without beta", "chat", "api.deepseek.com", "deepseek-chat", asked},
		{"mistral", "chat", "api.mistral.ai", "magistral-medium-latest", echoes(with(prefill, Flags{Prefix: true}))},
		{"moonshot", "chat", "api.moonshot.ai/v1", "kimi-k3", with(prefill, Flags{Partial: true})},
		{"groq", "chat", "api.groq.com/openai/v1", "openai/gpt-oss-120b", prefill},
		{"ollama cloud", "chat", "ollama.com", "gpt-oss:120b", echoes(prefill)},
		{"gemini 2", "gemini", "generativelanguage.googleapis.com", "gemini-2.5-flash", prefill},
		{"gemini 3", "gemini", "generativelanguage.googleapis.com", "gemini-3-pro-preview", prefill},
		{"gemini 3.1", "gemini", "generativelanguage.googleapis.com", "gemini-3.1-pro", prefill},
		{"gemini pro latest", "gemini", "generativelanguage.googleapis.com", "gemini-pro-latest", prefill},
		{"gemini 3.5 flash lite", "gemini", "generativelanguage.googleapis.com", "gemini-3.5-flash-lite", asked},
		{"gemini 3.5 flash", "gemini", "generativelanguage.googleapis.com", "gemini-3.5-flash", asked},
		{"gemini 3.6", "gemini", "generativelanguage.googleapis.com", "gemini-3.6-flash", asked},
		{"gemini 3.8", "gemini", "generativelanguage.googleapis.com/v1beta", "gemini-3.8-flash", asked},
		{"gemini 4", "gemini", "generativelanguage.googleapis.com", "gemini-4-pro", asked},
		{"vertex gemini 2.0", "gemini", "us-central1-aiplatform.googleapis.com/v1", "gemini-2.0-flash-exp", prefill},
		{"vertex gemini 3.1, global", "gemini", "aiplatform.googleapis.com", "gemini-3.1-pro-preview", prefill},
		{"vertex gemini by its full name", "gemini", "aiplatform.googleapis.com", "publishers/google/models/gemini-3-flash-preview", prefill},
		{"a gemini behind a host that is not known", "gemini", "llm.example.net", "gemini-2.5-pro", asked},
		{"openai", "chat", "api.openai.com", "gpt-5", asked},
		{"azure", "chat", "res.openai.azure.com", "gpt-5", asked},
		{"xai", "chat", "api.x.ai", "grok-4", asked},
		{"together", "chat", "api.together.xyz", "meta-llama/Llama-4", asked},
		{"fireworks", "chat", "api.fireworks.ai/inference/v1", "accounts/fireworks/models/x", asked},
		{"cerebras", "chat", "api.cerebras.ai", "gpt-oss-120b", asked},
		{"perplexity", "chat", "api.perplexity.ai", "sonar", asked},
		{"loopback", "chat", "127.0.0.1:8000", "qwen3", asked},
		{"loopback, version 6", "chat", "[::1]:8000", "qwen3", asked},
		{"an unknown host", "chat", "llm.example.net", "some-model", asked},
		{"nothing known at all", "chat", "", "", asked},
		{"port, case and scheme do not matter", "chat", "HTTPS://API.Groq.com:443/openai/v1/", "X", prefill},
		{"azure foundry", "chat", "res.services.ai.azure.com/openai/v1", "gpt-5", asked},
		{"z.ai", "chat", "api.z.ai/api/paas/v4", "glm-4.6", asked},
		{"hugging face router", "chat", "router.huggingface.co/v1", "zai-org/GLM-4.6:novita", asked},
		{"alibaba, a model that never thinks", "chat", "dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen3-coder-plus", with(prefill, Flags{Partial: true})},
		{"alibaba, a model that may think", "chat", "dashscope.aliyuncs.com/compatible-mode/v1", "qwen-plus", asked},
		{"moonshot in china", "chat", "api.moonshot.cn/v1", "kimi-k2", with(prefill, Flags{Partial: true})},
		{"codestral", "chat", "codestral.mistral.ai/v1", "codestral-latest", echoes(with(prefill, Flags{Prefix: true}))},
		{"openai responses", "responses", "api.openai.com/v1", "gpt-5", asked},
		{"azure responses", "responses", "res.openai.azure.com/openai/v1", "gpt-5", asked},
		{"groq responses: no prefill where chat has one", "responses", "api.groq.com/openai/v1", "openai/gpt-oss-120b", asked},
		{"openrouter responses: no prefill even for claude", "responses", "openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5", pings(asked)},
		{"xai responses", "responses", "api.x.ai/v1", "grok-4", asked},
		{"deepseek responses", "responses", "api.deepseek.com/beta", "deepseek-chat", asked},
		{"fireworks responses", "responses", "api.fireworks.ai/inference/v1", "accounts/fireworks/models/x", asked},
		{"perplexity responses", "responses", "api.perplexity.ai", "sonar-pro", asked},
		{"ollama responses", "responses", "ollama.com", "gpt-oss:120b", asked},
		{"a claude in responses anywhere", "responses", "llm.example.net", "claude-3-opus", asked},
		{"openrouter messages", "messages", "openrouter.ai/api", "anthropic/claude-sonnet-4.5", pings(prefill)},
		{"snowflake messages give a stop_reason", "messages", "org.snowflakecomputing.com", "claude-4-sonnet", prefill},
		{"deepseek messages take no flag", "messages", "api.deepseek.com/anthropic", "deepseek-chat", asked},
		{"moonshot messages take no flag", "messages", "api.moonshot.ai/anthropic", "kimi-k3", asked},
		{"gemini's chat endpoint says nothing of prefill", "chat", "generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash", asked},
		{"gemini interactions say nothing of prefill", "interactions", "generativelanguage.googleapis.com", "gemini-2.5-flash", asked},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := AbilityOf(Endpoint{Dialect: c.dialect, Host: c.host, Model: c.model}); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s at %q, %q: %+v, want %+v", c.dialect, c.host, c.model, got, c.want)
			}
		})
	}
}

func TestMatchTakesTheFirstRule(t *testing.T) {
	own := []AbilityRule{{Hosts: []string{"gpu.example.net"}, Ability: Ability{Manners: []turn.Manner{turn.Prefill}, Flags: Flags{ContinueFinal: true}}}}
	rules := append(own, AbilityRule{Ability: Ability{Manners: []turn.Manner{turn.Asked}}})
	if a, ok := Match(rules, Endpoint{Host: "gpu.example.net:8000", Model: "claude-opus-4-6"}); !ok || !a.Flags.ContinueFinal {
		t.Errorf("own rule first: %+v %v", a, ok)
	}
	if a, ok := Match(rules, Endpoint{Host: "other.example.net", Model: "x"}); !ok || a.Flags.ContinueFinal {
		t.Errorf("then the others: %+v %v", a, ok)
	}
	if _, ok := Match(own, Endpoint{Host: "other.example.net", Model: "x"}); ok {
		t.Error("no rule fits, yet one was found")
	}
}

func TestEveryEngineInEveryDialect(t *testing.T) {
	prefill, asked := Ability{Manners: prefillThenAsk}, Ability{Manners: askOnly}
	with := func(a Ability, f Flags) Ability { a.Flags = f; return a }
	echoes := func(a Ability) Ability { a.Echoes = true; return a }
	want := map[string]map[string]Ability{
		"vllm":      {"chat": with(prefill, Flags{ContinueFinal: true, NoGenerationPrompt: true}), "responses": prefill, "messages": asked, "completions": asked},
		"sglang":    {"chat": with(prefill, Flags{ContinueFinal: true}), "responses": asked, "messages": asked, "completions": asked},
		"llama.cpp": {"chat": with(prefill, Flags{NoThinking: true}), "responses": asked, "messages": asked, "completions": asked},
		"ollama":    {"chat": echoes(prefill), "responses": asked, "messages": asked, "completions": echoes(asked)},
		"lmstudio":  {"chat": asked, "responses": asked, "messages": asked, "completions": asked},
		"prefill":   {"chat": prefill, "messages": prefill, "gemini": prefill, "responses": asked, "interactions": asked},
		"chat":      {"chat": asked, "responses": asked, "messages": asked, "completions": asked},
	}
	for _, name := range Engines() {
		rules, ok := EngineRules(name)
		if !ok || want[name] == nil {
			t.Fatalf("engine %s: known %v, expected %v", name, ok, want[name] != nil)
		}
		for speaks, ability := range want[name] {
			// Whatever the model is called: a local model can bear any name.
			got, ok := Match(rules, Endpoint{Dialect: speaks, Host: "127.0.0.1:8000", Model: "claude-3-opus"})
			if !ok || !reflect.DeepEqual(got, ability) {
				t.Errorf("%s in %s: %+v %v, want %+v", name, speaks, got, ok, ability)
			}
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("engines that are not there: %v", want)
	}
	if _, ok := EngineRules("unheard-of"); ok {
		t.Error("an unknown engine has rules")
	}
}

func TestPatternsAreWellFormed(t *testing.T) {
	for i, r := range abilities {
		for _, p := range append(append([]string{}, r.Hosts...), r.Models...) {
			if _, err := path.Match(p, ""); err != nil {
				t.Errorf("row %d, %q: %v", i, p, err)
			}
		}
	}
}

// A row that no endpoint reaches first says nothing: each must be the first that fits
// for its own patterns.
func TestNoRowIsInTheShadowOfAnother(t *testing.T) {
	sample := func(patterns []string, fallback string) []string {
		if len(patterns) == 0 {
			return []string{fallback}
		}
		var out []string
		for _, p := range patterns {
			out = append(out, strings.NewReplacer("*", "x", `[\-@]`, "-", `[\-.]`, "-", `[\-@:]`, "-", "[015]", "1", "[05]", "5").Replace(p))
		}
		return out
	}
	for i := range abilities {
		r, reached := abilities[i], false
		spoken := r.Dialects
		if len(spoken) == 0 {
			spoken = []string{"chat", "messages", "responses", "gemini", ""}
		}
		for _, d := range spoken {
			for _, host := range sample(r.Hosts, "llm.example.net") {
				for _, model := range sample(r.Models, "some-model") {
					e := Endpoint{Dialect: d, Host: host, Model: model}
					before, _ := Match(abilities[:i], e)
					_, own := Match(abilities[i:i+1], e)
					reached = reached || own && before.Manners == nil
				}
			}
		}
		if !reached {
			t.Errorf("row %d is never the first: %+v", i, r)
		}
	}
}
