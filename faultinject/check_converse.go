package faultinject

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// checkConverse refuses what Bedrock's Converse refuses, in its words: those of the
// service itself, which looks at every request first, then those of the model.
// Sources of the texts are public issues of its clients, among them
// github.com/OpenHands/OpenHands/issues/5339, strands-agents/harness-sdk/issues/1435,
// camel-ai/camel/issues/3954, langgenius/dify/issues/17545, earendil-works/pi/pull/3443
// and BerriAI/litellm/issues/7416.
func checkConverse(h http.Header, call bedrockCall, body []byte) *Refusal {
	if r := checkBearer(h); r != nil {
		return r
	}
	r, err := readConverse(call, body)
	if err != nil {
		return notValid("Malformed input request, please reformat your input and try again.")
	}
	if r := checkModelID(call.model); r != nil {
		return r
	}
	if n := r.InferenceConfig.MaxTokens; n != nil && *n < 1 {
		return notValid("1 validation error detected: Value '%d' at 'inferenceConfig.maxTokens' failed to satisfy constraint: Member must have value greater than or equal to 1", *n)
	}
	if no := r.checkMessages(); no != nil {
		return no
	}
	if no := extraneous(r.Additional, invokeFields); no != nil {
		return ofModel(no)
	}
	w := r.request()
	last := r.Messages[len(r.Messages)-1]
	if last.Role == "assistant" && !strings.Contains(call.model, "claude") {
		return notValid("A conversation must end with a user message. Try again with a conversation that ends with a user message.")
	}
	return ofModel(checkConversation(w, false))
}

// checkBearer wants a key, or a signature, which nobody checks here.
func checkBearer(h http.Header) *Refusal {
	switch auth := h.Get("Authorization"); {
	case auth == "":
		return &Refusal{Status: 403, Type: "MissingAuthenticationTokenException", Message: "Missing Authentication Token"}
	case !strings.HasPrefix(auth, "Bearer ") && !strings.HasPrefix(auth, "AWS4-"):
		return &Refusal{Status: 403, Type: "AccessDeniedException", Message: "Authentication failed: Please make sure your API Key is valid."}
	}
	return nil
}

// checkModelID wants a model of a provider, or an ARN, or a scenario.
func checkModelID(id string) *Refusal {
	if modelScenario(id) == "" && !strings.Contains(id, ".") && !strings.HasPrefix(id, "arn:") {
		return notValid("The provided model identifier is invalid.")
	}
	return nil
}

// checkMessages looks at the conversation as the service does.
func (r converseRequest) checkMessages() *Refusal {
	if len(r.Messages) == 0 || r.Messages[0].Role == "assistant" {
		return notValid("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	}
	var called []string // by the message before
	for i, m := range r.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return notValid("1 validation error detected: Value '%s' at 'messages.%d.member.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]", m.Role, i+1)
		}
		if i > 0 && m.Role == r.Messages[i-1].Role {
			return notValid("A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.")
		}
		uses, results, no := r.checkContent(i, m)
		if no == nil {
			no = matchResults(i, called, results)
		}
		if no != nil {
			return no
		}
		called = uses
	}
	return nil
}

// checkContent looks at one message and returns the ids of its calls and results.
func (r converseRequest) checkContent(i int, m converseMessage) (uses, results []string, no *Refusal) {
	if len(m.Content) == 0 {
		return nil, nil, notValid("The content field in the Message object at messages.%d is empty. Add a ContentBlock object to the content field and try again.", i)
	}
	for j, raw := range m.Content {
		var b converseBlock
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil || json.Unmarshal(raw, &b) != nil {
			return nil, nil, notValid("Malformed input request, please reformat your input and try again.")
		}
		if unknown := extraneous(members, converseBlocks); unknown != nil {
			unknown.Message = strings.Replace(unknown.Message, "#:", fmt.Sprintf("#/messages/%d/content/%d:", i, j), 1)
			return nil, nil, ofModel(unknown)
		}
		if b.Text != nil && strings.TrimSpace(*b.Text) == "" {
			return nil, nil, notValid("The text field in the ContentBlock object at messages.%d.content.%d is blank. Add text to the text field, and try again.", i, j)
		}
		if (b.ToolUse != nil || b.ToolResult != nil) && r.ToolConfig == nil {
			return nil, nil, notValid("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
		}
		if b.ToolUse != nil {
			if slices.Contains(uses, b.ToolUse.ToolUseID) {
				return nil, nil, notValid("The toolUse blocks at messages.%d.content contain duplicate Ids: %s", i, b.ToolUse.ToolUseID)
			}
			uses = append(uses, b.ToolUse.ToolUseID)
		}
		if b.ToolResult != nil {
			results = append(results, b.ToolResult.ToolUseID)
		}
	}
	return uses, results, nil
}

// matchResults demands that a message answers the calls of the one before.
func matchResults(i int, called, results []string) *Refusal {
	if len(results) > len(called) {
		return notValid("The number of toolResult blocks at messages.%d.content exceeds the number of toolUse blocks of previous turn.", i)
	}
	var missing []string
	for _, id := range called {
		if !slices.Contains(results, id) {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return notValid("Expected toolResult blocks at messages.%d.content for the following Ids: %s", i, strings.Join(missing, ", "))
	}
	return nil
}

// extraneous refuses members that nobody knows.
func extraneous(members map[string]json.RawMessage, known map[string]bool) *Refusal {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !known[name] {
			return notValid("Malformed input request: #: extraneous key [%s] is not permitted, please reformat your input and try again.", name)
		}
	}
	return nil
}
