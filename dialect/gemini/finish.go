package gemini

import "github.com/unbroken-llm/unbroken/turn"

// finishWhy reads a finishReason. STOP also ends a turn that asks for calls.
//
// MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL and OTHER may be worth another
// try, but the provider did end its turn: what it finished, malformed or not, is
// its answer and ours to relay (DESIGN §1.3). CONTINUATION ends the stream of a
// generation that goes on for whoever sends the continuationToken, as the official
// SDKs do by themselves.
func finishWhy(reason []byte, called bool) turn.Why {
	switch string(reason) {
	case "STOP":
		if called {
			return turn.ToolUse
		}
		return turn.Stopped
	case "MAX_TOKENS":
		return turn.Length
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR":
		return turn.Filtered
	case "CONTINUATION":
		return turn.Paused
	}
	return turn.OtherEnd
}

// finishReason spells an end whose provider gave no reason.
func finishReason(why turn.Why) string {
	switch why {
	case turn.Stopped, turn.ToolUse, turn.Paused:
		return "STOP"
	case turn.Length:
		return "MAX_TOKENS"
	case turn.Filtered:
		return "SAFETY"
	case turn.OtherEnd:
		return "OTHER"
	}
	panic("BUG: gemini: a finish for a turn that did not end: " + why.String())
}
