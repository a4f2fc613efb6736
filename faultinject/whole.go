package faultinject

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Render returns the stream of a in dialect d with each event's kind.
func Render(d Dialect, a Answer, o Options) []Event {
	return d.speaker().events(a, o)
}

// RenderWhole returns a as the ordinary JSON answer to a request that did not
// ask for a stream.
func RenderWhole(d Dialect, a Answer, o Options) []byte {
	return d.speaker().whole(a, o)
}

func chatWhole(a Answer, o Options) []byte {
	content, refusal, members := "null", "null", ""
	if text := a.Text(); text != "" || len(a.Calls()) == 0 {
		content = quote(text)
	}
	var reasoning strings.Builder
	var calls []string
	for _, k := range a.Blocks {
		switch k.Kind {
		case RefusalBlock:
			refusal, content = quote(k.Text), "null"
		case ThinkingBlock:
			reasoning.WriteString(k.Text)
		case ToolBlock:
			id, args := k.ID, k.Args
			if id == "" {
				id = callID("call_", o, len(calls))
			}
			if args == "" {
				args = "{}"
			}
			calls = append(calls, fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, quote(id), quote(k.Name), quote(args)))
		}
	}
	if reasoning.Len() > 0 {
		members += `,"reasoning_content":` + quote(reasoning.String())
	}
	if len(calls) > 0 {
		members += `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	}
	choices := make([]string, o.N)
	for i := range choices {
		choices[i] = fmt.Sprintf(`{"index":%d,"message":{"role":"assistant","content":%s,"refusal":%s%s},"logprobs":null,"finish_reason":%s}`,
			i, content, refusal, members, quote(chatFinish(a.Finish)))
	}
	return fmt.Appendf(nil, `{"id":%s,"object":"chat.completion","created":%d,"model":%s,"choices":[%s],"usage":%s,"service_tier":"default","system_fingerprint":"fp_faultinject"}`,
		quote(o.ID), o.Created, quote(o.Model), strings.Join(choices, ","), chatUsage(a, o))
}

func messagesWhole(a Answer, o Options) []byte {
	a = a.without(CustomBlock, SearchBlock, CodeBlock)
	blocks := make([]string, len(a.Blocks))
	for i, k := range a.Blocks {
		switch k.Kind {
		case TextBlock, RefusalBlock:
			blocks[i] = `{"type":"text","text":` + quote(k.Text) + `}`
		case ThinkingBlock:
			blocks[i] = `{"type":"thinking","thinking":` + quote(k.Text) + `,"signature":` + quote(k.signature()) + `}`
		case RedactedBlock:
			blocks[i] = `{"type":"redacted_thinking","data":` + quote(k.Text) + `}`
		case ToolBlock:
			id, args := k.ID, k.Args
			if id == "" {
				id = callID("toolu_01", o, i)
			}
			if !json.Valid([]byte(args)) {
				args = "{}" // none, or cut by max_tokens
			}
			blocks[i] = fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, quote(id), quote(k.Name), args)
		}
	}
	sequence := "null"
	if a.Finish == FinishSequence {
		sequence = quote(a.StopSequence)
	}
	u := a.usage(o)
	return fmt.Appendf(nil, `{"model":%s,"id":%s,"type":"message","role":"assistant","content":[%s],"stop_reason":%s,"stop_sequence":%s,`+
		`"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":%d,"service_tier":"standard"%s}}`,
		quote(o.Model), quote(o.ID), strings.Join(blocks, ","), quote(messagesFinish(a.Finish)), sequence, u.In, u.CacheRead, u.Out, thinkingTokens(u))
}
