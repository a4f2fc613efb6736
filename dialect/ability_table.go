package dialect

import (
	"path"
	"strings"

	"github.com/unbroken-llm/unbroken/turn"
)

// AbilityRule gives the ability of the targets it matches.
//
// Hosts are patterns over the upstream's host without port, followed by its base
// path without trailing slash where it has one ("api.deepseek.com/beta"); Models
// are patterns over the model name as the request spells it. An empty list
// matches everything. Patterns are those of path.Match, in lower case, except
// that * also matches slashes ("anthropic/claude-3-opus").
type AbilityRule struct {
	Hosts   []string
	Models  []string
	Ability Ability
}

// AbilityOf is what the house knows of a target without being told: WIRE 2.1. A
// host it does not know is only ever asked to go on, because a flag or a trailing
// assistant turn that a server takes the wrong way costs an attempt, or, silently,
// the caller's answer.
func AbilityOf(host, model string) Ability {
	a, _ := Match(abilities, host, model)
	return a
}

// Match returns the ability of the first rule that fits. Configuration overrides
// the table by matching its own rules first.
func Match(rules []AbilityRule, host, model string) (Ability, bool) {
	host, model = hostKey(host), modelKey(model)
	for i := range rules {
		if r := &rules[i]; matchAny(r.Hosts, host) && matchAny(r.Models, model) {
			return r.Ability, true
		}
	}
	return Ability{}, false
}

// EngineAbility is the ability of a self-hosted inference server, which no host
// name gives away and only configuration can name: "vllm", "sglang", "llama.cpp",
// "ollama" or "chat" (anything else that speaks chat).
func EngineAbility(engine string) (Ability, bool) {
	for i := range engines {
		if engines[i].name == engine {
			return engines[i].ability, true
		}
	}
	return Ability{}, false
}

var (
	prefillThenAsk = []turn.Manner{turn.Prefill, turn.Asked}
	askOnly        = []turn.Manner{turn.Asked}
)

var engines = []struct {
	name    string
	ability Ability
}{
	// continue_final_message without add_generation_prompt:false is a 400.
	{"vllm", Ability{Manners: prefillThenAsk, Flags: Flags{ContinueFinal: true, NoGenerationPrompt: true}}},
	// Without the flag SGLang silently relabels the trailing assistant turn as the user's.
	{"sglang", Ability{Manners: prefillThenAsk, Flags: Flags{ContinueFinal: true}}},
	// 400 "Assistant response prefill is incompatible with enable_thinking."
	{"llama.cpp", Ability{Manners: prefillThenAsk, Flags: Flags{NoThinking: true}}},
	// Depends on the model's renderer, so an answer may start over.
	{"ollama", Ability{Manners: prefillThenAsk, Echoes: true}},
	{"chat", Ability{Manners: askOnly}},
}

// prefillClaude are the Claude models that continue a trailing assistant turn:
// everything up to 4.5. From 4.6 on it is a 400, and a model of a later year is
// taken for one of those. The spellings are those of Anthropic, Bedrock
// (us.anthropic.claude-…-v1:0), Vertex (…@20250514), OpenRouter
// (anthropic/claude-4.5-haiku-…) and Snowflake (claude-4-sonnet).
var prefillClaude = []string{
	"*claude-2*", "*claude-instant*", "*claude-v2*", "*claude-3*",
	"*claude-opus-4", `*claude-opus-4[\-@]2025*`, "*claude-opus-4:*",
	`*claude-opus-4[\-.][015]`, `*claude-opus-4[\-.][015][\-@:]*`,
	"*claude-sonnet-4", `*claude-sonnet-4[\-@]2025*`, "*claude-sonnet-4:*",
	`*claude-sonnet-4[\-.][05]`, `*claude-sonnet-4[\-.][05][\-@:]*`,
	`*claude-haiku-4[\-.]5`, `*claude-haiku-4[\-.]5[\-@:]*`,
	"*claude-4-opus*", "*claude-4-sonnet*",
	`*claude-4[\-.]1-opus*`, `*claude-4[\-.]5-opus*`, `*claude-4[\-.]5-sonnet*`, `*claude-4[\-.]5-haiku*`,
}

var openRouter = []string{"openrouter.ai", "openrouter.ai/*", "*.openrouter.ai", "*.openrouter.ai/*"}

// abilities is WIRE 2.1 as data; the first row that fits counts.
var abilities = []AbilityRule{
	{ // Recorded: [DONE] behind a usage record, and no finish_reason (openai-compat-other/snowflake-thinking).
		Hosts: []string{"*.snowflakecomputing.com", "*.snowflakecomputing.com/*"}, Models: prefillClaude,
		Ability: Ability{Manners: prefillThenAsk, NoFinish: true},
	},
	{
		Hosts:   []string{"*.snowflakecomputing.com", "*.snowflakecomputing.com/*"},
		Ability: Ability{Manners: askOnly, NoFinish: true},
	},
	{ // Comments run through every silent phase (recorded: openrouter/claude-thinking).
		Hosts: openRouter, Models: prefillClaude,
		Ability: Ability{Manners: prefillThenAsk, Pings: true},
	},
	{ // Whether a prefill is honoured depends on the provider behind it.
		Hosts:   openRouter,
		Ability: Ability{Manners: askOnly, Pings: true},
	},
	{Models: prefillClaude, Ability: Ability{Manners: prefillThenAsk}},
	{Models: []string{"*claude*"}, Ability: Ability{Manners: askOnly}},
	{ // The prefix flag exists under /beta only.
		Hosts:   []string{"api.deepseek.com/beta", "api.deepseek.com/beta/*"},
		Ability: Ability{Manners: prefillThenAsk, Flags: Flags{Prefix: true}},
	},
	{ // 400 "Expected last role User or Tool (or Assistant with prefix True)"; may echo the prefix.
		Hosts:   []string{"api.mistral.ai", "api.mistral.ai/*", "codestral.mistral.ai", "codestral.mistral.ai/*"},
		Ability: Ability{Manners: prefillThenAsk, Flags: Flags{Prefix: true}, Echoes: true},
	},
	{
		Hosts:   []string{"api.moonshot.ai", "api.moonshot.ai/*", "api.moonshot.cn", "api.moonshot.cn/*"},
		Ability: Ability{Manners: prefillThenAsk, Flags: Flags{Partial: true}},
	},
	{
		Hosts:   []string{"api.groq.com", "api.groq.com/*"},
		Ability: Ability{Manners: prefillThenAsk},
	},
	{ // As the engine "ollama".
		Hosts:   []string{"ollama.com", "ollama.com/*"},
		Ability: Ability{Manners: prefillThenAsk, Echoes: true},
	},
	{ // Later ones: 400 "Requests ending with a model turn are not supported".
		Hosts:   []string{"generativelanguage.googleapis.com*", "*aiplatform.googleapis.com*"},
		Models:  []string{"*gemini-2.*", "*gemini-3-*", "*gemini-3.1-*", "*gemini*-pro-latest"},
		Ability: Ability{Manners: prefillThenAsk},
	},
	// OpenAI, Azure, xAI, Together, Fireworks, Cerebras, Perplexity: no documented
	// prefill; a trailing assistant turn is taken as finished. So is it for all
	// that are not known.
	{Ability: Ability{Manners: askOnly}},
}

func hostKey(host string) string {
	host = strings.ToLower(host)
	if at := strings.Index(host, "://"); at >= 0 {
		host = host[at+3:]
	}
	name, base, _ := strings.Cut(host, "/")
	if at := strings.LastIndexByte(name, ':'); at >= 0 && !strings.HasSuffix(name, "]") {
		name = name[:at]
	}
	if base = strings.Trim(base, "/"); base != "" {
		name += "/" + base
	}
	return slashless(name)
}

func modelKey(model string) string { return slashless(strings.ToLower(model)) }

// slashless makes path.Match's * match across slashes.
func slashless(s string) string { return strings.ReplaceAll(s, "/", "\x00") }

func matchAny(patterns []string, key string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(slashless(p), key); ok && err == nil {
			return true
		}
	}
	return len(patterns) == 0
}
