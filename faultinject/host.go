package faultinject

import (
	"fmt"
	"strings"
)

// A Host is the kind of Chat server that is played. They differ in what they
// make of a trailing assistant message (WIRE 2.1).
type Host string

// The hosts. The empty host is OpenAI.
const (
	OpenAI     Host = "openai"     // a finished turn, a fresh one starts; vendor flags are 400
	VLLM       Host = "vllm"       // continue_final_message with add_generation_prompt:false
	SGLang     Host = "sglang"     // continue_final_message; without it the turn is relabelled as user
	Mistral    Host = "mistral"    // prefix:true; without it 400
	DeepSeek   Host = "deepseek"   // prefix:true under /beta; without it 400
	LlamaCPP   Host = "llamacpp"   // a trailing assistant message is a prefill
	Ollama     Host = "ollama"     // likewise
	Groq       Host = "groq"       // likewise
	Moonshot   Host = "moonshot"   // partial:true
	OpenRouter Host = "openrouter" // what the model behind it does
)

var hosts = []Host{OpenAI, VLLM, SGLang, Mistral, DeepSeek, LlamaCPP, Ollama, Groq, Moonshot, OpenRouter}

// HostNames returns the names a configuration may use.
func HostNames() []string { return names(hosts) }

// names are words as plain strings.
func names[T ~string](words []T) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return all
}

// ParseHost reads the name of a host; empty is OpenAI.
func ParseHost(name string) (Host, error) {
	if name == "" {
		return OpenAI, nil
	}
	for _, h := range hosts {
		if string(h) == name {
			return h, nil
		}
	}
	return "", fmt.Errorf("unknown host %q: use one of %s", name, strings.Join(HostNames(), ", "))
}

// claudePrefill lists the Claude models that take a prefill, as parts of their
// names. From 4.6 on none does (WIRE 2.1, Anthropic "Prefill", 2026).
var claudePrefill = []string{
	"claude-instant", "claude-2", "claude-3", "opus-4-0", "opus-4-1", "opus-4-5", "opus-4-2025",
	"sonnet-4-0", "sonnet-4-5", "sonnet-4-2025", "haiku-4-5",
}

// claudePrefills reports whether a Claude model takes a prefill.
func claudePrefills(model string) bool {
	model = strings.ReplaceAll(model, ".", "-")
	for _, part := range claudePrefill {
		if strings.Contains(model, part) {
			return true
		}
	}
	return strings.HasSuffix(model, "claude-opus-4") || strings.HasSuffix(model, "claude-sonnet-4")
}

// alwaysThinks reports whether a Claude model refuses thinking to be disabled
// and tool choices to be forced (WIRE 2.2).
func alwaysThinks(model string) bool {
	for _, part := range []string{"fable-5", "opus-5-5", "sonnet-5-5"} {
		if strings.Contains(strings.ReplaceAll(model, ".", "-"), part) {
			return true
		}
	}
	return false
}

const noPrefill = "This model does not support assistant message prefill. The conversation must end with a user message."
