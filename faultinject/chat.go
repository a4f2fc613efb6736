package faultinject

import (
	"fmt"
	"strings"
)

// RenderChat returns the stream of a as OpenAI Chat Completions sends it, one
// element per SSE event (WIRE 1.1).
func RenderChat(a Answer, o Options) [][]byte { return Raws(chatEvents(a, o)) }

// chatChunk is one chunk of one choice before it is framed.
type chatChunk struct {
	kind     Kind
	delta    string // the members of the delta object
	logprobs string
	finish   string
}

// chatEvents renders a with each event's kind.
func chatEvents(a Answer, o Options) []Event {
	o = o.withDefaults("chatcmpl-")
	chunks := chatChunks(a, o)
	var events []Event
	for i, c := range chunks {
		// The choices of an n>1 request interleave, one per chunk.
		for choice := range o.N {
			last := i == len(chunks)-1
			events = append(events, Event{c.kind, chatFrame(a, o, c, choice, last && o.Variant.UsageFinish)})
		}
	}
	if o.IncludeUsage && !o.Variant.UsageFinish {
		events = append(events, Event{KindUsage, frame(o.Variant, "", chatHead(o)+
			`"choices":[],"usage":`+chatUsage(a, o)+padding(o, "usage")+`}`)})
	}
	if !o.Variant.NoDone {
		events = append(events, Event{KindEnd, frame(o.Variant, "", "[DONE]")})
	}
	return finishFrames(o.Variant, events)
}

// chatChunks renders one choice.
func chatChunks(a Answer, o Options) []chatChunk {
	chunks := []chatChunk{{kind: KindStart, delta: `"role":"assistant","content":"","refusal":null`}}
	calls := 0
	for _, k := range a.Blocks {
		switch k.Kind {
		case TextBlock:
			for _, p := range pieces(k.Text, o) {
				chunks = append(chunks, chatChunk{kind: KindText, delta: `"content":` + p, logprobs: chatLogprobs(o, p)})
			}
		case RefusalBlock:
			for _, p := range pieces(k.Text, o) {
				chunks = append(chunks, chatChunk{kind: KindText, delta: `"refusal":` + p})
			}
		case ThinkingBlock:
			field := "reasoning_content"
			if o.Variant.Reasoning {
				field = "reasoning"
			}
			for _, p := range pieces(k.Text, o) {
				chunks = append(chunks, chatChunk{kind: KindThinking, delta: `"` + field + `":` + p})
			}
		case ToolBlock:
			chunks = append(chunks, chatCall(k, calls, o)...)
			calls++
		case RedactedBlock, CustomBlock, SearchBlock:
			// Chat has no form for them here.
		}
	}
	finish := chatFinish(a.Finish)
	if last := &chunks[len(chunks)-1]; o.Variant.MergeFinish && len(chunks) > 1 {
		last.finish, last.kind = finish, KindFinish
		return chunks
	}
	return append(chunks, chatChunk{kind: KindFinish, finish: finish})
}

func chatCall(k Block, n int, o Options) []chatChunk {
	id, args := k.ID, k.Args
	if id == "" {
		id = callID("call_", o, n)
	}
	if args == "" {
		args = "{}"
	}
	head := fmt.Sprintf(`"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":`, n, quote(id), quote(k.Name))
	if o.Variant.WholeCalls {
		return []chatChunk{{kind: KindArgs, delta: head + quote(args) + `}}]`}}
	}
	chunks := []chatChunk{{kind: KindTool, delta: head + `""}}]`}}
	for _, p := range pieces(args, o) {
		chunks = append(chunks, chatChunk{kind: KindArgs,
			delta: fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, n, p)})
	}
	return chunks
}

func chatHead(o Options) string {
	return fmt.Sprintf(`{"id":%s,"object":"chat.completion.chunk","created":%d,"model":%s,"service_tier":"default","system_fingerprint":"fp_faultinject",`,
		quote(o.ID), o.Created, quote(o.Model))
}

func chatFrame(a Answer, o Options, c chatChunk, choice int, withUsage bool) []byte {
	delta, finish, logprobs := c.delta, "null", "null"
	if o.Variant.RoleAlways && !strings.HasPrefix(delta, `"role"`) {
		delta = strings.TrimSuffix(`"role":"assistant",`+delta, ",")
	}
	if c.finish != "" {
		finish = quote(c.finish)
	}
	if c.logprobs != "" {
		logprobs = c.logprobs
	}
	usage := ""
	switch {
	case withUsage:
		usage = `,"usage":` + chatUsage(a, o)
	case o.IncludeUsage:
		usage = `,"usage":null`
	}
	return frame(o.Variant, "", fmt.Sprintf(`%s"choices":[{"index":%d,"delta":{%s},"logprobs":%s,"finish_reason":%s}]%s%s}`,
		chatHead(o), choice, delta, logprobs, finish, usage, padding(o, c.delta)))
}

func chatLogprobs(o Options, piece string) string {
	if !o.Logprobs {
		return ""
	}
	return `{"content":[` + logprobOf(piece) + `],"refusal":null}`
}

// logprobOf is OpenAI's record of one token.
func logprobOf(piece string) string {
	raw := unquote(piece)
	bytesList := make([]string, len(raw))
	for i := range len(raw) {
		bytesList[i] = fmt.Sprint(raw[i])
	}
	return fmt.Sprintf(`{"token":%s,"logprob":-0.0123,"bytes":[%s],"top_logprobs":[]}`, piece, strings.Join(bytesList, ","))
}

func chatUsage(a Answer, o Options) string {
	u := a.usage(o)
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":%d,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		u.In, u.Out, u.In+u.Out, u.CacheRead, u.Reasoning)
}

func chatFinish(f Finish) string {
	switch f {
	case FinishTool:
		return "tool_calls"
	case FinishLength:
		return "length"
	case FinishRefusal:
		return "content_filter"
	default:
		return "stop"
	}
}
