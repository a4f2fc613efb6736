package relay_test

import (
	"fmt"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/unbroken-llm/unbroken/dialect/anthropic"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

var messages = family{
	name:     "messages",
	d:        anthropic.Dialect{},
	fallback: `{"model":"claude-sonnet-4-5","max_tokens":100000,"stream":true,"messages":[{"role":"user","content":"go on"}]}`,
	named: func(p []byte) string {
		s, _ := jsonwalk.String(jsonwalk.Get(p, "type"))
		return string(s)
	},
	folders: []string{"anthropic"},
	half:    "event: content_block_delta\ndata: {\"type\":\"con",
	fault:   "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
	marker:  "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
	ping:    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
	render:  faultinject.RenderMessages,
	read:    readMessages,
	strays: map[string]string{
		"anthropic/spliced-message-start.chunks.txt": "hand-made from a bug report: two responses in one stream",
	},
}

var messageEvents heard[sdk.MessageStreamEventUnion]

// readMessages is anthropic-sdk-go's accumulator over a stream.
func readMessages(stream []byte) (message, error) {
	var m sdk.Message
	done := false
	err := eachAnthropic(&messageEvents, stream, func(e sdk.MessageStreamEventUnion) error {
		if done {
			return fmt.Errorf("event %q after message_stop", e.Type)
		}
		if e.Type == "message_start" && m.ID != "" {
			return fmt.Errorf("second message_start")
		}
		done = e.Type == "message_stop"
		return m.Accumulate(e)
	})
	if err != nil {
		return message{}, err
	}
	if !done {
		return message{}, fmt.Errorf("no message_stop")
	}
	out := message{finish: string(m.StopReason)}
	var order []string
	for _, b := range m.Content {
		kind := b.Type
		switch b.Type {
		case "text":
			out.text += b.Text
			if n := len(order); n > 0 && order[n-1] == "text" || b.Text == "" {
				continue
			}
		case "tool_use":
			if !jsonwalk.Valid(b.Input) {
				return message{}, fmt.Errorf("tool %s has cut arguments %q", b.Name, b.Input)
			}
			out.calls = append(out.calls, b.Name+compact(string(b.Input)))
		case "thinking":
			if b.Signature == "" {
				return message{}, fmt.Errorf("thinking block without a signature")
			}
			continue
		case "redacted_thinking":
			continue
		}
		order = append(order, kind)
	}
	out.order = strings.Join(order, ",")
	return out, nil
}

func TestCutEverywhereMessages(t *testing.T) {
	messages.cutEverywhere(t, relaytest.Recordings(t, messages.fallback, messages.named, messages.folders...))
}
