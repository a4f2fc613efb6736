package faultinject

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/unbroken-llm/unbroken/eventstream"
)

// converseStream collects the frames of ConverseStream (WIRE 1.6). Members stand
// in the order of their names, the padding among them, as the service writes them.
type converseStream struct {
	o      Options
	events []Event
}

func (s *converseStream) add(kind Kind, name string, members ...string) {
	members = append(members, `"p":"`+pad(s.o, len(s.events))+`"`)
	slices.Sort(members)
	payload := "{" + strings.Join(members, ",") + "}"
	s.events = append(s.events, Event{kind, eventstream.Append(nil, eventstream.Event, name, []byte(payload))})
}

func (s *converseStream) delta(kind Kind, index int, member string) {
	s.add(kind, "contentBlockDelta", contentIndex(index), `"delta":{`+member+`}`)
}

func contentIndex(n int) string { return fmt.Sprintf(`"contentBlockIndex":%d`, n) }

// converseEvents renders a with each event's kind. Only calls have a start, and
// the last frame is the record of what it took.
func converseEvents(a Answer, o Options) []Event {
	o, a = o.withDefaults(""), a.without(CustomBlock, SearchBlock, CodeBlock)
	s := &converseStream{o: o}
	s.add(KindStart, "messageStart", `"role":"assistant"`)
	for i, k := range a.Blocks {
		s.block(i, k)
	}
	s.add(KindFinish, "messageStop", `"stopReason":`+quote(converseFinish(a.Finish)))
	u := a.usage(o)
	s.add(KindEnd, "metadata", converseMetrics(u), converseUsage(u))
	return s.events
}

// block renders one content block up to its stop.
func (s *converseStream) block(i int, k Block) {
	switch k.Kind {
	case TextBlock, RefusalBlock:
		for _, p := range pieces(k.Text, s.o) {
			s.delta(KindText, i, `"text":`+p)
		}
	case ThinkingBlock:
		for _, p := range pieces(k.Text, s.o) {
			s.delta(KindThinking, i, `"reasoningContent":{"text":`+p+`}`)
		}
		s.delta(KindSignature, i, `"reasoningContent":{"signature":`+quote(k.signature())+`}`)
	case RedactedBlock:
		s.delta(KindOther, i, `"reasoningContent":{"redactedContent":"`+base64.StdEncoding.EncodeToString([]byte(k.Text))+`"}`)
	case ToolBlock:
		s.add(KindTool, "contentBlockStart", contentIndex(i), fmt.Sprintf(`"start":{"toolUse":{"name":%s,"toolUseId":%s}}`, quote(k.Name), quote(k.toolUseID(s.o, i))))
		// The first fragment is empty; a call without arguments has only that.
		s.delta(KindArgs, i, `"toolUse":{"input":""}`)
		for _, p := range pieces(k.Args, s.o) {
			s.delta(KindArgs, i, `"toolUse":{"input":`+p+`}`)
		}
	}
	s.add(KindClose, "contentBlockStop", contentIndex(i))
}

func (k Block) toolUseID(o Options, n int) string {
	if k.ID != "" {
		return k.ID
	}
	return callID("tooluse_", o, n)
}

// converseWhole renders the answer of Converse.
func converseWhole(a Answer, o Options) []byte {
	o, a = o.withDefaults(""), a.without(CustomBlock, SearchBlock, CodeBlock)
	blocks := make([]string, len(a.Blocks))
	for i, k := range a.Blocks {
		switch k.Kind {
		case TextBlock, RefusalBlock:
			blocks[i] = `{"text":` + quote(k.Text) + `}`
		case ThinkingBlock:
			blocks[i] = `{"reasoningContent":{"reasoningText":{"signature":` + quote(k.signature()) + `,"text":` + quote(k.Text) + `}}}`
		case RedactedBlock:
			blocks[i] = `{"reasoningContent":{"redactedContent":"` + base64.StdEncoding.EncodeToString([]byte(k.Text)) + `"}}`
		case ToolBlock:
			args := k.Args
			if !json.Valid([]byte(args)) {
				args = "{}" // none, or cut by maxTokens
			}
			blocks[i] = fmt.Sprintf(`{"toolUse":{"input":%s,"name":%s,"toolUseId":%s}}`, args, quote(k.Name), quote(k.toolUseID(o, i)))
		}
	}
	u := a.usage(o)
	return fmt.Appendf(nil, `{%s,"output":{"message":{"content":[%s],"role":"assistant"}},"stopReason":%s,%s}`,
		converseMetrics(u), strings.Join(blocks, ","), quote(converseFinish(a.Finish)), converseUsage(u))
}

func converseFinish(f Finish) string {
	switch f {
	case FinishTool:
		return "tool_use"
	case FinishLength:
		return "max_tokens"
	case FinishSequence:
		return "stop_sequence"
	case FinishRefusal, FinishBlocked:
		return "content_filtered"
	}
	return "end_turn"
}

func converseUsage(u Usage) string {
	cache := ""
	if u.CacheRead > 0 {
		cache = fmt.Sprintf(`"cacheReadInputTokens":%d,`, u.CacheRead)
	}
	return fmt.Sprintf(`"usage":{%s"inputTokens":%d,"outputTokens":%d,"totalTokens":%d}`, cache, u.In, u.Out, u.In+u.CacheRead+u.Out)
}

// converseMetrics is a time that follows from the answer.
func converseMetrics(u Usage) string { return fmt.Sprintf(`"metrics":{"latencyMs":%d}`, latency(u)) }

func latency(u Usage) int { return 250 + 12*u.Out }

// converseKind tells the kind of a frame of ConverseStream.
func converseKind(name string, payload []byte) Kind {
	switch name {
	case "messageStart":
		return KindStart
	case "contentBlockStart":
		return KindTool
	case "contentBlockStop":
		return KindClose
	case "messageStop":
		return KindFinish
	case "metadata":
		return KindEnd
	case "contentBlockDelta":
	case "comment":
		return KindPing
	default:
		return KindOther
	}
	var e struct {
		Delta struct {
			Text      *string
			ToolUse   *struct{}
			Reasoning struct {
				Text, Signature *string
			} `json:"reasoningContent"`
		}
	}
	switch err := json.Unmarshal(payload, &e); {
	case err != nil:
		return KindOther
	case e.Delta.Text != nil:
		return KindText
	case e.Delta.ToolUse != nil:
		return KindArgs
	case e.Delta.Reasoning.Text != nil:
		return KindThinking
	case e.Delta.Reasoning.Signature != nil:
		return KindSignature
	}
	return KindOther
}
