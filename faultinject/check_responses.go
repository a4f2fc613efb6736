package faultinject

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// checkResponses refuses what OpenAI's Responses endpoint refuses, in its
// words. Whoever adds a rule quotes the real message: clients match on it.
func checkResponses(k *shelf, h http.Header, body []byte) *Refusal {
	if r := checkKey(h); r != nil {
		return r
	}
	q, items, r := decodeResponses(body)
	if r != nil {
		return r
	}
	if r := checkMembers(body); r != nil {
		return r
	}
	if q.Model == "" && len(q.Prompt) == 0 {
		return missing("model")
	}
	if r := checkLimits(q); r != nil {
		return r
	}
	if r := checkTools(q); r != nil {
		return r
	}
	if r := checkState(k, q); r != nil {
		return r
	}
	if len(items) == 0 && q.Previous == "" && len(q.Prompt) == 0 {
		return invalid(`One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must be provided.`)
	}
	return checkItems(k, q, items)
}

// checkKey wants credentials, as every OpenAI endpoint does.
func checkKey(h http.Header) *Refusal {
	if h.Get("Authorization") == "" && h.Get("Api-Key") == "" {
		return &Refusal{Status: 401, Type: "invalid_request_error", Message: "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."}
	}
	return nil
}

// coded is invalidParam with a code.
func coded(code, param, format string, args ...any) *Refusal {
	r := invalidParam(param, format, args...)
	r.Code = code
	return r
}

func missing(param string) *Refusal {
	return coded("missing_required_parameter", param, "Missing required parameter: '%s'.", param)
}

func invalidValue(param, got string, supported ...string) *Refusal {
	quoted := make([]string, len(supported))
	for i, s := range supported {
		quoted[i] = "'" + s + "'"
	}
	list := quoted[0]
	switch last := len(quoted) - 1; {
	case last == 1:
		list += " and " + quoted[1]
	case last > 1:
		list = strings.Join(quoted[:last], ", ") + ", and " + quoted[last]
	}
	return coded("invalid_value", param, "Invalid value: '%s'. Supported values are: %s.", got, list)
}

// responsesMembers are the parameters the endpoint knows (API reference,
// create a model response, 2026), and client_metadata, which is not in it: Codex
// sends it there with every request.
var responsesMembers = []string{
	"background", "client_metadata", "context_management", "conversation", "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata",
	"model", "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_retention", "reasoning",
	"safety_identifier", "service_tier", "store", "stream", "stream_options", "temperature", "text", "tool_choice", "tools",
	"top_logprobs", "top_p", "truncation", "user",
}

// movedMembers are those of Chat Completions that have another name here.
var movedMembers = map[string]string{"messages": "input", "response_format": "text.format", "max_tokens": "max_output_tokens",
	"max_completion_tokens": "max_output_tokens", "reasoning_effort": "reasoning.effort", "verbosity": "text.verbosity", "functions": "tools"}

func checkMembers(body []byte) *Refusal {
	var all map[string]json.RawMessage
	if json.Unmarshal(body, &all) != nil {
		return invalid("Invalid body: expected an object.")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if to, moved := movedMembers[name]; moved {
			return coded("unsupported_parameter", name, "Unsupported parameter: '%s'. In the Responses API, this parameter has moved to '%s'. Try again with the new parameter. See the API documentation for more information: https://platform.openai.com/docs/api-reference/responses/create.", name, to)
		}
		if !slices.Contains(responsesMembers, name) {
			return coded("unknown_parameter", name, "Unknown parameter: '%s'.", name)
		}
	}
	return nil
}

func checkLimits(q responsesRequest) *Refusal {
	const least = 16
	if q.MaxOutput != nil && *q.MaxOutput < least {
		return coded("integer_below_min_value", "max_output_tokens", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= %d, but got %d instead.", least, *q.MaxOutput)
	}
	if q.StreamOptions != nil && !q.Stream {
		return invalidParam("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	switch f := q.Text.Format; {
	case f.Type != "json_schema":
	case f.Name == "":
		return missing("text.format.name")
	case len(f.Schema) == 0:
		return missing("text.format.schema")
	}
	for i, name := range q.Include {
		if !slices.Contains(includable, name) {
			return invalidValue(fmt.Sprintf("include[%d]", i), name, includable...)
		}
	}
	return nil
}

var includable = []string{"file_search_call.results", "web_search_call.results", "web_search_call.action.sources", "message.input_image.image_url",
	"computer_call_output.output.image_url", "code_interpreter_call.outputs", "reasoning.encrypted_content", "message.output_text.logprobs"}

func checkTools(q responsesRequest) *Refusal {
	for i, t := range q.Tools {
		switch {
		case t.Type == "":
			return missing(fmt.Sprintf("tools[%d].type", i))
		case (t.Type == "function" || t.Type == "custom") && t.Name == "":
			return missing(fmt.Sprintf("tools[%d].name", i)) // a tool in Chat's form, most often
		}
	}
	var choice struct{ Type, Name string }
	if json.Unmarshal(q.ToolChoice, &choice) != nil || choice.Type != "function" && choice.Type != "custom" {
		return nil
	}
	if !slices.ContainsFunc(q.Tools, func(t responsesTool) bool { return t.Name == choice.Name && t.Type == choice.Type }) {
		return invalidParam("tool_choice", "Tool choice '%s' not found in 'tools' parameter.", choice.Type)
	}
	return nil
}

// checkState looks at what a request asks the provider to remember.
func checkState(k *shelf, q responsesRequest) *Refusal {
	conversation := len(q.Conversation) > 0 && string(q.Conversation) != "null"
	if conversation && q.Previous != "" {
		return coded("mutually_exclusive_parameters", "", "Mutually exclusive parameters: 'previous_response_id'. Ensure you are only providing one of: 'previous_response_id' or 'conversation'.")
	}
	if q.Background && q.Store != nil && !*q.Store {
		return invalidParam("background", "Background mode requires store to be true.") // the guide: stateless requests are rejected
	}
	if conversation { // none is ever created here
		var c struct{ ID string }
		if json.Unmarshal(q.Conversation, &c.ID) != nil {
			_ = json.Unmarshal(q.Conversation, &c)
		}
		return &Refusal{Status: 404, Type: "invalid_request_error", Message: fmt.Sprintf("Conversation with id '%s' not found.", c.ID)}
	}
	if q.Previous == "" {
		return nil
	}
	if _, ok := k.get(q.Previous); !ok {
		return coded("previous_response_not_found", "previous_response_id", "Previous response with id '%s' not found.", q.Previous)
	}
	return nil
}
