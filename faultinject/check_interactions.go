package faultinject

import (
	"encoding/json"
	"fmt"
	"strings"
)

// interactionSteps are the members of each type of step. The schema is strict:
// a member of another type is refused (github.com/router-for-me/CLIProxyAPI/pull/5830).
var interactionSteps = map[string]string{
	"user_input":            "content",
	"model_output":          "content",
	"thought":               "signature summary",
	"function_call":         "id name arguments signature",
	"function_result":       "call_id name result is_error",
	"code_execution_call":   "id arguments signature",
	"code_execution_result": "call_id result is_error signature",
	"google_search_call":    "id arguments signature",
	"google_search_result":  "call_id result is_error signature",
	"url_context_call":      "id arguments signature",
	"url_context_result":    "call_id result is_error signature",
}

// interactionFields are the members of a request.
const interactionFields = "agent agent_config background cached_content continuation_token environment generation_config input labels model " +
	"previous_interaction_id response_format response_mime_type response_modalities safety_settings service_tier store stream " +
	"system_instruction tools webhook_config"

// badInteraction is a refusal of this API: a word for a code. Where no comment
// says otherwise the messages are ours; the API's own is mostly "Invalid input
// received" (github.com/robocurve/inspect-robots/issues/380).
func badInteraction(format string, args ...any) *Refusal {
	return &Refusal{Status: 400, Type: "invalid_request", Message: fmt.Sprintf(format, args...)}
}

// decodeInteraction reads a body.
func decodeInteraction(body []byte) (interactionRequest, *Refusal) {
	var req interactionRequest
	members, err := membersOf(body)
	if err != nil || json.Unmarshal(body, &req) != nil {
		return req, badInteraction("Invalid input received: the body cannot be read.")
	}
	for _, m := range members {
		if !hasWord(interactionFields, m.key) {
			return req, badInteraction("Unknown parameter '%s'.", m.key)
		}
	}
	return req, nil
}

func hasWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// checkInteraction refuses what the API refuses. open are calls of the
// interaction it builds on that still want their results.
func checkInteraction(req interactionRequest, open []Block) *Refusal {
	switch {
	case req.Model == "" && req.Agent == "":
		return badInteraction("Either 'model' or 'agent' is required.")
	case req.Model != "" && req.Agent != "":
		return badInteraction("Only one of 'model' and 'agent' may be set.")
	case req.Background && !req.kept():
		return badInteraction("'background' requires 'store' to be true.")
	case !req.kept() && req.Previous != "":
		return badInteraction("'previous_interaction_id' requires 'store' to be true.")
	}
	steps, ok := inputSteps(req.Input)
	if !ok || len(steps) == 0 {
		return badInteraction("Invalid input received")
	}
	for i, s := range steps {
		if r := checkStep(i, s); r != nil {
			return r
		}
	}
	if r := checkStepPairs(steps, open); r != nil {
		return r
	}
	if last := steps[len(steps)-1]; last.Type == "thought" || last.Type == "model_output" && !geminiPrefills(modelName(req.Model)) {
		return badInteraction("Requests ending with a model turn are not supported.")
	}
	return nil
}

// checkStep looks at one step for itself.
func checkStep(i int, s interactionStep) *Refusal {
	fields, known := interactionSteps[s.Type]
	if !known {
		return badInteraction("Invalid input received: input[%d].type '%s' is not supported.", i, s.Type)
	}
	members, err := membersOf(s.raw)
	if err != nil {
		return badInteraction("Invalid input received")
	}
	for _, m := range members {
		if m.key != "type" && !hasWord(fields, m.key) {
			return badInteraction("Unknown parameter '%s' at 'input[%d]'.", m.key, i)
		}
	}
	switch s.Type {
	case "user_input", "model_output":
		if contentText(s.Content) == "" && !strings.Contains(string(s.Content), `"mime_type"`) {
			return badInteraction("Invalid input received: input[%d].content must not be empty.", i)
		}
	case "thought":
		if s.Signature != "" && s.Signature != signThought(s.Summary) {
			return badInteraction("Corrupted thought signature.")
		}
	case "function_call":
		if s.ID == "" || s.Name == "" || !isObject(s.Arguments) {
			return badInteraction("Invalid input received: input[%d] needs an id, a name and arguments.", i)
		}
	case "function_result": // the name is wanted although the guide says otherwise (inspect-robots#380)
		if s.CallID == "" || s.Name == "" || len(s.Result) == 0 {
			return badInteraction("Invalid input received")
		}
	}
	return nil
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// checkStepPairs demands that every call is answered before anything else is
// said, by its id.
func checkStepPairs(steps []interactionStep, before []Block) *Refusal {
	open := map[string]bool{}
	for _, k := range before {
		open[k.ID] = true
	}
	for i, s := range steps {
		switch {
		case s.Type == "function_call":
			open[s.ID] = true
			continue
		case s.Type == "function_result" && !open[s.CallID]:
			return badInteraction("Invalid input received: input[%d].call_id '%s' names no function call.", i, s.CallID)
		case s.Type == "function_result":
			delete(open, s.CallID)
			continue
		case s.Type == "thought":
			continue
		case len(open) > 0:
			return badInteraction("Invalid input received: input[%d] comes before the results of the function calls.", i)
		}
	}
	if len(open) > 0 {
		return badInteraction("Invalid input received: a function call has no result.")
	}
	return nil
}

// signThought is the signature of a thought whose summary is the given list. A
// client may have joined the pieces of it.
func signThought(summary json.RawMessage) string { return signPart("thought", contentText(summary)) }
