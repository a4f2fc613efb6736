package relaytest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/eventstream"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/sse"
)

// RenderConverse renders an answer as Bedrock's ConverseStream does, one element per frame (WIRE 1.6): text and reasoning
// open with their first delta, padding in every payload, the usage last.
func RenderConverse(a faultinject.Answer, o faultinject.Options) [][]byte {
	c := converseStream{step: int(o.Seed%13) + 7, id: o.ID}
	c.event("messageStart", `"role":"assistant"`)
	for _, b := range a.Blocks {
		c.block(b)
	}
	reason := map[faultinject.Finish]string{
		faultinject.FinishTool: "tool_use", faultinject.FinishLength: "max_tokens",
		faultinject.FinishRefusal: "guardrail_intervened", faultinject.FinishSequence: "stop_sequence",
	}[a.Finish]
	if reason == "" {
		reason = "end_turn"
	}
	c.event("messageStop", `"stopReason":"`+reason+`"`)
	c.event("metadata", fmt.Sprintf(`"metrics":{"latencyMs":7},"usage":{"inputTokens":11,"outputTokens":%d,"totalTokens":%d}`, c.said/4, 11+c.said/4))
	return c.events
}

type converseStream struct {
	step, said, index int
	id                string
	events            [][]byte
}

func (c *converseStream) event(name, members string) {
	pad := "abcdefghijklmnopqrstuvwxyz"[:len(c.events)*7%26]
	c.events = append(c.events, eventstream.Append(nil, eventstream.Event, name, []byte(`{`+members+`,"p":"`+pad+`"}`)))
}

func (c *converseStream) block(b faultinject.Block) {
	at := fmt.Sprintf(`"contentBlockIndex":%d`, c.index)
	switch b.Kind {
	case faultinject.TextBlock, faultinject.RefusalBlock:
		c.deltas(at, `{"text":`, b.Text, `}`)
	case faultinject.ThinkingBlock:
		c.deltas(at, `{"reasoningContent":{"text":`, b.Text, `}}`)
		c.event("contentBlockDelta", at+`,"delta":{"reasoningContent":{"signature":`+quoteJSON(cmp.Or(b.Signature, "EqoBsigned"+c.id))+`}}`)
	case faultinject.ToolBlock:
		c.event("contentBlockStart", fmt.Sprintf(`%s,"start":{"toolUse":{"name":%s,"toolUseId":"tooluse_%s_%d"}}`, at, quoteJSON(b.Name), c.id, c.index))
		c.deltas(at, `{"toolUse":{"input":`, b.Args, `}}`)
	case faultinject.RedactedBlock:
		return
	}
	c.event("contentBlockStop", at)
	c.index++
}

// deltas renders a text in pieces of uneven size.
func (c *converseStream) deltas(at, before, s, after string) {
	for n := c.step; s != ""; n = n*5%61 + 3 {
		k := min(n, len(s))
		for k < len(s) && !utf8.RuneStart(s[k]) {
			k++
		}
		c.said += k
		c.event("contentBlockDelta", at+`,"delta":`+before+quoteJSON(s[:k])+after)
		s = s[k:]
	}
}

// RenderInvoke renders an answer as InvokeModelWithResponseStream does for Anthropic's models: Messages in chunks.
func RenderInvoke(a faultinject.Answer, o faultinject.Options) (out [][]byte) {
	for _, u := range faultinject.RenderMessages(a, o) {
		var sc sse.Scanner
		sc.Push(u)
		for e, ok := sc.Next(); ok; e, ok = sc.Next() {
			if e.Data != nil {
				out = append(out, Chunk(e.Data))
			}
		}
	}
	return out
}

// Chunk is a chunk's frame around an event of the model's own.
func Chunk(data []byte) []byte {
	return eventstream.Append(nil, eventstream.Event, "chunk", []byte(`{"bytes":"`+base64.StdEncoding.EncodeToString(data)+`"}`))
}

// ConverseMessages is a Converse request as the messages that the provider model reads (see Asked). It fails when the
// request is none that Bedrock takes.
func ConverseMessages(body []byte) ([]byte, error) {
	var q struct {
		Messages []struct {
			Role    string
			Content []struct {
				Text             *string
				ToolUse          *struct{ Name string }
				ReasoningContent *struct {
					ReasoningText *struct{ Text, Signature string }
				}
			}
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("not a Converse request: %w", err)
	}
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var out struct {
		Messages []message `json:"messages"`
	}
	for i, c := range q.Messages {
		m := message{Role: c.Role}
		if i > 0 && q.Messages[i-1].Role == c.Role {
			return nil, fmt.Errorf("message %d: roles must alternate", i)
		}
		for k, b := range c.Content {
			switch {
			case b.ToolUse != nil && i >= len(q.Messages)-2 && c.Role == "assistant":
				return nil, fmt.Errorf("toolUse %s without its toolResult", b.ToolUse.Name)
			case b.ReasoningContent != nil && k == len(c.Content)-1:
				return nil, fmt.Errorf("message %d ends in reasoning", i)
			case b.ReasoningContent != nil && b.ReasoningContent.ReasoningText != nil && b.ReasoningContent.ReasoningText.Signature == "":
				return nil, fmt.Errorf("message %d has unsigned reasoning", i)
			case b.Text == nil:
				continue
			case strings.TrimSpace(*b.Text) == "":
				return nil, fmt.Errorf("message %d has a blank text", i)
			}
			m.Content += *b.Text
		}
		out.Messages = append(out.Messages, m)
	}
	if n := len(out.Messages); n > 0 && out.Messages[n-1].Role == "assistant" {
		if s := out.Messages[n-1].Content; strings.TrimRight(s, " \t\n") != s {
			return nil, fmt.Errorf("the final assistant content ends in white space: %q", s[max(0, len(s)-20):])
		}
	}
	return json.Marshal(out)
}
