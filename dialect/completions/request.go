package completions

import (
	"errors"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/openaichat"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// Why a request is relayed unprotected.
var (
	ErrRequest = errors.New("request is not a json object")
	ErrPrompt  = errors.New("request has no prompt")
)

// Parse implements dialect.Dialect.
func (Dialect) Parse(body []byte) (*dialect.Request, error) {
	r := &dialect.Request{Body: body, N: 1}
	var prompt []byte
	echo := false
	w := jsonwalk.Members(body)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if jsonwalk.IsNull(val) {
			continue
		}
		switch string(key) {
		case "prompt":
			prompt = val
		case "echo":
			echo, _ = jsonwalk.Bool(val)
		default:
			readMember(r, string(key), val)
		}
	}
	if w.Err() != nil {
		return nil, ErrRequest
	}
	if prompt == nil && r.Unsplicable == "" {
		return nil, ErrPrompt
	}
	if prompt != nil {
		readPrompt(r, prompt)
	}
	if text, ok := single(prompt); ok && echo && r.MaxTokens > 0 {
		// The limit is on what is generated; what is left of it is reckoned from
		// what was said, which begins with the prompt (turn.EstimateTokens).
		r.MaxTokens += int64(jsonwalk.DecodedLen(text) / 4)
	}
	return r, nil
}

func readMember(r *dialect.Request, key string, val []byte) {
	switch key {
	case "logprobs", "prompt_logprobs": // a number; 0 asks for those of the tokens that were taken
		r.Logprobs = r.Logprobs || string(val) != "false"
	case "best_of":
		if n, ok := jsonwalk.Int(val); ok && n > 1 {
			r.Unsplicable = key
		}
	case "prompt_embeds": // vLLM
		r.Unsplicable = key
	case "return_token_ids", "use_beam_search": // vLLM
		if yes, _ := jsonwalk.Bool(val); yes {
			r.Unsplicable = key
		}
	case "messages", "tools", "tool_choice", "functions", "function_call", "modalities", "audio":
		// Chat's; whoever serves them here is to judge.
	default:
		openaichat.ReadMember(r, key, val)
	}
}

// readPrompt reads what a prompt is: a text, a list of texts, the tokens of one or a
// list of those. Each of a batch is answered by n choices.
func readPrompt(r *dialect.Request, prompt []byte) {
	if _, ok := single(prompt); ok {
		return
	}
	r.Unsplicable = "prompt of tokens"
	if all := jsonwalk.All(prompt); len(all) > 0 && jsonwalk.KindOf(all[0]) != jsonwalk.KindNumber {
		r.N *= len(all)
		if len(all) > 1 {
			r.Unsplicable = "batch of prompts"
		}
	}
}

// single is the escaped text of a prompt that is one text, alone or as the only
// element of a list.
func single(prompt []byte) ([]byte, bool) {
	if jsonwalk.KindOf(prompt) == jsonwalk.KindArray {
		all := jsonwalk.All(prompt)
		if len(all) != 1 {
			return nil, false
		}
		prompt = all[0]
	}
	return jsonwalk.String(prompt)
}
