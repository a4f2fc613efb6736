package faultinject

import (
	"fmt"
	"strings"
	"time"
)

const interactionPrefix = "v1_"

// RenderInteractions returns the stream of a as Gemini Interactions sends it, one
// element per event (WIRE 1.5).
func RenderInteractions(a Answer, o Options) [][]byte { return Raws(interactionsEvents(a, o)) }

// interactionStream collects events.
type interactionStream struct {
	o             Options
	u             Usage
	events        []Event
	thoughts, out int // tokens so far
}

// add frames an event; members begin its payload. The events of an interaction
// that is kept have ids to resume from.
func (s *interactionStream) add(kind Kind, name, members string) {
	id := ""
	if s.o.Kept {
		id = `,"event_id":` + quote(eventID(s.o, len(s.events)))
	}
	s.events = append(s.events, Event{kind, frame(s.o.Variant, name, `{`+members+`,"event_type":"`+name+`"`+id+`}`)})
}

// eventID is the cursor behind the n-th event of an interaction.
func eventID(o Options, n int) string { return "ev_" + label(uint64(n), o.ID, "event") }

func (s *interactionStream) delta(kind Kind, index int, delta, more string) {
	s.add(kind, "step.delta", fmt.Sprintf(`"index":%d,"delta":{%s}%s`, index, delta, more))
}

// step renders one step from its start to its stop.
func (s *interactionStream) step(kind Kind, index int, head string, deltas func()) {
	s.add(kind, "step.start", fmt.Sprintf(`"index":%d,"step":{%s}`, index, head))
	deltas()
	s.add(KindClose, "step.stop", fmt.Sprintf(`"index":%d`, index))
}

// interactionsEvents renders a with each event's kind.
func interactionsEvents(a Answer, o Options) []Event {
	o = o.withDefaults(interactionPrefix)
	s := &interactionStream{o: o, u: a.usage(o)}
	s.add(KindStart, "interaction.created", `"interaction":`+interactionObject(o, "in_progress", "")+`,"metadata":{"usage":`+s.usage()+`}`)
	s.add(KindOther, "interaction.status_update", `"interaction_id":`+quote(o.ID)+`,"status":"in_progress"`)
	index := 0
	for i, k := range a.Blocks {
		index += s.block(index, k, i == len(a.Blocks)-1, a.Sources)
	}
	s.thoughts, s.out = max(s.thoughts, s.u.Reasoning), max(s.out, s.u.Out-s.u.Reasoning)
	s.add(KindFinish, "interaction.completed", `"interaction":`+interactionObject(o, interactionStatus(a), `,"usage":`+s.usage()+interactionTimes(o)))
	if !o.Variant.NoDone {
		s.events = append(s.events, Event{KindEnd, frame(o.Variant, "done", "[DONE]")})
	}
	return finishFrames(o.Variant, s.events)
}

// block renders a block and returns how many steps it took.
func (s *interactionStream) block(i int, k Block, last bool, sources []Source) int {
	switch k.Kind {
	case TextBlock, RefusalBlock:
		s.step(KindOpen, i, `"type":"model_output"`, func() {
			for _, p := range pieces(k.Text, s.o) {
				s.out++
				s.delta(KindText, i, `"text":`+p+`,"type":"text"`, "")
			}
			if last && len(sources) > 0 {
				s.delta(KindOther, i, `"annotations":[`+citations(k.Text, sources)+`],"type":"text_annotation_delta"`, "")
			}
		})
	case ThinkingBlock:
		s.step(KindOpen, i, `"type":"thought"`, func() {
			for _, p := range pieces(k.Text, s.o) {
				s.thoughts++
				s.delta(KindThinking, i, `"content":{"text":`+p+`,"type":"text"},"type":"thought_summary"`, `,"metadata":{"usage":`+s.usage()+`}`)
			}
			s.delta(KindSignature, i, `"signature":`+quote(signPart("thought", k.Text))+`,"type":"thought_signature"`, "")
		})
	case ToolBlock:
		if _, whole := wholeArgs(k.Args); !whole {
			return 0
		}
		s.step(KindTool, i, fmt.Sprintf(`"id":%s,"signature":"","type":"function_call","name":%s,"arguments":{}`, quote(k.callID(i, s.o)), quote(k.Name)), func() {
			args, _ := wholeArgs(k.Args)
			for _, p := range pieces(args, s.o) {
				s.out++
				s.delta(KindArgs, i, `"arguments":`+p+`,"type":"arguments_delta"`, "")
			}
		})
	case CodeBlock:
		id := quote(shortID(s.o, fmt.Sprint("code", i)))
		code := `"arguments":{"language":"python","code":` + quote(k.Args) + `}`
		s.step(KindOther, i, `"id":`+id+`,"type":"code_execution_call","arguments":{}`, func() {
			s.delta(KindOther, i, code+`,"type":"code_execution_call"`, "")
		})
		s.step(KindOther, i+1, `"call_id":`+id+`,"type":"code_execution_result","result":""`, func() {
			s.delta(KindOther, i+1, `"result":`+quote(k.Text)+`,"is_error":false,"type":"code_execution_result"`, "")
		})
		return 2
	default:
		return 0
	}
	return 1
}

// citations are annotations of a text with what a search found.
func citations(text string, sources []Source) string {
	list := make([]string, len(sources))
	for i, src := range sources {
		list[i] = fmt.Sprintf(`{"type":"url_citation","url":%s,"title":%s,"start_index":0,"end_index":%d}`, quote(src.URI), quote(src.Title), len(text))
	}
	return strings.Join(list, ",")
}

// interactionStatus is how an interaction ends. A prompt that was blocked leaves
// it failed.
func interactionStatus(a Answer) string {
	switch a.Finish {
	case FinishTool:
		return "requires_action"
	case FinishLength, FinishRefusal:
		return "incomplete"
	case FinishBlocked:
		return "failed"
	default:
		return "completed"
	}
}

func interactionObject(o Options, status, more string) string {
	return fmt.Sprintf(`{"id":%s,"status":%s%s,"object":"interaction","model":%s}`, quote(o.ID), quote(status), more, quote(modelName(o.Model)))
}

func interactionTimes(o Options) string {
	at := quote(time.Unix(o.Created, 0).UTC().Format(time.RFC3339))
	return `,"created":` + at + `,"updated":` + at + `,"service_tier":"standard"`
}

// usage is the running total.
func (s *interactionStream) usage() string { return interactionUsage(s.u, s.thoughts, s.out) }

func interactionUsage(u Usage, thoughts, out int) string {
	return fmt.Sprintf(`{"total_tokens":%d,"total_input_tokens":%d,"input_tokens_by_modality":[{"modality":"text","tokens":%d}],"total_cached_tokens":%d,`+
		`"total_output_tokens":%d,"total_tool_use_tokens":0,"total_thought_tokens":%d}`, u.In+out+thoughts, u.In, u.In, u.CacheRead, out, thoughts)
}

// interactionsWhole renders a as an interaction that does not stream.
func interactionsWhole(a Answer, o Options) []byte {
	o = o.withDefaults(interactionPrefix)
	u := a.usage(o)
	more := `,"steps":[` + strings.Join(outputSteps(a, o), ",") + `],"usage":` + interactionUsage(u, u.Reasoning, max(0, u.Out-u.Reasoning)) + interactionTimes(o)
	return []byte(interactionObject(o, interactionStatus(a), more))
}

// outputSteps are the steps of a, whole.
func outputSteps(a Answer, o Options) []string {
	var steps []string
	for i, k := range a.Blocks {
		switch k.Kind {
		case TextBlock, RefusalBlock:
			notes := ""
			if i == len(a.Blocks)-1 && len(a.Sources) > 0 {
				notes = `,"annotations":[` + citations(k.Text, a.Sources) + `]`
			}
			steps = append(steps, `{"type":"model_output","content":[{"type":"text","text":`+quote(k.Text)+notes+`}]}`)
		case ThinkingBlock:
			steps = append(steps, `{"type":"thought","signature":`+quote(signPart("thought", k.Text))+`,"summary":[{"type":"text","text":`+quote(k.Text)+`}]}`)
		case ToolBlock:
			if args, whole := wholeArgs(k.Args); whole {
				steps = append(steps, fmt.Sprintf(`{"type":"function_call","id":%s,"name":%s,"arguments":%s}`, quote(k.callID(len(steps), o)), quote(k.Name), args))
			}
		case CodeBlock:
			id := quote(shortID(o, fmt.Sprint("code", len(steps))))
			steps = append(steps, fmt.Sprintf(`{"type":"code_execution_call","id":%s,"arguments":{"language":"python","code":%s}}`, id, quote(k.Args)),
				fmt.Sprintf(`{"type":"code_execution_result","call_id":%s,"result":%s,"is_error":false}`, id, quote(k.Text)))
		}
	}
	return steps
}
