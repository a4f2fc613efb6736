package interactions

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

var _ dialect.Unfolder = Dialect{}

// Unfold implements dialect.Unfolder: the interaction is created, each of its steps
// starts and stops around what it holds, and it ends by its status. Steps of the
// caller's are not the model's. One that goes on in the background is no answer yet:
// the decoder takes its status for no end.
func (Dialect) Unfold(answer []byte) []sse.Event {
	steps := jsonwalk.Get(answer, "steps")
	if fault := jsonwalk.Get(answer, "error"); fault != nil && !jsonwalk.IsNull(fault) {
		return []sse.Event{told("error", `"error":`, fault)}
	}
	if jsonwalk.KindOf(steps) != jsonwalk.KindArray {
		return nil
	}
	head := jsonwalk.DeleteMember(nil, answer, "steps")
	events := []sse.Event{told("interaction.created", `"interaction":`, head)}
	for i, s := range jsonwalk.All(steps) {
		if typeOf(s) != "user_input" && typeOf(s) != "function_result" {
			events = unfoldStep(events, strconv.Itoa(i), s)
		}
	}
	return append(events, told("interaction.completed", `"interaction":`, head), sse.Event{Name: []byte("done"), Data: []byte("[DONE]")})
}

func told(typ, members string, raw []byte) sse.Event {
	data := append([]byte("{"+members), raw...)
	return dialect.Told(typ, append(data, `,"event_type":"`+typ+`"}`...))
}

// unfoldStep tells a step: texts, summaries and signatures come as deltas, everything
// else stands in its opening.
func unfoldStep(events []sse.Event, index string, step []byte) []sse.Event {
	at := `"index":` + index
	delta := func(raw []byte) { events = append(events, told("step.delta", at+`,"delta":`, raw)) }
	switch typeOf(step) {
	case "model_output":
		events = append(events, told("step.start", at+`,"step":`, []byte(`{"type":"model_output"}`)))
		for _, c := range jsonwalk.All(jsonwalk.Get(step, "content")) {
			delta(c)
		}
	case "thought":
		events = append(events, told("step.start", at+`,"step":`, []byte(`{"type":"thought"}`)))
		for _, c := range jsonwalk.All(jsonwalk.Get(step, "summary")) {
			delta(append(append([]byte(`{"type":"thought_summary","content":`), c...), '}'))
		}
		if s := jsonwalk.Get(step, "signature"); s != nil {
			delta(append(append([]byte(`{"type":"thought_signature","signature":`), s...), '}'))
		}
	default:
		events = append(events, told("step.start", at+`,"step":`, step))
	}
	return append(events, told("step.stop", at, nil))
}
