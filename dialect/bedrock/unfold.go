package bedrock

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

// Invoke's are those of Messages, which are what its chunks hold.
var _, _ dialect.Unfolder = Converse{}, Invoke{}

// Unfold implements [dialect.Unfolder]: the frames of ConverseStream, a block's words in one delta.
func (Converse) Unfold(answer []byte) []sse.Event {
	message, reason := jsonwalk.Get(answer, "output", "message"), jsonwalk.Get(answer, "stopReason")
	if jsonwalk.KindOf(message) != jsonwalk.KindObject || jsonwalk.KindOf(reason) != jsonwalk.KindString {
		return nil
	}
	events := []sse.Event{dialect.Told("messageStart", jsonwalk.DeleteMember(nil, message, "content"))}
	for i, block := range jsonwalk.All(jsonwalk.Get(message, "content")) {
		events = unfoldBlock(events, `{"contentBlockIndex":`+strconv.Itoa(i), block)
	}
	end := append(append([]byte(`{"stopReason":`), reason...), '}')
	rest := jsonwalk.DeleteMember(nil, jsonwalk.DeleteMember(nil, answer, "output"), "stopReason")
	return append(events, dialect.Told("messageStop", end), dialect.Told("metadata", rest))
}

// unfoldBlock tells a block, which is grow backwards. at is the beginning of each of its frames.
func unfoldBlock(events []sse.Event, at string, block []byte) []sse.Event {
	tell := func(name, key string, raw []byte) {
		events = append(events, dialect.Told(name, append(append([]byte(at+`,"`+key+`":`), raw...), '}')))
	}
	delta := func(before string, raw []byte, after string) {
		if raw != nil {
			tell("contentBlockDelta", "delta", append(append([]byte(before), raw...), after...))
		}
	}
	switch name, val := member(block); string(name) {
	case "text":
		delta(`{"text":`, val, `}`)
	case "toolUse":
		tell("contentBlockStart", "start", append(append([]byte(`{"toolUse":`), jsonwalk.DeleteMember(nil, val, "input")...), '}'))
		if input := jsonwalk.Get(val, "input"); input != nil {
			delta(`{"toolUse":{"input":"`, jsonwalk.Escape(nil, input), `"}}`)
		}
	case "reasoningContent":
		words := jsonwalk.Get(val, "reasoningText")
		delta(`{"reasoningContent":{"text":`, jsonwalk.Get(words, "text"), `}}`)
		delta(`{"reasoningContent":{"signature":`, jsonwalk.Get(words, "signature"), `}}`)
		delta(`{"reasoningContent":{"redactedContent":`, jsonwalk.Get(val, "redactedContent"), `}}`)
	case "citationsContent":
		for _, c := range jsonwalk.All(jsonwalk.Get(val, "content")) {
			delta(``, c, ``)
		}
		for _, c := range jsonwalk.All(jsonwalk.Get(val, "citations")) {
			delta(`{"citation":`, c, `}`)
		}
	default:
		tell("contentBlockStart", "start", block)
	}
	events = append(events, dialect.Told("contentBlockStop", []byte(at+"}")))
	return events
}
