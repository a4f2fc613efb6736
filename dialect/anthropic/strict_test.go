package anthropic_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

// strict is what the API refuses of a continuation, rule by rule, and what we promise of one. It knows nothing of how
// bodies are built; each rule names the 400 or the promise it stands for.
func strict(r *dialect.Request, c dialect.Continuation, body []byte) []string {
	s := &strictness{}
	var was, now map[string]json.RawMessage
	if err := json.Unmarshal(body, &now); err != nil {
		return []string{"not json: " + err.Error()}
	}
	if err := json.Unmarshal(r.Body, &was); err != nil {
		return []string{"the request is not json: " + err.Error()}
	}
	s.members(was, now)
	s.history(was["messages"], now["messages"])
	thinking := s.thinking(now)
	var messages []message
	if err := json.Unmarshal(now["messages"], &messages); err != nil {
		return append(s.faults, err.Error())
	}
	s.roles(messages, c, thinking)
	at := len(messages) - 1
	if c.Manner == turn.Asked {
		at--
	}
	if at < 0 || messages[at].Role != "assistant" {
		return append(s.faults, "no partial assistant message")
	}
	blocks := messages[at].blocks()
	s.blocks(blocks)
	if at == len(messages)-1 && !thinking {
		for _, b := range blocks {
			if strings.HasSuffix(b.Type, "thinking") {
				s.fault("with thinking disabled an assistant message in the final position cannot contain thinking")
			}
		}
	}
	return s.faults
}

type strictness struct{ faults []string }

func (s *strictness) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

type message struct {
	Role    string
	Content json.RawMessage
}

type contentBlock struct {
	Type, Text, Signature, ID string
	ToolUseID                 string `json:"tool_use_id"`
	Input                     json.RawMessage
}

func (m message) blocks() (out []contentBlock) {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return []contentBlock{{Type: "text", Text: text}}
	}
	if err := json.Unmarshal(m.Content, &out); err != nil {
		panic(err)
	}
	return out
}

// members: nothing changes but what a continuation must change; the system prompt never does (D10).
func (s *strictness) members(was, now map[string]json.RawMessage) {
	free := []string{"messages", "max_tokens", "thinking", "tool_choice", "model", "output_format", "output_config", "context_management"}
	for k := range was {
		if !slices.Contains(free, k) && !bytes.Equal(was[k], now[k]) {
			s.fault("member %s changed to %s", k, now[k])
		}
	}
	for k := range now {
		if _, ok := was[k]; !ok && k != "max_tokens" {
			s.fault("member %s was added", k)
		}
	}
}

// history: the caller's messages are a byte prefix, so that the provider's prompt cache hits.
func (s *strictness) history(was, now json.RawMessage) {
	var old, all []json.RawMessage
	if json.Unmarshal(was, &old) != nil || json.Unmarshal(now, &all) != nil || len(all) < len(old) {
		s.fault("messages are not the old ones and more")
		return
	}
	for i, m := range old {
		if bytes.Equal(m, all[i]) {
			continue
		}
		var prefill message
		if i != len(old)-1 || json.Unmarshal(m, &prefill) != nil || prefill.Role != "assistant" {
			s.fault("message %d changed", i)
		}
	}
}

func (s *strictness) thinking(now map[string]json.RawMessage) (on bool) {
	var th struct {
		Type   string
		Budget *int64 `json:"budget_tokens"`
	}
	var limit int64
	if now["thinking"] != nil && json.Unmarshal(now["thinking"], &th) != nil || json.Unmarshal(now["max_tokens"], &limit) != nil {
		s.fault("thinking or max_tokens unreadable")
	}
	if th.Type == "enabled" && (th.Budget == nil || *th.Budget < 1024 || *th.Budget >= limit) {
		s.fault("thinking.budget_tokens must be at least 1024 and less than max_tokens %d: %s", limit, now["thinking"])
	}
	on = th.Type == "enabled" || th.Type == "adaptive"
	if !on && bytes.Contains(now["context_management"], []byte("clear_thinking")) {
		s.fault("clear_thinking needs thinking")
	}
	return on
}

func (s *strictness) roles(ms []message, c dialect.Continuation, thinking bool) {
	for i := 1; i < len(ms); i++ {
		if ms[i].Role == ms[i-1].Role && ms[i].Role == "assistant" {
			s.fault("two assistant messages in a row")
		}
	}
	last := ms[len(ms)-1].Role
	if want := map[turn.Manner]string{turn.Prefill: "assistant", turn.Asked: "user"}[c.Manner]; last != want {
		s.fault("the last message is of %s, want %s", last, want)
	}
	if last == "assistant" && thinking && !strings.HasSuffix(ms[len(ms)-1].blocks()[0].Type, "thinking") {
		s.fault("prefill is not compatible with thinking")
	}
}

func (s *strictness) blocks(bs []contentBlock) {
	if len(bs) == 0 {
		s.fault("empty content")
		return
	}
	for i, b := range bs {
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) == "" {
				s.fault("text content blocks must contain non-whitespace text")
			}
			if strings.ContainsRune(b.Text, unicode.ReplacementChar) {
				s.fault("a character was torn")
			}
		case "thinking":
			if b.Signature == "" || strings.HasSuffix(b.Signature, turn.DropMark) {
				s.fault("unsigned thinking")
			}
		case "tool_use":
			s.fault("tool_use without its tool_result")
		case "server_tool_use", "mcp_tool_use":
			if !slices.ContainsFunc(bs[i:], func(r contentBlock) bool { return r.ToolUseID == b.ID }) {
				s.fault("%s %s without its result", b.Type, b.ID)
			}
			if len(b.Input) == 0 || b.Input[0] != '{' {
				s.fault("%s without an input object", b.Type)
			}
		}
	}
	last := bs[len(bs)-1]
	if last.Type == "text" && last.Text != strings.TrimRightFunc(last.Text, unicode.IsSpace) {
		s.fault("final assistant content cannot end with trailing whitespace")
	}
	if strings.HasSuffix(last.Type, "thinking") {
		s.fault("the final block in an assistant message cannot be thinking")
	}
}
