package anthropic

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

var _ dialect.Unfolder = Dialect{}

// Unfold implements [dialect.Unfolder]: the message without its content, then each block whole in its start, which is how
// blocks that do not stream are told anyway. The events have no names: the data says what they are, in frames too.
func (Dialect) Unfold(answer []byte) []sse.Event {
	if text(jsonwalk.Get(answer, "type")) == "error" {
		return []sse.Event{{Data: answer}}
	}
	if text(jsonwalk.Get(answer, "type")) != "message" {
		return nil
	}
	head := jsonwalk.SetMember(nil, answer, "content", []byte("[]"))
	for _, late := range []string{"stop_reason", "stop_sequence"} {
		head = jsonwalk.SetMember(nil, head, late, []byte("null"))
	}
	events := []sse.Event{{Data: append(append([]byte(`{"type":"message_start","message":`), head...), '}')}}
	for i, block := range jsonwalk.All(jsonwalk.Get(answer, "content")) {
		index := strconv.Itoa(i)
		start := append([]byte(`{"type":"content_block_start","index":`+index+`,"content_block":`), block...)
		events = append(events, sse.Event{Data: append(start, '}')}, sse.Event{Data: []byte(`{"type":"content_block_stop","index":` + index + `}`)})
	}
	end := append([]byte(`{"type":"message_delta","delta":{"stop_reason":`), orNull(jsonwalk.Get(answer, "stop_reason"))...)
	end = append(append(end, `,"stop_sequence":`...), orNull(jsonwalk.Get(answer, "stop_sequence"))...)
	end = append(append(end, `},"usage":`...), orNull(jsonwalk.Get(answer, "usage"))...)
	return append(events, sse.Event{Data: append(end, '}')}, sse.Event{Data: []byte(`{"type":"message_stop"}`)})
}

func orNull(val []byte) []byte {
	if val == nil {
		return []byte("null")
	}
	return val
}
