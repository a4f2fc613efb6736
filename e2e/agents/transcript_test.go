package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// transcript is the output of one run in the form of stream-json, reduced to what
// must be the same whatever the provider did: no ids, no clocks, no counts of
// tokens, and deltas joined, since a word may arrive in one piece or in two.
type transcript struct {
	seen    []string
	open    string // kind of the block that is being streamed
	blocks  int    // of the message that is being streamed
	retries int    // the agent told of another attempt
	final   string
	in, out int // tokens, as the agent adds them up
}

// message is one line of stream-json.
type message struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Event   struct {
		Type         string  `json:"type"`
		Index        int     `json:"index"`
		ContentBlock content `json:"content_block"`
		Delta        struct {
			Text        string `json:"text"`
			PartialJSON string `json:"partial_json"`
			Thinking    string `json:"thinking"`
			StopReason  string `json:"stop_reason"`
		} `json:"delta"`
	} `json:"event"`
	Message struct {
		Content []content `json:"content"`
	} `json:"message"`
	IsError    bool   `json:"is_error"`
	Result     string `json:"result"`
	NumTurns   int    `json:"num_turns"`
	StopReason string `json:"stop_reason"`
	ModelUsage map[string]struct {
		Input  int `json:"inputTokens"`
		Output int `json:"outputTokens"`
	} `json:"modelUsage"`
}

type content struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thoughts string          `json:"thinking"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	Content  json.RawMessage `json:"content"`
	IsError  bool            `json:"is_error"`
}

// readTranscript reads what Claude Code wrote. What precedes an error is
// returned with it.
func readTranscript(out []byte) (t transcript, err error) {
	for raw := range bytes.Lines(out) {
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			return t, fmt.Errorf("line %q: %w", clip(raw), err)
		}
		t.add(m)
	}
	return t, nil
}

func (t *transcript) add(m message) {
	switch m.Type {
	case "stream_event":
		t.event(m)
	case "assistant", "user":
		for _, c := range m.Message.Content {
			t.say("%s", c)
		}
	case "result":
		t.final = m.Result
		for _, u := range m.ModelUsage {
			t.in, t.out = t.in+u.Input, t.out+u.Output
		}
		t.say("result %s error=%t turns=%d stop=%s %s", m.Subtype, m.IsError, m.NumTurns, m.StopReason, m.Result)
	case "system": // init, status, api_retry …
		if m.Subtype == "thinking_tokens" { // a count that runs while a block streams
			return
		}
		fallthrough
	default:
		if strings.Contains(m.Subtype, "retry") {
			t.retries++
		}
		t.say("%s %s", m.Type, m.Subtype)
	}
}

// event adds an event of the provider's stream, as the agent hands it on.
func (t *transcript) event(m message) {
	e := m.Event
	switch e.Type {
	case "message_start":
		t.blocks = 0
		t.say("%s", e.Type)
	case "content_block_start":
		if e.Index != t.blocks || t.open != "" {
			t.say("block %d begins after %d blocks and in the middle of %q", e.Index, t.blocks, t.open)
		}
		t.blocks, t.open = e.Index+1, e.ContentBlock.Type
		t.say("%s streams: ", t.open)
	case "content_block_delta":
		if t.open == "" {
			t.say("block %d goes on and is not open: ", e.Index)
		}
		t.seen[len(t.seen)-1] += e.Delta.Text + e.Delta.PartialJSON + e.Delta.Thinking
	case "content_block_stop":
		t.say("%s ends", t.open)
		t.open = ""
	case "message_delta":
		t.say("%s %s", e.Type, e.Delta.StopReason)
	case "ping":
	default:
		t.say("%s", e.Type)
	}
}

func (t *transcript) say(format string, args ...any) {
	t.seen = append(t.seen, fmt.Sprintf(format, args...))
}

func (c content) String() string {
	switch c.Type {
	case "tool_use":
		return fmt.Sprintf("tool_use is %s %s", c.Name, c.Input)
	case "tool_result":
		return fmt.Sprintf("tool_result is error=%t %s", c.IsError, c.Content)
	}
	return c.Type + " is " + c.Text + c.Thoughts
}

// thoughtless is a transcript without reasoning. Reasoning that was cut cannot go
// on: what was shown of it stays, as a block of its own, and it begins anew.
func (t transcript) thoughtless() transcript {
	t.seen = slices.DeleteFunc(slices.Clone(t.seen), func(l string) bool {
		return strings.HasPrefix(l, "thinking ")
	})
	return t
}

// difference shows where two transcripts part.
func (t transcript) difference(want transcript) string {
	for i := range max(len(t.seen), len(want.seen)) {
		if i >= len(t.seen) || i >= len(want.seen) || t.seen[i] != want.seen[i] {
			return fmt.Sprintf("from line %d it saw\n  %s\nand without a fault\n  %s", i+1,
				strings.Join(t.seen[min(i, len(t.seen)):], "\n  "), strings.Join(want.seen[min(i, len(want.seen)):], "\n  "))
		}
	}
	return ""
}
