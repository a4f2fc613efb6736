package faultinject

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// RenderResponses returns the stream of a as OpenAI Responses sends it, one
// element per SSE event (WIRE 1.2).
func RenderResponses(a Answer, o Options) [][]byte { return Raws(responsesEvents(a, o)) }

// responsesStream collects events. Every one of them has the next
// sequence_number, from 0.
type responsesStream struct {
	o      Options
	seq    int
	events []Event
}

// add appends an event; item is the type of the item that is opened, if any.
func (s *responsesStream) add(name, item, members string) {
	payload := fmt.Sprintf(`{"type":"%s","sequence_number":%d,%s}`, name, s.seq, members)
	s.seq++
	s.events = append(s.events, Event{responsesKind(name, item), frame(s.o.Variant, name, payload)})
}

// delta appends an increment, padded as OpenAI pads it.
func (s *responsesStream) delta(name, members string) {
	s.add(name, "", members+padding(s.o, name+members))
}

// responsesEvents renders a with each event's kind.
func responsesEvents(a Answer, o Options) []Event {
	o = o.withDefaults(responsesPrefix)
	items := responsesItems(a, o)
	s := &responsesStream{o: o}
	first := "in_progress"
	if o.background() {
		first = "queued"
	}
	s.add("response.created", "", `"response":`+responseObject(o, first, nil, ""))
	if o.background() {
		s.add("response.queued", "", `"response":`+responseObject(o, "queued", nil, ""))
	}
	s.add("response.in_progress", "", `"response":`+responseObject(o, "in_progress", nil, ""))
	for i, it := range items {
		s.item(i, it)
	}
	status, more := responsesFinish(a, o)
	s.add("response."+status, "", `"response":`+responseObject(o, status, items, more))
	return finishFrames(o.Variant, s.events)
}

// item renders one output item from its opening to its end.
func (s *responsesStream) item(index int, it responsesItem) {
	o := s.o
	s.add("response.output_item.added", it.kind, fmt.Sprintf(`"output_index":%d,"item":%s`, index, it.opening(o)))
	at := func() string { return fmt.Sprintf(`"item_id":%s,"output_index":%d`, quote(it.name(o)), index) }
	switch it.kind {
	case "message":
		for n, k := range it.parts {
			s.part(func() string { return fmt.Sprintf(`%s,"content_index":%d`, at(), n) }, k)
		}
	case "reasoning":
		s.reasoning(at, it)
	case "function_call":
		for _, p := range pieces(it.args(), o) {
			s.delta("response.function_call_arguments.delta", at()+`,"delta":`+p)
		}
		s.add("response.function_call_arguments.done", "", at()+`,"arguments":`+quote(it.args()))
	case "custom_tool_call":
		for _, p := range pieces(it.parts[0].Args, o) {
			s.delta("response.custom_tool_call_input.delta", at()+`,"delta":`+p)
		}
		s.add("response.custom_tool_call_input.done", "", at()+`,"input":`+quote(it.parts[0].Args))
	case "web_search_call":
		for _, stage := range []string{"in_progress", "searching", "completed"} {
			s.add("response.web_search_call."+stage, "", at())
		}
	}
	s.add("response.output_item.done", it.kind, fmt.Sprintf(`"output_index":%d,"item":%s`, index, it.whole(o)))
}

// part renders one content part of a message.
func (s *responsesStream) part(at func() string, k Block) {
	s.add("response.content_part.added", "", at()+`,"part":`+responsesPart(Block{Kind: k.Kind}, s.o))
	if k.Kind == RefusalBlock {
		for _, p := range pieces(k.Text, s.o) {
			s.delta("response.refusal.delta", at()+`,"delta":`+p)
		}
		s.add("response.refusal.done", "", at()+`,"refusal":`+quote(k.Text))
	} else {
		notes, said := k.annotations(), 0
		for _, p := range pieces(k.Text, s.o) {
			s.delta("response.output_text.delta", at()+`,"delta":`+p+`,"logprobs":[`+responsesLogprobs(s.o, p)+`]`)
			said += utf8.RuneCountInString(unquote(p))
			for n, note := range notes {
				if note.end <= said && !note.told {
					s.add("response.output_text.annotation.added", "", fmt.Sprintf(`%s,"annotation_index":%d,"annotation":%s`, at(), n, note.json))
					notes[n].told = true
				}
			}
		}
		s.add("response.output_text.done", "", at()+`,"text":`+quote(k.Text)+`,"logprobs":[`+allLogprobs(k.Text, s.o)+`]`)
	}
	s.add("response.content_part.done", "", at()+`,"part":`+responsesPart(k, s.o))
}

// reasoning renders the text of a reasoning item, if the caller is to see any.
func (s *responsesStream) reasoning(at func() string, it responsesItem) {
	text := it.thought(s.o)
	if text == "" {
		return
	}
	if s.o.Variant.ReasoningText {
		for _, p := range pieces(text, s.o) {
			s.delta("response.reasoning_text.delta", at()+`,"content_index":0,"delta":`+p)
		}
		s.add("response.reasoning_text.done", "", at()+`,"content_index":0,"text":`+quote(text))
		return
	}
	s.add("response.reasoning_summary_part.added", "", at()+`,"summary_index":0,"part":{"type":"summary_text","text":""}`)
	for _, p := range pieces(text, s.o) {
		s.delta("response.reasoning_summary_text.delta", at()+`,"summary_index":0,"delta":`+p)
	}
	s.add("response.reasoning_summary_text.done", "", at()+`,"summary_index":0,"text":`+quote(text))
	s.add("response.reasoning_summary_part.done", "", at()+`,"summary_index":0,"part":{"type":"summary_text","text":`+quote(text)+`}`)
}

// responsesKind classifies an event by its name and the type of the item it
// opens or closes.
func responsesKind(name, item string) Kind {
	switch name {
	case "response.created":
		return KindStart
	case "response.output_item.added":
		if item == "function_call" || item == "custom_tool_call" {
			return KindTool
		}
		return KindOpen
	case "response.output_item.done":
		return KindClose
	case "response.output_text.delta", "response.refusal.delta":
		return KindText
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return KindThinking
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		return KindArgs
	case "response.completed", "response.incomplete", "response.failed":
		return KindEnd
	case "keepalive":
		return KindPing
	}
	return KindOther
}

// padding is the member OpenAI adds to deltas so that their length tells
// nothing.
func padding(o Options, salt string) string {
	if !o.Variant.Obfuscation {
		return ""
	}
	pad := label(o.Seed, salt)
	return `,"obfuscation":` + quote(pad[:1+hash64(salt)%16])
}

func responsesLogprobs(o Options, piece string) string {
	if !o.Logprobs {
		return ""
	}
	return logprobOf(piece)
}

func allLogprobs(text string, o Options) string {
	if !o.Logprobs {
		return ""
	}
	var all []string
	for _, p := range pieces(text, o) {
		all = append(all, logprobOf(p))
	}
	return strings.Join(all, ",")
}
