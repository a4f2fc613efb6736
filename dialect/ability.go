package dialect

import "github.com/unbroken-llm/unbroken/turn"

// Flags are vendor extensions that make a host continue a trailing assistant
// turn. They go only to hosts known to take them (DESIGN §4).
type Flags struct {
	// Prefix sets "prefix": true on the last assistant message (DeepSeek /beta, Mistral).
	Prefix bool
	// Partial sets "partial": true on it (Moonshot).
	Partial bool
	// ContinueFinal sets continue_final_message: true, add_generation_prompt: false (vLLM).
	ContinueFinal bool
	// NoGenerationPrompt is sent with ContinueFinal where the host needs it (vLLM; not SGLang).
	NoGenerationPrompt bool
	// NoThinking disables template thinking (llama.cpp).
	NoThinking bool
}

// Ability is what a target can do for an unfinished turn.
type Ability struct {
	// Manners in order of preference; the last resort is to refuse. turn.Provider
	// is none of them: whether a provider holds a generation is not a fact about a
	// host but about a stream ([Holder], [Checkpointer]), and comes first where it is
	// so.
	Manners []turn.Manner
	Flags   Flags
	// Echoes: a prefill answer may begin with the prefix again.
	Echoes bool
	// NoFinish: the host gives no finish_reason; its turns end with a usage
	// record and the end marker (Snowflake).
	NoFinish bool
	// Pings: the host is known to ping through silent phases, so that byte
	// silence means a dead connection there too.
	Pings bool
}
