package faultinject

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"
)

// checkChat refuses what the host's Chat server refuses, in its words. Unknown
// fields are tolerated, as they are in the field.
func checkChat(host Host, path string, h http.Header, w wireRequest) *Refusal {
	if h.Get("Authorization") == "" && h.Get("Api-Key") == "" {
		return &Refusal{Status: 401, Type: "invalid_request_error", Message: "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."}
	}
	if w.Model == "" {
		return invalid("you must provide a model parameter")
	}
	if w.Messages == nil {
		r := invalidParam("messages", "Missing required parameter: 'messages'.")
		r.Code = "missing_required_parameter"
		return r
	}
	if len(w.Messages) == 0 {
		r := invalidParam("messages", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
		r.Code = "empty_array"
		return r
	}
	if w.StreamOpts.IncludeUsage && !w.Stream {
		return invalidParam("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	if r := checkChatRoles(w.Messages); r != nil {
		return r
	}
	return checkChatTail(host, path, w)
}

var chatRoles = map[string]bool{"system": true, "developer": true, "user": true, "assistant": true, "tool": true, "function": true}

// checkChatRoles walks the history: every call is answered right away, every
// answer has its call.
func checkChatRoles(msgs []wireMessage) *Refusal {
	open := map[string]bool{}
	for i, m := range msgs {
		if !chatRoles[m.Role] {
			r := invalidParam(fmt.Sprintf("messages[%d].role", i), "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
			r.Code = "invalid_value"
			return r
		}
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return invalidParam(fmt.Sprintf("messages.[%d].role", i), "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
			}
			delete(open, m.ToolCallID)
			continue
		}
		if r := unansweredChat(i, open); r != nil {
			return r
		}
		if r := checkChatContent(i, m); r != nil {
			return r
		}
		for _, c := range m.ToolCalls {
			if c.ID == "" || len(c.ID) > 64 {
				return invalidParam(fmt.Sprintf("messages[%d].tool_calls[0].id", i), "Invalid 'messages[%d].tool_calls[0].id': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", i, len(c.ID))
			}
			open[c.ID] = true
		}
	}
	return unansweredChat(len(msgs), open)
}

func unansweredChat(i int, open map[string]bool) *Refusal {
	if len(open) == 0 {
		return nil
	}
	ids := make([]string, 0, len(open))
	for id := range open {
		ids = append(ids, id)
	}
	return invalidParam(fmt.Sprintf("messages.[%d].role", i), "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(sorted(ids), ", "))
}

func checkChatContent(i int, m wireMessage) *Refusal {
	ps, err := parts(m.Content)
	if err != nil {
		return invalidParam(fmt.Sprintf("messages[%d].content", i), "Invalid type for 'messages[%d].content': expected one of a string or array of objects.", i)
	}
	empty := ps == nil && (len(m.Content) == 0 || string(m.Content) == "null")
	if empty && (m.Role != "assistant" || len(m.ToolCalls) == 0) {
		return invalidParam(fmt.Sprintf("messages.[%d].content", i), "Invalid value for 'content': expected a string, got null.")
	}
	return nil
}

// checkChatTail looks at what the host makes of vendor flags and of a trailing
// assistant message.
func checkChatTail(host Host, path string, w wireRequest) *Refusal {
	last := w.Messages[len(w.Messages)-1]
	trailing := last.Role == "assistant"
	prefix := last.Prefix != nil && *last.Prefix
	switch host {
	case OpenAI, "":
		return checkNoFlags(w)
	case VLLM, SGLang:
		if host == VLLM && w.ContinueFinal && (w.AddGeneration == nil || *w.AddGeneration) {
			return invalid("Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
		}
		if w.ContinueFinal && !trailing {
			return invalid("continue_final_message is set but the final message is not from the assistant.")
		}
	case Mistral:
		if trailing && !prefix {
			return &Refusal{Status: 400, Type: "invalid_request_message_order", Code: "3230", Message: "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"}
		}
	case DeepSeek:
		if trailing && (!prefix || !strings.Contains(path, "/beta/")) {
			return invalid("The last message of %s must be a user message, or an assistant message with prefix mode on (refer to https://api-docs.deepseek.com/guides/chat_prefix_completion).", w.Model)
		}
	case LlamaCPP:
		return checkLlama(w, trailing)
	case OpenRouter:
		if trailing && strings.Contains(w.Model, "claude") && !claudePrefills(w.Model) {
			return invalid(noPrefill)
		}
	}
	return nil
}

// checkNoFlags is OpenAI: it knows no vendor flag.
func checkNoFlags(w wireRequest) *Refusal {
	if w.ContinueFinal || w.AddGeneration != nil {
		name := "continue_final_message"
		if !w.ContinueFinal {
			name = "add_generation_prompt"
		}
		return invalid("Unrecognized request argument supplied: %s", name)
	}
	for i, m := range w.Messages {
		if m.Prefix != nil || m.Partial != nil {
			name := "prefix"
			if m.Prefix == nil {
				name = "partial"
			}
			return invalid("Additional properties are not allowed ('%s' was unexpected) - 'messages.%d'", name, i)
		}
	}
	return nil
}

func checkLlama(w wireRequest, trailing bool) *Refusal {
	if !trailing {
		return nil
	}
	if n := len(w.Messages); n > 1 && w.Messages[n-2].Role == "assistant" {
		return invalid("Cannot have 2 or more assistant messages at the end of the list.")
	}
	thinks := strings.Contains(w.Model, "think")
	if e := w.TemplateArgs.EnableThinking; e != nil {
		thinks = *e
	}
	if thinks {
		return invalid("Assistant response prefill is incompatible with enable_thinking.")
	}
	return nil
}

// chatPrefills reports whether the host continues p's trailing assistant
// message.
func chatPrefills(host Host, p Prompt) bool {
	if len(p.Turns) == 0 {
		return false
	}
	last := p.Turns[len(p.Turns)-1]
	switch host {
	case VLLM:
		return p.ContinueFinal && p.AddGeneration != nil && !*p.AddGeneration
	case SGLang:
		return p.ContinueFinal
	case Mistral, DeepSeek, Moonshot:
		return last.Prefix
	case LlamaCPP, Ollama, Groq:
		return true
	case OpenRouter:
		return strings.Contains(p.Model, "claude") && claudePrefills(p.Model)
	default:
		return false
	}
}

// relabel is SGLang's silent turning of a trailing assistant message into a
// user's (WIRE 2.1).
func relabel(host Host, p Prompt) Prompt {
	if n := len(p.Turns); host == SGLang && !p.ContinueFinal && n > 0 && p.Turns[n-1].Role == "assistant" {
		p.Turns = append([]Turn(nil), p.Turns...)
		p.Turns[n-1].Role = "user"
	}
	return p
}

func sorted(s []string) []string {
	sort.Strings(s)
	return s
}

// decodeRequest reads a body as either dialect's request.
func decodeRequest(body []byte) (wireRequest, *Refusal) {
	var w wireRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return w, invalid("We could not parse the JSON body of your request: %v", err)
	}
	return w, nil
}
