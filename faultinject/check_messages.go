package faultinject

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// checkMessages refuses what Anthropic refuses, in its words. Whoever adds a
// rule here quotes the real message: clients match on it.
func checkMessages(h http.Header, w wireRequest) *Refusal {
	if h.Get("X-Api-Key") == "" && h.Get("Authorization") == "" {
		return &Refusal{Status: 401, Type: "authentication_error", Message: "x-api-key header is required"}
	}
	if h.Get("Anthropic-Version") == "" {
		return invalid("anthropic-version: header is required")
	}
	if w.Model == "" {
		return invalid("model: Field required")
	}
	return checkConversation(w, strings.Contains(h.Get("Anthropic-Beta"), "system"))
}

// checkConversation is what of that the model itself refuses, whoever's endpoint
// it is behind.
func checkConversation(w wireRequest, betaSystem bool) *Refusal {
	if w.MaxTokens == nil {
		return invalid("max_tokens: Field required")
	}
	if *w.MaxTokens < 1 {
		return invalid("max_tokens: Input should be greater than or equal to 1")
	}
	if r := checkThinking(w); r != nil {
		return r
	}
	if len(w.Messages) == 0 {
		return invalid("messages: at least one message is required")
	}
	msgs, r := mergeMessages(w.Messages, betaSystem)
	if r != nil {
		return r
	}
	if msgs[0].role != "user" {
		return invalid(`messages: first message must use the "user" role`)
	}
	for i, m := range msgs {
		if r := checkParts(m, i == len(msgs)-1 && m.role == "assistant"); r != nil {
			return r
		}
	}
	if r := checkPairs(msgs); r != nil {
		return r
	}
	return checkPrefill(w, msgs[len(msgs)-1])
}

func checkThinking(w wireRequest) *Refusal {
	if w.Thinking.Type == "disabled" && alwaysThinks(w.Model) {
		return invalid(`thinking.type: "disabled" is not supported for this model.`)
	}
	choice := toolChoice(w.ToolChoice)
	forced := choice != "" && choice != "auto" && choice != "none"
	if forced && alwaysThinks(w.Model) {
		return invalid("tool_choice: forced tool use is not supported for this model.")
	}
	if r := checkEdits(w); r != nil {
		return r
	}
	if w.Thinking.Type != "enabled" {
		return nil
	}
	if w.Thinking.Budget < 1024 {
		return invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	}
	if w.Thinking.Budget >= *w.MaxTokens {
		return invalid("`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size")
	}
	if forced {
		return invalid("Thinking may not be enabled when tool_choice forces tool use.")
	}
	return nil
}

// checkEdits refuses to clear thinking where there is none. Claude Code asks for
// it with every request, so whoever switches thinking off for one of them has to
// take the edit out (github.com/anthropics/claude-code/issues/11971, and, in the
// words of today, github.com/router-for-me/CLIProxyAPI/issues/4957).
func checkEdits(w wireRequest) *Refusal {
	if w.Thinking.Type == "enabled" || w.Thinking.Type == "adaptive" || alwaysThinks(w.Model) {
		return nil
	}
	for _, e := range w.ContextManagement.Edits {
		if strings.HasPrefix(e.Type, "clear_thinking") {
			return invalid("`%s` strategy requires `thinking` to be enabled or adaptive", e.Type)
		}
	}
	return nil
}

// mergedMessage is a run of messages of one role; the API joins them.
type mergedMessage struct {
	index int // of the first one in the request
	role  string
	parts []wirePart
}

func mergeMessages(in []wireMessage, betaSystem bool) ([]mergedMessage, *Refusal) {
	var out []mergedMessage
	for i, m := range in {
		if m.Role == "system" && betaSystem {
			continue
		}
		if m.Role != "user" && m.Role != "assistant" {
			return nil, invalid("messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		ps, err := parts(m.Content)
		if err != nil {
			return nil, invalid("messages.%d.content: Input should be a valid list", i)
		}
		if len(ps) == 0 && (i < len(in)-1 || m.Role == "user") {
			return nil, invalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		if n := len(out); n > 0 && out[n-1].role == m.Role {
			out[n-1].parts = append(out[n-1].parts, ps...)
			continue
		}
		out = append(out, mergedMessage{i, m.Role, ps})
	}
	if len(out) == 0 {
		return nil, invalid("messages: at least one message is required")
	}
	return out, nil
}

var toolID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func checkParts(m mergedMessage, final bool) *Refusal {
	for j, p := range m.parts {
		at := fmt.Sprintf("messages.%d.content.%d", m.index, j)
		switch p.Type {
		case "text":
			if p.Text == "" {
				return invalid("messages: text content blocks must be non-empty")
			}
			if strings.TrimSpace(p.Text) == "" {
				return invalid("messages: text content blocks must contain non-whitespace text")
			}
		case "thinking":
			if p.Signature == nil {
				return invalid("%s.thinking.signature: Field required", at)
			}
			if *p.Signature != Sign(p.Thinking) {
				return invalid("%s: Invalid `signature` in `thinking` block", at)
			}
		case "redacted_thinking":
			if secret, _, ok := strings.Cut(strings.TrimPrefix(p.Data, "red."), "."); !ok || Redact(secret) != p.Data {
				return invalid("%s: Invalid `data` in `redacted_thinking` block", at)
			}
		case "tool_use":
			var input map[string]json.RawMessage
			if json.Unmarshal(p.Input, &input) != nil || input == nil {
				return invalid("%s.tool_use.input: Input should be a valid dictionary", at)
			}
			if !toolID.MatchString(p.ID) {
				return invalid("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", at)
			}
			if p.Name == "" {
				return invalid("%s.tool_use.name: Field required", at)
			}
		case "":
			return invalid("%s.type: Field required", at)
		}
	}
	if n := len(m.parts); final && n > 0 && m.parts[n-1].Type == "text" && strings.TrimRight(m.parts[n-1].Text, " \t\r\n") != m.parts[n-1].Text {
		return invalid("messages: final assistant content cannot end with trailing whitespace")
	}
	return nil
}

// checkPairs demands that calls and results answer each other in adjacent
// messages, results first.
func checkPairs(msgs []mergedMessage) *Refusal {
	open := map[string]bool{} // calls of the message before
	seen := map[string]bool{}
	for _, m := range msgs {
		answered := map[string]bool{}
		leading := true
		for j, p := range m.parts {
			if p.Type != "tool_result" {
				leading = false
				continue
			}
			if !open[p.ToolUseID] {
				return invalid("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", m.index, j, p.ToolUseID)
			}
			if leading {
				answered[p.ToolUseID] = true
			}
		}
		if r := unanswered(m.index-1, open, answered); r != nil {
			return r
		}
		open = map[string]bool{}
		for j, p := range m.parts {
			if p.Type != "tool_use" {
				continue
			}
			if seen[p.ID] {
				return invalid("messages.%d.content.%d: `tool_use` ids must be unique", m.index, j)
			}
			open[p.ID], seen[p.ID] = true, true
		}
	}
	return unanswered(msgs[len(msgs)-1].index, open, nil)
}

func unanswered(index int, open, answered map[string]bool) *Refusal {
	var missing []string
	for id := range open {
		if !answered[id] {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", index, strings.Join(sorted(missing), ", "))
}

// checkPrefill looks at a request that ends with the assistant's turn.
func checkPrefill(w wireRequest, last mergedMessage) *Refusal {
	if last.role != "assistant" {
		return nil
	}
	if !claudePrefills(modelName(w.Model)) {
		return invalid(noPrefill)
	}
	if w.Thinking.Type == "enabled" || w.Thinking.Type == "adaptive" {
		if len(last.parts) == 0 || last.parts[0].Type != "thinking" && last.parts[0].Type != "redacted_thinking" {
			return invalid("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking", last.index)
		}
		return invalid("Prefilling assistant messages is not supported when thinking is enabled.")
	}
	return nil
}
