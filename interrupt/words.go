package interrupt

import "strings"

// class says what a provider's error word means for repeating a request.
type class uint8

const (
	// strange: a word that this house does not know.
	strange class = iota
	// passing: the provider failed; another try can work.
	passing
	// refused: the request is at fault. By status the status says more.
	refused
	// hard: final whatever the status is; the same request cannot work there.
	hard
	// filtered: hard, since the content itself was refused.
	filtered
	// overflow: hard, since the prompt does not fit the model.
	overflow
)

// word is one row of the table: the class and the status the word stands for.
type word struct {
	class  class
	status int
}

// words maps the error types and codes of the providers, in lower case, to what
// they mean. Sources: WIRE 1.1-1.7; platform.openai.com/docs/guides/error-codes;
// docs.anthropic.com/en/api/errors; ai.google.dev/gemini-api/docs/troubleshooting
// (google.rpc.Code); openrouter.ai/docs/api-reference/errors; the Bedrock API
// reference of InvokeModelWithResponseStream.
var words = map[string]word{
	"overloaded_error":             {passing, 529}, // Anthropic
	"overloaded":                   {passing, 529},
	"engine_overloaded":            {passing, 503}, // OpenAI
	"engine_overloaded_error":      {passing, 503}, // Moonshot
	"server_overloaded":            {passing, 503}, // OpenAI
	"slow_down":                    {passing, 503}, // OpenAI
	"api_error":                    {passing, 500}, // Anthropic
	"server_error":                 {passing, 500}, // OpenAI
	"internal_error":               {passing, 500},
	"internal_server_error":        {passing, 500}, // Groq
	"internalservererror":          {passing, 500}, // vLLM
	"internal":                     {passing, 500}, // Google
	"unknown":                      {passing, 500}, // Google
	"internalserverexception":      {passing, 500}, // Bedrock
	"upstream_error":               {passing, 502},
	"bad_gateway":                  {passing, 502},
	"network_error":                {passing, 502}, // OpenRouter's native_finish_reason
	"insufficient_system_resource": {passing, 503}, // DeepSeek
	"service_unavailable":          {passing, 503},
	"service_unavailable_error":    {passing, 503},
	"unavailable":                  {passing, 503}, // Google
	"unavailable_error":            {passing, 503}, // llama.cpp
	"serviceunavailableexception":  {passing, 503}, // Bedrock
	"timeout_error":                {passing, 504}, // Anthropic
	"timeout":                      {passing, 504},
	"gateway_timeout":              {passing, 504},
	"deadline_exceeded":            {passing, 504}, // Google
	"modeltimeoutexception":        {passing, 504}, // Bedrock
	"modelstreamerrorexception":    {passing, 424}, // Bedrock
	"rate_limit_error":             {passing, 429}, // Anthropic
	"rate_limit_exceeded":          {passing, 429}, // OpenAI
	"rate_limit_reached_error":     {passing, 429}, // Moonshot
	"rate_limited":                 {passing, 429}, // Mistral
	"rate_limit":                   {passing, 429},
	"too_many_requests":            {passing, 429},
	"resource_exhausted":           {passing, 429}, // Google: per-minute limits too
	"throttlingexception":          {passing, 429}, // Bedrock
	// Groq's model wrote a call that fits no declared tool. It carries status
	// 400, but what failed is the generation and not the request, and sampling
	// again usually mends it (groq/tool-use-failed-*, five recordings).
	"tool_use_failed": {passing, 400},

	"invalid_request_error": {refused, 400}, // OpenAI, Anthropic
	"bad_request_error":     {refused, 400},
	"badrequesterror":       {refused, 400}, // vLLM
	"invalid_argument":      {refused, 400}, // Google
	"failed_precondition":   {refused, 400}, // Google
	"out_of_range":          {refused, 400}, // Google
	"validationexception":   {refused, 400}, // Bedrock
	"authentication_error":  {refused, 401}, // OpenAI, Anthropic
	"invalid_api_key":       {refused, 401}, // OpenAI
	"unauthenticated":       {refused, 401}, // Google
	"permission_error":      {refused, 403}, // Anthropic
	"permission_denied":     {refused, 403}, // Google
	"accessdeniedexception": {refused, 403}, // Bedrock
	"not_found_error":       {refused, 404}, // Anthropic
	"notfounderror":         {refused, 404}, // vLLM
	"not_found":             {refused, 404}, // Google
	"request_too_large":     {refused, 413}, // Anthropic: bytes, not tokens
	"unprocessable_entity":  {refused, 422},
	"not_supported_error":   {refused, 501}, // llama.cpp
	"unsupported_value":     {refused, 400}, // OpenAI
	"unsupported_parameter": {refused, 400}, // OpenAI

	"insufficient_quota":            {hard, 429},     // OpenAI, Azure
	"exceeded_current_quota_error":  {hard, 429},     // Moonshot
	"billing_hard_limit_reached":    {hard, 429},     // OpenAI
	"billing_not_active":            {hard, 429},     // OpenAI
	"access_terminated":             {hard, 429},     // OpenAI
	"billing_error":                 {hard, 402},     // Anthropic
	"insufficient_balance":          {hard, 402},     // DeepSeek
	"insufficient_credits":          {hard, 402},     // OpenRouter
	"content_filter":                {filtered, 400}, // Azure
	"content_policy_violation":      {filtered, 400}, // OpenAI
	"responsibleaipolicyviolation":  {filtered, 400}, // Azure
	"invalid_prompt":                {filtered, 400}, // OpenAI: usage policy
	"prohibited_content":            {filtered, 400}, // Google
	"safety":                        {filtered, 400}, // Google
	"moderation_blocked":            {filtered, 400}, // OpenAI images
	"model_not_found":               {hard, 404},     // OpenAI
	"deploymentnotfound":            {hard, 404},     // Azure
	"context_length_exceeded":       {overflow, 400}, // OpenAI, Groq
	"context_window_exceeded":       {overflow, 400},
	"exceed_context_size_error":     {overflow, 400}, // llama.cpp
	"contextwindowexceedederror":    {overflow, 400}, // LiteLLM
	"model_context_window_exceeded": {overflow, 400}, // Anthropic
}

// look finds the meaning of an error by its code, which is the more precise of
// the two, then by its type.
func look(typ, code string) word {
	if w, ok := words[strings.ToLower(code)]; ok {
		return w
	}
	return words[strings.ToLower(typ)]
}

// prefillWords are what a target says that takes no trailing assistant turn.
// WIRE 2.1, "self-correcting". In lower case.
var prefillWords = []string{
	"prefill",                           // Anthropic 4.6+, llama.cpp
	"must end with a user",              // Anthropic 4.6+
	"ending with a model turn",          // Gemini 3.5-flash-lite and later
	"expected last role",                // Mistral without prefix
	"continue_final_message",            // vLLM, an old build or a refused pair
	"incompatible with enable_thinking", // llama.cpp
}

// overflowWords are what a model says whose window the prompt exceeds. In lower case.
var overflowWords = []string{
	"maximum context length",                   // OpenAI, vLLM, Mistral
	"context length exceeded",                  //
	"exceeds the context window",               // OpenAI Responses
	"exceed context limit",                     // Anthropic, input + max_tokens
	"prompt is too long",                       // Anthropic
	"input is too long for requested model",    // Bedrock
	"exceeds the maximum number of tokens",     // Gemini
	"exceeds the available context size",       // llama.cpp
	"please reduce the length of the messages", // Groq
	"longer than the model's context length",   // SGLang
}

func says(message string, phrases []string) bool {
	message = strings.ToLower(message)
	for _, p := range phrases {
		if strings.Contains(message, p) {
			return true
		}
	}
	return false
}
