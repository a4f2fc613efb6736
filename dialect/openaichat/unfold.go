package openaichat

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

var _ dialect.Unfolder = Dialect{}

// Unfold implements dialect.Unfolder. A chat.completion is one chunk in which a
// message stands where the delta would, and a text_completion is one chunk.
func (Wire) Unfold(answer []byte) []sse.Event {
	if jsonwalk.KindOf(answer) != jsonwalk.KindObject {
		return nil
	}
	if choices := jsonwalk.Get(answer, "choices"); jsonwalk.KindOf(choices) == jsonwalk.KindArray {
		answer = jsonwalk.SetMember(nil, answer, "choices", deltas(choices))
	}
	return []sse.Event{{Data: answer}, {Data: []byte("[DONE]")}}
}

// deltas are choices whose messages are deltas.
func deltas(choices []byte) []byte {
	return mapped(choices, func(_ int, c []byte) []byte {
		m := jsonwalk.Get(c, "message")
		if jsonwalk.KindOf(m) != jsonwalk.KindObject {
			return c
		}
		if calls := jsonwalk.Get(m, "tool_calls"); jsonwalk.KindOf(calls) == jsonwalk.KindArray {
			m = jsonwalk.SetMember(nil, m, "tool_calls", mapped(calls, indexed))
		}
		return jsonwalk.SetMember(nil, jsonwalk.DeleteMember(nil, c, "message"), "delta", m)
	})
}

// indexed gives a call its place: in a whole message each element is a call of its
// own, whatever it shares with another.
func indexed(i int, call []byte) []byte {
	if jsonwalk.KindOf(call) != jsonwalk.KindObject {
		return call
	}
	return jsonwalk.SetMember(nil, call, "index", strconv.AppendInt(nil, int64(i), 10))
}

// mapped is an array whose elements were changed.
func mapped(arr []byte, change func(int, []byte) []byte) []byte {
	out := []byte{'['}
	for i, el := range jsonwalk.All(arr) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, change(i, el)...)
	}
	return append(out, ']')
}
