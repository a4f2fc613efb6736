package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// message is what the client has of a turn. It is read with nothing of the
// proxy's own code, so that the two cannot err together.
type message struct {
	text          string
	calls         []toolCall
	finish        string
	tokens        int // content deltas
	input, output int // by the provider's usage record
	ended         bool
	err           error
}

type toolCall struct{ id, name, args string }

// errNoEnd is a body that ended as if all were well, without the turn's end.
var errNoEnd = errors.New("the stream ended without its end marker")

// prompt is one request of the demo.
type prompt struct {
	dialect, base string
	body          any
	header        map[string]string
}

var paths = map[string]string{dialectChat: "/v1/chat/completions", dialectMessages: "/v1/messages"}

const (
	dialectChat     = "chat"
	dialectMessages = "messages"
)

// talk sends a request and reads its stream to whatever end it has. said hears
// each piece of it as it comes.
func talk(ctx context.Context, p prompt, said func(piece string)) *message {
	m := &message{}
	body, err := json.Marshal(p.body)
	if err != nil {
		panic("BUG: the demo's request cannot be encoded: " + err.Error())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+paths[p.dialect], bytes.NewReader(body))
	if err != nil {
		m.err = err
		return m
	}
	req.Header.Set("Content-Type", "application/json")
	for name, text := range p.header {
		req.Header.Set(name, text)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		m.err = unwrapped(err)
		return m
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		m.err = fmt.Errorf("%s: %s", res.Status, b)
		return m
	}
	read := map[string]func(*message, []byte) string{dialectChat: (*message).readChat, dialectMessages: (*message).readMessages}[p.dialect]
	lines := bufio.NewScanner(res.Body)
	for !m.ended && m.err == nil && lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue
		}
		if piece := read(m, bytes.TrimSpace(data)); piece != "" {
			m.tokens++
			said(piece)
		}
	}
	switch {
	case m.ended || m.err != nil:
	case lines.Err() != nil:
		m.err = unwrapped(lines.Err())
	default:
		m.err = errNoEnd
	}
	return m
}

// unwrapped is the reason of a network error, without its addresses.
func unwrapped(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	for text := err.Error(); ; {
		_, rest, ok := strings.Cut(text, ": ")
		if !ok {
			return errors.New(text)
		}
		text = rest
	}
}

// readChat takes one event of Chat Completions and returns its piece of content.
func (m *message) readChat(data []byte) string {
	if string(data) == "[DONE]" {
		m.ended = true
		return ""
	}
	var e struct {
		Choices []struct {
			Delta struct {
				Content   string `json:"content"`
				ToolCalls []struct {
					Index    int                              `json:"index"`
					ID       string                           `json:"id"`
					Function struct{ Name, Arguments string } `json:"function"`
				} `json:"tool_calls"`
			} `json:"delta"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			In  int `json:"prompt_tokens"`
			Out int `json:"completion_tokens"`
		} `json:"usage"`
		Error *struct{ Message string } `json:"error"`
	}
	if m.err = json.Unmarshal(data, &e); m.err != nil {
		return ""
	}
	if e.Error != nil {
		m.err = errors.New(e.Error.Message)
		return ""
	}
	m.input, m.output = max(m.input, e.Usage.In), max(m.output, e.Usage.Out)
	var piece strings.Builder
	for _, c := range e.Choices {
		piece.WriteString(c.Delta.Content)
		m.text += c.Delta.Content
		for _, t := range c.Delta.ToolCalls {
			if t.Index == len(m.calls) {
				m.calls = append(m.calls, toolCall{id: t.ID, name: t.Function.Name})
				piece.WriteString(calling(t.Function.Name))
			}
			if t.Index < len(m.calls) {
				m.calls[t.Index].args += t.Function.Arguments
				piece.WriteString(t.Function.Arguments)
			}
		}
		if c.FinishReason != "" {
			m.finish = c.FinishReason
		}
	}
	return piece.String()
}

// readMessages takes one event of Messages and returns its piece of content.
func (m *message) readMessages(data []byte) string {
	var e struct {
		Type    string
		Message struct{ Usage usageRecord }
		Block   struct{ Type, ID, Name string } `json:"content_block"`
		Delta   struct {
			Text        string `json:"text"`
			PartialJSON string `json:"partial_json"`
			StopReason  string `json:"stop_reason"`
		}
		Usage usageRecord
		Error struct{ Message string }
	}
	if m.err = json.Unmarshal(data, &e); m.err != nil {
		return ""
	}
	m.input = max(m.input, e.Message.Usage.In)
	m.output = max(m.output, e.Usage.Out)
	switch e.Type {
	case "content_block_start":
		if e.Block.Type == "tool_use" {
			m.calls = append(m.calls, toolCall{id: e.Block.ID, name: e.Block.Name})
			return calling(e.Block.Name)
		}
	case "content_block_delta":
		m.text += e.Delta.Text
		if n := len(m.calls); n > 0 {
			m.calls[n-1].args += e.Delta.PartialJSON
		}
		return e.Delta.Text + e.Delta.PartialJSON
	case "message_delta":
		m.finish = e.Delta.StopReason
	case "message_stop":
		m.ended = true
	case "error":
		m.err = errors.New(e.Error.Message)
	}
	return ""
}

type usageRecord struct {
	In  int `json:"input_tokens"`
	Out int `json:"output_tokens"`
}

func calling(name string) string { return "\n⚙ " + name + " " }

// faultHeaders steer the simulated provider; the proxy relays them like any
// header it does not know.
func faultHeaders(turn, scenario, script string) map[string]string {
	return map[string]string{
		faultinject.HeaderTurn: turn, faultinject.HeaderScenario: scenario, faultinject.HeaderScript: script,
		"Authorization": "Bearer sk-demo", "x-api-key": "sk-demo", "anthropic-version": "2023-06-01",
	}
}
