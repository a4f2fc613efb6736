package dialect

// Request is what the house needs to know of a request, in any dialect. It is
// immutable after Parse; byte slices alias Body.
type Request struct {
	// Body is the request exactly as the client sent it.
	Body   []byte
	Model  string
	Stream bool
	// N is the number of choices asked for, at least 1.
	N int
	// Logprobs: per-token data was asked for, which no continuation can splice.
	Logprobs bool
	// Tools: client-side tools are declared. HostedTools names the declared
	// tools that run at the provider and may have effects (MCP, code
	// execution …); searching and fetching have none.
	Tools       bool
	HostedTools []string
	// ForcedTool: tool_choice demands a call.
	ForcedTool bool
	// Structured: the answer must be one JSON document (schema or JSON mode).
	Structured bool
	// Schema is the JSON Schema of the answer, raw, or nil.
	Schema []byte
	// IncludeUsage: the caller asked for a usage record (always true in dialects
	// that send one anyway).
	IncludeUsage bool
	// MaxTokens is the caller's output limit; 0: none.
	MaxTokens int64
	// Stops are the caller's stop sequences, decoded.
	Stops []string
	// Thinking: extended thinking was asked for.
	Thinking bool
	// Prefill is the caller's own trailing assistant text, decoded; a
	// continuation extends it.
	Prefill []byte
	// Unsplicable names a feature that no continuation can carry (audio
	// output …); empty if there is none.
	Unsplicable string
	// Committed: what is said joins a history that the provider keeps for the
	// caller, so that no request may be made twice and no continuation at all.
	Committed bool
	// Keepalive: the client is known not to count comments as signs of life
	// (Codex, by its originator and user agent); dialects with a heartbeat
	// event send that. Set by whoever reads the request's headers, before use.
	Keepalive bool
	// Kept: the provider keeps the answer under the id that it gave it, and later
	// requests name it by that; another generation cannot take its place.
	Kept bool
	// Veiled: what goes up asks to hold the generation, which the client did not
	// ([Backgrounder]), and what comes down is shown as if it had not. Set by
	// whoever changed the request.
	Veiled bool
	// Upgraded is the client's own request, which asks for no stream, where what goes up
	// asks for one ([Upgrader]): the client gets the ordinary answer, when it is whole.
	// Nil: the client gets what it asked for. Set by whoever changed the request.
	Upgraded *Request
}
