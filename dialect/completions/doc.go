// Package completions is the dialect of the legacy completions: POST
// /v1/completions as OpenAI, vLLM, SGLang, llama.cpp, Ollama, DeepSeek and others
// serve it, and any other path that ends in /completions and is not chat (WIRE
// 1.1). A model goes on with a text; there are no turns, tools or reasoning.
//
// Law: a continuation is the caller's own request with what was said appended to
// its prompt, to the byte. That is a true prefill on every host, so no other
// manner exists and nothing is asked of a model in words (Traits.Appends). What
// cannot be appended to is refused by name: a prompt given as tokens or as
// embeddings, a batch of prompts, several choices, per-token data, best_of, a
// grammar, an answer that broke off while it still echoed the prompt.
//
// A suffix stays as it is: a model that fills a gap goes on filling it. A limit
// that the caller did not set is not known here (OpenAI and vLLM stop at 16
// tokens, llama.cpp and Ollama do not), so that what follows a cut of such a
// request can be as long again as what the host allows a request.
//
// The events are chat's but for the place of the words, and are read and written
// by openaichat.Wire.
//
// Pure: no clock, no I/O, no goroutines.
package completions
