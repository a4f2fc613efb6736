package agents

import (
	"encoding/json"
	"fmt"
	"strings"
)

// claudeReader makes a transcript of stream-json.
type claudeReader struct {
	transcript
	open   string // kind of the block that is being streamed
	blocks int    // of the message that is being streamed
}

// readClaude reads what Claude Code wrote. What precedes an error is returned
// with it.
func readClaude(out []byte) (transcript, error) {
	var t claudeReader
	err := eachLine(out, t.add)
	return t.transcript, err
}

// claudeLine is one line of stream-json.
type claudeLine struct {
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

func (t *claudeReader) add(m claudeLine) {
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
func (t *claudeReader) event(m claudeLine) {
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

func (c content) String() string {
	switch c.Type {
	case "tool_use":
		return fmt.Sprintf("tool_use is %s %s", c.Name, c.Input)
	case "tool_result":
		return fmt.Sprintf("tool_result is error=%t %s", c.IsError, c.Content)
	}
	return c.Type + " is " + c.Text + c.Thoughts
}
