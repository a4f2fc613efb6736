package dialect

import (
	"path"
	"reflect"
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
		name, host, model string
		want              Ability
	}{
		{"claude 2", "api.anthropic.com", "claude-2.1", prefill},
		{"claude 3", "api.anthropic.com", "claude-3-opus-20240229", prefill},
		{"claude 3.7", "api.anthropic.com", "claude-3-7-sonnet-latest", prefill},
		{"opus 4, dated", "api.anthropic.com", "claude-opus-4-20250514", prefill},
		{"opus 4.0", "api.anthropic.com", "claude-opus-4-0", prefill},
		{"opus 4.1", "api.anthropic.com", "claude-opus-4-1-20250805", prefill},
		{"opus 4.5", "api.anthropic.com", "claude-opus-4-5-20251101", prefill},
		{"sonnet 4.0", "api.anthropic.com", "claude-sonnet-4-0", prefill},
		{"sonnet 4.5", "api.anthropic.com", "claude-sonnet-4-5-20250929", prefill},
		{"haiku 4.5", "api.anthropic.com", "claude-haiku-4-5", prefill},
		{"opus 4.6", "api.anthropic.com", "claude-opus-4-6", asked},
		{"sonnet 4.6", "api.anthropic.com", "claude-sonnet-4-6", asked},
		{"opus 4.7", "api.anthropic.com", "claude-opus-4-7-20260401", asked},
		{"a two-digit minor is not a 4.1", "api.anthropic.com", "claude-opus-4-10", asked},
		{"opus 5", "api.anthropic.com", "claude-opus-5", asked},
		{"opus 5.5", "api.anthropic.com", "claude-opus-5-5", asked},
		{"a claude of a later year", "api.anthropic.com", "claude-mythos-9", asked},
		{"bedrock sonnet 4.5", "bedrock-runtime.us-east-1.amazonaws.com", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", prefill},
		{"bedrock opus 4", "bedrock-runtime.us-east-1.amazonaws.com", "anthropic.claude-opus-4-20250514-v1:0", prefill},
		{"bedrock sonnet 4.6", "bedrock-runtime.us-east-1.amazonaws.com", "us.anthropic.claude-sonnet-4-6", asked},
		{"vertex sonnet 4", "us-east5-aiplatform.googleapis.com", "claude-sonnet-4@20250514", prefill},
		{"vertex opus 4.1", "us-east5-aiplatform.googleapis.com", "claude-opus-4-1@20250805", prefill},
		{"vertex sonnet 4.6", "us-east5-aiplatform.googleapis.com", "claude-sonnet-4-6@20260101", asked},
		{"openrouter claude 4.5", "openrouter.ai/api/v1", "anthropic/claude-4.5-haiku-20251001", pings(prefill)},
		{"openrouter sonnet 4.5", "openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5", pings(prefill)},
		{"openrouter claude 4.6", "openrouter.ai/api/v1", "anthropic/claude-sonnet-4.6", pings(asked)},
		{"openrouter others", "openrouter.ai/api/v1", "qwen/qwen3-235b", pings(asked)},
		{"snowflake claude 4", "org.snowflakecomputing.com", "claude-4-sonnet", unfinished(prefill)},
		{"snowflake claude 4.6", "org.snowflakecomputing.com", "claude-sonnet-4-6", unfinished(asked)},
		{"deepseek beta", "api.deepseek.com/beta", "deepseek-chat", with(prefill, Flags{Prefix: true})},
		{"deepseek without beta", "api.deepseek.com", "deepseek-chat", asked},
		{"mistral", "api.mistral.ai", "magistral-medium-latest", echoes(with(prefill, Flags{Prefix: true}))},
		{"moonshot", "api.moonshot.ai/v1", "kimi-k3", with(prefill, Flags{Partial: true})},
		{"groq", "api.groq.com/openai/v1", "openai/gpt-oss-120b", prefill},
		{"ollama cloud", "ollama.com", "gpt-oss:120b", echoes(prefill)},
		{"gemini 2", "generativelanguage.googleapis.com", "gemini-2.5-flash", prefill},
		{"gemini 3", "generativelanguage.googleapis.com", "gemini-3-pro-preview", prefill},
		{"gemini 3.1", "generativelanguage.googleapis.com", "gemini-3.1-pro", prefill},
		{"gemini pro latest", "generativelanguage.googleapis.com", "gemini-pro-latest", prefill},
		{"gemini 3.5 flash lite", "generativelanguage.googleapis.com", "gemini-3.5-flash-lite", asked},
		{"gemini 3.5 flash", "generativelanguage.googleapis.com", "gemini-3.5-flash", asked},
		{"gemini 3.6", "generativelanguage.googleapis.com", "gemini-3.6-flash", asked},
		{"gemini 3.8", "generativelanguage.googleapis.com/v1beta", "gemini-3.8-flash", asked},
		{"gemini 4", "generativelanguage.googleapis.com", "gemini-4-pro", asked},
		{"vertex gemini 2.0", "us-central1-aiplatform.googleapis.com/v1", "gemini-2.0-flash-exp", prefill},
		{"vertex gemini 3.1, global", "aiplatform.googleapis.com", "gemini-3.1-pro-preview", prefill},
		{"vertex gemini by its full name", "aiplatform.googleapis.com", "publishers/google/models/gemini-3-flash-preview", prefill},
		{"a gemini behind a host that is not known", "llm.example.net", "gemini-2.5-pro", asked},
		{"openai", "api.openai.com", "gpt-5", asked},
		{"azure", "res.openai.azure.com", "gpt-5", asked},
		{"xai", "api.x.ai", "grok-4", asked},
		{"together", "api.together.xyz", "meta-llama/Llama-4", asked},
		{"fireworks", "api.fireworks.ai/inference/v1", "accounts/fireworks/models/x", asked},
		{"cerebras", "api.cerebras.ai", "gpt-oss-120b", asked},
		{"perplexity", "api.perplexity.ai", "sonar", asked},
		{"loopback", "127.0.0.1:8000", "qwen3", asked},
		{"loopback, version 6", "[::1]:8000", "qwen3", asked},
		{"an unknown host", "llm.example.net", "some-model", asked},
		{"nothing known at all", "", "", asked},
		{"port, case and scheme do not matter", "HTTPS://API.Groq.com:443/openai/v1/", "X", prefill},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := AbilityOf(c.host, c.model); !reflect.DeepEqual(got, c.want) {
				t.Errorf("AbilityOf(%q, %q) = %+v, want %+v", c.host, c.model, got, c.want)
			}
		})
	}
}

func TestMatchTakesTheFirstRule(t *testing.T) {
	own := []AbilityRule{{Hosts: []string{"gpu.example.net"}, Ability: Ability{Manners: []turn.Manner{turn.Prefill}, Flags: Flags{ContinueFinal: true}}}}
	rules := append(own, AbilityRule{Ability: Ability{Manners: []turn.Manner{turn.Asked}}})
	if a, ok := Match(rules, "gpu.example.net:8000", "claude-opus-4-6"); !ok || !a.Flags.ContinueFinal {
		t.Errorf("own rule first: %+v %v", a, ok)
	}
	if a, ok := Match(rules, "other.example.net", "x"); !ok || a.Flags.ContinueFinal {
		t.Errorf("then the others: %+v %v", a, ok)
	}
	if _, ok := Match(own, "other.example.net", "x"); ok {
		t.Error("no rule fits, yet one was found")
	}
}

func TestEngineAbility(t *testing.T) {
	want := map[string]Flags{
		"vllm":      {ContinueFinal: true, NoGenerationPrompt: true},
		"sglang":    {ContinueFinal: true},
		"llama.cpp": {NoThinking: true},
		"ollama":    {},
	}
	for name, flags := range want {
		a, ok := EngineAbility(name)
		if !ok || a.Flags != flags || len(a.Manners) != 2 || a.Manners[0] != turn.Prefill {
			t.Errorf("%s: %+v %v", name, a, ok)
		}
	}
	if a, ok := EngineAbility("chat"); !ok || len(a.Manners) != 1 || a.Manners[0] != turn.Asked {
		t.Errorf("chat: %+v %v", a, ok)
	}
	if _, ok := EngineAbility("unheard-of"); ok {
		t.Error("an unknown engine has an ability")
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
