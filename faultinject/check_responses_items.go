package faultinject

import (
	"fmt"
	"slices"
	"strings"
)

// checkItems walks the input: what each item is, and how they belong together.
func checkItems(k *shelf, q responsesRequest, items []inputItem) *Refusal {
	for i, it := range items {
		if r := checkItem(i, it); r != nil {
			return r
		}
	}
	if r := checkItemIDs(k, q, items); r != nil {
		return r
	}
	items = k.resolve(items)
	if r := checkReasoning(k, items); r != nil {
		return r
	}
	return checkOutputs(k, q, items)
}

// itemTypes are the types of input items (API reference, 2026).
var itemTypes = []string{
	"additional_tools", "apply_patch_call", "apply_patch_call_output", "code_interpreter_call", "compaction", "computer_call", "computer_call_output",
	"custom_tool_call", "custom_tool_call_output", "file_search_call", "function_call", "function_call_output", "image_generation_call", "item_reference",
	"local_shell_call", "local_shell_call_output", "mcp_approval_request", "mcp_approval_response", "mcp_call", "mcp_list_tools", "message", "reasoning",
	"shell_call", "shell_call_output", "tool_search_call", "tool_search_output", "web_search_call",
}

func checkItem(i int, it inputItem) *Refusal {
	at := fmt.Sprintf("input[%d]", i)
	if it.Type == "" && it.ID == "" {
		return missing(at + ".type")
	}
	if it.Type != "" && !slices.Contains(itemTypes, it.Type) {
		return invalidValue(at, it.Type, itemTypes...)
	}
	if prefix := itemIDs[it.Type]; prefix != "" && it.ID != "" && !strings.HasPrefix(it.ID, prefix[:len(prefix)-1]) {
		return coded("invalid_value", at+".id", "Invalid '%s.id': '%s'. Expected an ID that begins with '%s'.", at, it.ID, prefix[:len(prefix)-1])
	}
	if n := len(it.CallID); n > 64 {
		return coded("string_above_max_length", at+".call_id", "Invalid '%s.call_id': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", at, n)
	}
	switch it.Type {
	case "message":
		return checkMessage(at, it)
	case "function_call":
		if it.Arguments == nil {
			return missing(at + ".arguments")
		}
		return checkCall(at, it)
	case "custom_tool_call":
		if it.Input == nil {
			return missing(at + ".input")
		}
		return checkCall(at, it)
	case "function_call_output", "custom_tool_call_output":
		if it.CallID == "" {
			return missing(at + ".call_id")
		}
		if len(it.Output) == 0 {
			return missing(at + ".output")
		}
	case "reasoning":
		if it.Encrypted != nil && !unseal(*it.Encrypted) {
			return coded("invalid_encrypted_content", "", "The encrypted content %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", abridged(*it.Encrypted))
		}
	}
	return nil
}

func checkCall(at string, it inputItem) *Refusal {
	if it.CallID == "" {
		return missing(at + ".call_id")
	}
	if it.Name == "" {
		return missing(at + ".name")
	}
	return nil
}

// checkMessage wants the parts of a message to be of its side: what the model
// said is output, all else is input.
func checkMessage(at string, it inputItem) *Refusal {
	roles := []string{"assistant", "system", "developer", "user"}
	if !slices.Contains(roles, it.Role) {
		return invalidValue(at, it.Role, roles...)
	}
	if len(it.Content) == 0 || string(it.Content) == "null" {
		return missing(at + ".content")
	}
	ps, err := parts(it.Content)
	if err != nil {
		return coded("invalid_type", at+".content", "Invalid type for '%s.content': expected one of an array of objects or string.", at)
	}
	if it.Content[0] == '"' {
		return nil
	}
	supported := []string{"input_text", "input_image", "output_text", "refusal", "input_file", "computer_screenshot", "summary_text"}
	if it.Role == "assistant" {
		supported = []string{"output_text", "refusal"}
	}
	for j, p := range ps {
		if !slices.Contains(supported, p.Type) {
			return invalidValue(fmt.Sprintf("%s.content[%d]", at, j), p.Type, supported...)
		}
	}
	return nil
}

// abridged is how the provider quotes encrypted content.
func abridged(s string) string {
	if len(s) < 8 {
		return s
	}
	return s[:4] + "..." + s[len(s)-4:]
}

// checkItemIDs refuses ids that come twice, and ids of what was not kept.
func checkItemIDs(k *shelf, q responsesRequest, items []inputItem) *Refusal {
	seen := map[string]bool{}
	if was, ok := k.get(q.Previous); ok {
		for _, it := range was.items {
			seen[it.ID] = true
		}
	}
	for _, it := range items {
		if it.ID == "" {
			continue
		}
		if seen[it.ID] {
			return invalidParam("input", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", it.ID)
		}
		seen[it.ID] = true
		bare := it.Type == "item_reference" || it.Type == "" || it.Type == "reasoning" && it.Encrypted == nil
		if _, _, kept := k.item(it.ID); bare && !kept {
			return &Refusal{Status: 404, Type: "invalid_request_error", Param: "input", Message: fmt.Sprintf("Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", it.ID)}
		}
	}
	return nil
}

// checkReasoning wants reasoning and what it led to together. Of responses
// that were kept it is known what that is; otherwise it is whatever the model
// said next (FIELD-REPORTS D9).
func checkReasoning(k *shelf, items []inputItem) *Refusal {
	ids := map[string]bool{}
	for _, it := range items {
		ids[it.ID] = true
	}
	for i, it := range items {
		if it.Type != "reasoning" {
			if r := checkThought(k, it, ids); r != nil {
				return r
			}
			continue
		}
		_, next, kept := k.item(it.ID)
		lonely := i+1 == len(items) || !items[i+1].said()
		if kept && it.ID != "" {
			lonely = next != "" && (i+1 == len(items) || items[i+1].ID != next)
		}
		if lonely {
			return invalidParam("input", "Item '%s' of type 'reasoning' was provided without its required following item.", it.ID)
		}
	}
	return nil
}

// checkThought wants the reasoning that led to a kept item.
func checkThought(k *shelf, it inputItem, ids map[string]bool) *Refusal {
	if it.ID == "" {
		return nil
	}
	if was, ok := k.before(it.ID); ok && was.Type == "reasoning" && !ids[was.ID] {
		return invalidParam("input", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", it.ID, it.Type, was.ID)
	}
	return nil
}

// checkOutputs wants every call answered and every answer to have its call.
func checkOutputs(k *shelf, q responsesRequest, items []inputItem) *Refusal {
	open := map[string]string{} // call id -> kind of tool
	if was, ok := k.get(q.Previous); ok {
		for _, it := range was.items {
			if kind, isCall := strings.CutSuffix(it.Type, "_call"); isCall && it.CallID != "" {
				open[it.CallID] = kind
			}
		}
	}
	answered := map[string]bool{}
	for _, it := range items {
		switch it.Type {
		case "function_call", "custom_tool_call":
			open[it.CallID], _ = strings.CutSuffix(it.Type, "_call")
		case "function_call_output", "custom_tool_call_output":
			kind, _ := strings.CutSuffix(it.Type, "_call_output")
			if open[it.CallID] != kind {
				return invalidParam("input", "No tool call found for %s call output with call_id %s.", strings.ReplaceAll(kind, "_", " "), it.CallID)
			}
			answered[it.CallID] = true
		}
	}
	var missing []string
	for id := range open {
		if !answered[id] {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	id := sorted(missing)[0]
	return invalidParam("input", "No tool output found for %s call %s.", strings.ReplaceAll(open[id], "_", " "), id)
}
