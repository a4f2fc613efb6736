package dialect

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

var (
	openRouter = []string{"openrouter.ai", "openrouter.ai/*", "*.openrouter.ai", "*.openrouter.ai/*"}
	snowflake  = []string{"*.snowflakecomputing.com", "*.snowflakecomputing.com/*"}
	chatOnly   = []string{"chat"}
)

// abilities is WIRE 2.1 as data; the first row that fits counts. A row says where its
// fact is from: a recording, the provider's documentation, or an error it is known to
// answer.
var abilities = []AbilityRule{
	{ // Recorded: [DONE] behind a usage record, and no finish_reason (openai-compat-other/snowflake-thinking).
		Dialects: chatOnly, Hosts: snowflake, Models: prefillClaude,
		Ability: Ability{Manners: prefillThenAsk, NoFinish: true},
	},
	{
		Dialects: chatOnly, Hosts: snowflake,
		Ability: Ability{Manners: askOnly, NoFinish: true},
	},
	{ // Comments run through every silent phase (recorded: openrouter/claude-thinking).
		Dialects: []string{"chat", "messages"}, Hosts: openRouter, Models: prefillClaude,
		Ability: Ability{Manners: prefillThenAsk, Pings: true},
	},
	{ // Whether a prefill is honoured depends on the provider behind it.
		Hosts:   openRouter,
		Ability: Ability{Manners: askOnly, Pings: true},
	},
	{ // OpenAI, Azure, xAI, Groq, Fireworks …: an assistant message in the input is history. vLLM
		// goes on with one in progress, and is named by configuration.
		Dialects: []string{"responses"},
		Ability:  Ability{Manners: askOnly},
	},
	{ // Anthropic, Bedrock, Vertex: the same list. Later ones: 400 "This model does not support assistant message prefill."
		Models: prefillClaude, Ability: Ability{Manners: prefillThenAsk},
	},
	{Models: []string{"*claude*"}, Ability: Ability{Manners: askOnly}},
	{ // The prefix flag exists under /beta only (api-docs.deepseek.com, chat prefix completion).
		Dialects: chatOnly, Hosts: []string{"api.deepseek.com/beta", "api.deepseek.com/beta/*"},
		Ability: Ability{Manners: prefillThenAsk, Flags: Flags{Prefix: true}},
	},
	{ // 400 "Expected last role User or Tool (or Assistant with prefix True)"; may echo the prefix.
		Dialects: chatOnly, Hosts: []string{"api.mistral.ai", "api.mistral.ai/*", "codestral.mistral.ai", "codestral.mistral.ai/*"},
		Ability: Ability{Manners: prefillThenAsk, Flags: Flags{Prefix: true}, Echoes: true},
	},
	{ // platform.moonshot.ai, partial mode.
		Dialects: chatOnly, Hosts: []string{"api.moonshot.ai", "api.moonshot.ai/*", "api.moonshot.cn", "api.moonshot.cn/*"},
		Ability: Ability{Manners: prefillThenAsk, Flags: Flags{Partial: true}},
	},
	{ // help.aliyun.com/model-studio, partial mode: not while thinking, so only models that never do.
		Dialects: chatOnly, Hosts: []string{"dashscope*.aliyuncs.com", "dashscope*.aliyuncs.com/*"},
		Models:  []string{"qwen-max*", "qwen2.5-*", "qwen-coder*", "qwen3-coder*", "qwen-math*"},
		Ability: Ability{Manners: prefillThenAsk, Flags: Flags{Partial: true}},
	},
	{ // console.groq.com, assistant message prefilling.
		Dialects: chatOnly, Hosts: []string{"api.groq.com", "api.groq.com/*"},
		Ability: Ability{Manners: prefillThenAsk},
	},
	{ // As the engine "ollama".
		Dialects: chatOnly, Hosts: []string{"ollama.com", "ollama.com/*"},
		Ability: Ability{Manners: prefillThenAsk, Echoes: true},
	},
	{ // Later ones: 400 "Requests ending with a model turn are not supported". The chat endpoint of
		// the same hosts, and Interactions, say nothing of it.
		Dialects: []string{"gemini"}, Hosts: []string{"generativelanguage.googleapis.com*", "*aiplatform.googleapis.com*"},
		Models:  []string{"*gemini-2.*", "*gemini-3-*", "*gemini-3.1-*", "*gemini*-pro-latest"},
		Ability: Ability{Manners: prefillThenAsk},
	},
	{ // None documents a prefill: a trailing assistant turn is taken as finished and a fresh one
		// begins, or it is a 400.
		Hosts: []string{
			"api.openai.com*", "*.openai.azure.com*", "*.services.ai.azure.com*", "*.cognitiveservices.azure.com*",
			"api.x.ai*", "api.perplexity.ai*", "api.together.xyz*", "api.together.ai*", "api.fireworks.ai*", "api.cerebras.ai*",
			"api.z.ai*", "open.bigmodel.cn*", "router.huggingface.co*", "dashscope*.aliyuncs.com*",
		},
		Ability: Ability{Manners: askOnly},
	},
	// And whoever is not known.
	{Ability: Ability{Manners: askOnly}},
}
