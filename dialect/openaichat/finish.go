package openaichat

import "github.com/unbroken-llm/unbroken/turn"

// finishWhy reads a finish reason. A router may hide a provider's failure behind
// a benign reason and tell it in the native one (FIELD-REPORTS E3).
func finishWhy(reason, native []byte) turn.Why {
	switch string(native) {
	case "network_error", "error":
		return turn.Broken
	}
	switch string(reason) {
	case "stop":
		return turn.Stopped
	case "length", "model_length": // Mistral
		return turn.Length
	case "tool_calls", "function_call":
		return turn.ToolUse
	case "content_filter":
		return turn.Filtered
	case "error", "network_error", "insufficient_system_resource": // OpenRouter, Mistral; DeepSeek
		return turn.Broken
	}
	return turn.OtherEnd
}

// finishReason spells an end whose provider gave no reason.
func finishReason(why turn.Why) string {
	switch why {
	case turn.Stopped, turn.OtherEnd, turn.Paused:
		return "stop"
	case turn.Length:
		return "length"
	case turn.ToolUse:
		return "tool_calls"
	case turn.Filtered:
		return "content_filter"
	}
	panic("BUG: openaichat: a finish for a turn that did not end: " + why.String())
}
