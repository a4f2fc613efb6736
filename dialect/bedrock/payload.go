package bedrock

import (
	"math"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// payload holds the members of a frame's payload that matter, raw.
type payload struct {
	index, start, delta, reason, usage []byte
}

func readPayload(data []byte) (payload, error) {
	var p payload
	w := jsonwalk.Checked(data)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch string(k) {
		case "contentBlockIndex":
			p.index = v
		case "start":
			p.start = v
		case "delta":
			p.delta = v
		case "stopReason":
			p.reason = v
		case "usage":
			p.usage = v
		}
	}
	if w.Err() != nil {
		return payload{}, ErrJSON
	}
	return p, nil
}

func wireIndex(raw []byte) (int, bool) {
	n, ok := jsonwalk.Int(raw)
	if !ok || n < 0 || n > math.MaxInt32 {
		return 0, false
	}
	return int(n), true
}

// member is the one member of a union; key is nil if it has none, and only null ones count as none.
func member(union []byte) (key, val []byte) {
	w := jsonwalk.Members(union)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		if !jsonwalk.IsNull(v) {
			return k, v
		}
	}
	return nil, nil
}

// piece is a contentBlockDelta's delta, understood.
type piece struct {
	kind turn.Kind      // Text, Sign or Extra
	of   turn.BlockKind // of the block that it belongs to, and opens if there is none
	name []byte         // of the union's member
	text []byte         // raw string of Text and Sign
}

func readDelta(delta []byte) piece {
	name, val := member(delta)
	p := piece{kind: turn.Extra, of: turn.Prose, name: name}
	switch string(name) {
	case "text":
		p.kind, p.text = turn.Text, val
	case "toolUse":
		p.kind, p.of, p.text = turn.Text, turn.Call, jsonwalk.Get(val, "input")
	case "reasoningContent":
		switch part, body := member(val); string(part) {
		case "text":
			p.kind, p.of, p.text = turn.Text, turn.Reasoning, body
		case "signature":
			p.kind, p.of, p.text = turn.Sign, turn.Reasoning, body
		case "redactedContent":
			p.of = turn.Redacted
		default:
			p.of = turn.Reasoning
		}
	case "citation":
	case "toolResult":
		p.of = turn.HostedResult
	default:
		p.of = turn.Unknown
	}
	if _, isString := jsonwalk.String(p.text); p.kind != turn.Extra && !isString {
		p.kind, p.text = turn.Extra, nil
	}
	return p
}

// opening is a contentBlockStart's start. Text and reasoning have none of their own, or an empty one: kind is 0 then.
type opening struct {
	kind     turn.BlockKind
	id, name []byte // string bodies
}

func readStart(start []byte) (o opening) {
	name, val := member(start)
	switch string(name) {
	case "", "text", "reasoningContent":
		return o
	case "toolUse":
		o.kind = turn.Call
		o.name, _ = jsonwalk.String(jsonwalk.Get(val, "name"))
		if plain(jsonwalk.Get(val, "type")) == "server_tool_use" {
			o.kind = turn.Hosted
		}
	case "toolResult":
		o.kind, o.name = turn.HostedResult, name
	default:
		o.kind, o.name = turn.Unknown, name
	}
	o.id, _ = jsonwalk.String(jsonwalk.Get(val, "toolUseId"))
	return o
}

// whyOf maps stopReason (API reference, MessageStopEvent).
func whyOf(reason []byte) turn.Why {
	switch string(reason) {
	case "end_turn", "stop_sequence":
		return turn.Stopped
	case "tool_use":
		return turn.ToolUse
	case "max_tokens", "model_context_window_exceeded":
		return turn.Length
	case "guardrail_intervened", "content_filtered":
		return turn.Filtered
	}
	// malformed_tool_use and malformed_model_output too: how the provider itself ended the turn is its answer.
	return turn.OtherEnd
}

// reasonOf is whyOf backwards.
func reasonOf(why turn.Why, stop string) string {
	switch why {
	case turn.ToolUse:
		return "tool_use"
	case turn.Length:
		return "max_tokens"
	case turn.Filtered:
		return "content_filtered"
	}
	if stop != "" {
		return "stop_sequence"
	}
	return "end_turn"
}
