package dialect

import "github.com/unbroken-llm/unbroken/turn"

// EngineRules are the rules for a self-hosted inference server, which no host name
// gives away and only configuration can name; see [Engines].
func EngineRules(engine string) ([]AbilityRule, bool) {
	for i := range engines {
		if engines[i].name == engine {
			return engines[i].rules, true
		}
	}
	return nil, false
}

// Engines are the names that EngineRules knows. Two are no engines: "chat" is any
// server that must be asked to go on, "prefill" any that goes on with a trailing
// assistant turn without being told by a flag (a gateway in front of such models).
func Engines() []string {
	var names []string
	for i := range engines {
		names = append(names, engines[i].name)
	}
	return names
}

var (
	prefillThenAsk = []turn.Manner{turn.Prefill, turn.Asked}
	askOnly        = []turn.Manner{turn.Asked}
)

// elsewhere is the last rule of an engine: in the other dialects that it serves, a
// trailing assistant turn is finished, or nobody says what it is.
var elsewhere = AbilityRule{Ability: Ability{Manners: askOnly}}

// Law: a flag goes only into the chat requests of the engine that documents it.
var engines = []struct {
	name  string
	rules []AbilityRule
}{
	{"vllm", []AbilityRule{
		// continue_final_message without add_generation_prompt:false is a 400 (vLLM, OpenAI-compatible server).
		{Dialects: []string{"chat"}, Ability: Ability{Manners: prefillThenAsk, Flags: Flags{ContinueFinal: true, NoGenerationPrompt: true}}},
		// A trailing output message in progress is continued (vllm/entrypoints, serving_responses).
		{Dialects: []string{"responses"}, Ability: Ability{Manners: prefillThenAsk}},
		elsewhere,
	}},
	{"sglang", []AbilityRule{
		// Without the flag SGLang silently relabels the trailing assistant turn as the user's (serving_chat).
		{Dialects: []string{"chat"}, Ability: Ability{Manners: prefillThenAsk, Flags: Flags{ContinueFinal: true}}},
		elsewhere,
	}},
	{"llama.cpp", []AbilityRule{
		// 400 "Assistant response prefill is incompatible with enable_thinking." (server utils)
		{Dialects: []string{"chat"}, Ability: Ability{Manners: prefillThenAsk, Flags: Flags{NoThinking: true}}},
		elsewhere,
	}},
	{"ollama", []AbilityRule{
		// Depends on the model's renderer, so an answer may start over; so may one to
		// a prompt of the legacy completions, which Ollama puts into the template too.
		{Dialects: []string{"chat"}, Ability: Ability{Manners: prefillThenAsk, Echoes: true}},
		{Dialects: []string{"completions"}, Ability: Ability{Manners: askOnly, Echoes: true}},
		elsewhere,
	}},
	// Documents nothing about a trailing assistant turn.
	{"lmstudio", []AbilityRule{elsewhere}},
	{"chat", []AbilityRule{elsewhere}},
	{"prefill", []AbilityRule{
		{Dialects: []string{"chat", "messages", "gemini"}, Ability: Ability{Manners: prefillThenAsk}},
		elsewhere,
	}},
}
