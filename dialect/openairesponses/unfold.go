package openairesponses

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

var _ dialect.Unfolder = Dialect{}

// Unfold implements [dialect.Unfolder]: the response is created, its items are done, as hosts tell them that stream whole
// items, and it ends by its status. One in the background, which has not ended, is no answer yet.
func (Dialect) Unfold(answer []byte) []sse.Event {
	if text(jsonwalk.Get(answer, "object")) != "response" && jsonwalk.KindOf(jsonwalk.Get(answer, "output")) != jsonwalk.KindArray {
		return nil
	}
	end := ""
	switch text(jsonwalk.Get(answer, "status")) {
	case "completed":
		end = "response.completed"
	case "incomplete":
		end = "response.incomplete"
	case "failed":
		end = "response.failed"
	default:
		return nil
	}
	tell := func(typ, members string, raw []byte) sse.Event {
		data := append([]byte(`{"type":"`+typ+`",`+members), raw...)
		return dialect.Told(typ, append(data, '}'))
	}
	head := jsonwalk.SetMember(nil, answer, "output", []byte("[]"))
	events := []sse.Event{tell("response.created", `"response":`, head)}
	for i, item := range jsonwalk.All(jsonwalk.Get(answer, "output")) {
		events = append(events, tell("response.output_item.done", `"output_index":`+strconv.Itoa(i)+`,"item":`, item))
	}
	return append(events, tell(end, `"response":`, head))
}
