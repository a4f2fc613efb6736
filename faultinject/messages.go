package faultinject

import "fmt"

// RenderMessages returns the stream of a as Anthropic Messages sends it, one
// element per SSE event (WIRE 1.3).
func RenderMessages(a Answer, o Options) [][]byte { return Raws(messagesEvents(a, o)) }

// messagesStream collects events; every payload begins with its type.
type messagesStream struct {
	o      Options
	put    func(name, payload string) []byte // how an event stands in the body
	events []Event
}

func (s *messagesStream) add(kind Kind, name, members string) {
	if members != "" {
		members = "," + members
	}
	s.events = append(s.events, Event{kind, s.put(name, `{"type":"`+name+`"`+members+`}`)})
}

func (s *messagesStream) delta(kind Kind, index int, members string) {
	s.add(kind, "content_block_delta", fmt.Sprintf(`"index":%d,"delta":{%s}`, index, members))
}

func (s *messagesStream) open(kind Kind, index int, block string) {
	s.add(kind, "content_block_start", fmt.Sprintf(`"index":%d,"content_block":{%s}`, index, block))
	if index == 0 && !s.o.Variant.NoPing {
		s.add(KindPing, "ping", "")
	}
}

// messagesEvents renders a with each event's kind.
func messagesEvents(a Answer, o Options) []Event {
	put := func(name, payload string) []byte { return frame(o.Variant, name, payload) }
	return finishFrames(o.Variant, messagesOf(a, o.withDefaults("msg_01"), put))
}

// messagesOf is messagesEvents with put to frame them.
func messagesOf(a Answer, o Options, put func(name, payload string) []byte) []Event {
	a = a.without(CustomBlock, SearchBlock, CodeBlock)
	u := a.usage(o)
	s := &messagesStream{o: o, put: put}
	cache := fmt.Sprintf(`"cache_creation_input_tokens":0,"cache_read_input_tokens":%d`, u.CacheRead)
	s.add(KindStart, "message_start", fmt.Sprintf(`"message":{"model":%s,"id":%s,"type":"message","role":"assistant","content":[],`+
		`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,%s,"output_tokens":1,"service_tier":"standard"}}`,
		quote(o.Model), quote(o.ID), u.In, cache))
	for i, k := range a.Blocks {
		s.block(i, k)
	}
	sequence := "null"
	if a.Finish == FinishSequence {
		sequence = quote(a.StopSequence)
	}
	details := thinkingTokens(u)
	s.add(KindFinish, "message_delta", fmt.Sprintf(`"delta":{"stop_reason":%s,"stop_sequence":%s},"usage":{"input_tokens":%d,%s,"output_tokens":%d%s}`,
		quote(messagesFinish(a.Finish)), sequence, u.In, cache, u.Out, details))
	s.add(KindEnd, "message_stop", "")
	return s.events
}

// block renders one content block from its start to its stop.
func (s *messagesStream) block(i int, k Block) {
	switch k.Kind {
	case TextBlock, RefusalBlock:
		s.open(KindOpen, i, `"type":"text","text":""`)
		for _, p := range pieces(k.Text, s.o) {
			s.delta(KindText, i, `"type":"text_delta","text":`+p)
		}
	case ThinkingBlock:
		s.open(KindOpen, i, `"type":"thinking","thinking":"","signature":""`)
		for _, p := range pieces(k.Text, s.o) {
			s.delta(KindThinking, i, `"type":"thinking_delta","thinking":`+p)
		}
		s.delta(KindSignature, i, `"type":"signature_delta","signature":`+quote(k.signature()))
	case RedactedBlock:
		s.open(KindOpen, i, `"type":"redacted_thinking","data":`+quote(k.Text))
	case ToolBlock:
		id := k.ID
		if id == "" {
			id = callID("toolu_01", s.o, i)
		}
		s.open(KindTool, i, fmt.Sprintf(`"type":"tool_use","id":%s,"name":%s,"input":{}`, quote(id), quote(k.Name)))
		// The first fragment is empty; a call without arguments has only that.
		s.delta(KindArgs, i, `"type":"input_json_delta","partial_json":""`)
		for _, p := range pieces(k.Args, s.o) {
			s.delta(KindArgs, i, `"type":"input_json_delta","partial_json":`+p)
		}
	}
	s.add(KindClose, "content_block_stop", fmt.Sprintf(`"index":%d`, i))
}

func (k Block) signature() string {
	if k.Signature != "" {
		return k.Signature
	}
	return Sign(k.Text)
}

func messagesFinish(f Finish) string {
	switch f {
	case FinishTool:
		return "tool_use"
	case FinishLength:
		return "max_tokens"
	case FinishSequence:
		return "stop_sequence"
	case FinishRefusal:
		return "refusal"
	default:
		return "end_turn"
	}
}

// thinkingTokens is what usage says of reasoning, if there was any.
func thinkingTokens(u Usage) string {
	if u.Reasoning == 0 {
		return ""
	}
	return fmt.Sprintf(`,"output_tokens_details":{"thinking_tokens":%d}`, u.Reasoning)
}
