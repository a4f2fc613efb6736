package openairesponses

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// kindOf maps an item's type to the kind of its (first) block. Where a call runs decides: at the caller, a call is held
// back until it is whole and ends the turn; at OpenAI it has happened, and must not happen again.
func kindOf(typ []byte) turn.BlockKind {
	switch string(typ) {
	case "message":
		return turn.Prose
	case "reasoning":
		return turn.Reasoning
	case "function_call":
		return turn.Call
	case "custom_tool_call":
		return turn.CustomCall
	case "local_shell_call", "shell_call", "apply_patch_call", "computer_call":
		return turn.CustomCall // run by the application, which answers with an …_output item
	case "mcp_approval_request":
		return turn.CustomCall // asks the application for its consent
	case "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
		"mcp_list_tools", "mcp_call", "tool_search_call":
		return turn.HostedResult // the item holds the result, too
	case "compaction":
		return turn.HostedResult // what came before, in short; whole in its item
	}
	if bytes.HasSuffix(typ, []byte("_output")) {
		return turn.HostedResult
	}
	return turn.Unknown
}

// opening is an item as output_item.added or output_item.done spells it. Strings are escaped bodies.
type opening struct {
	raw, typ          []byte
	kind              turn.BlockKind
	id, name          []byte // as [turn.Delta] has them: a call's are call_id and the tool's name
	full              []byte // arguments or input
	content, summary  []byte // raw arrays
	signature, status []byte
	where             []byte // raw: environment of a shell call
	execution         []byte // of a tool search
}

func readItem(raw []byte) (opening, error) {
	o := opening{raw: raw}
	var id, callID, name []byte
	w := jsonwalk.Members(raw)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch string(plainKey(k)) {
		case "type":
			o.typ, _ = jsonwalk.String(v)
		case "id":
			id, _ = jsonwalk.String(v)
		case "call_id":
			callID, _ = jsonwalk.String(v)
		case "name":
			name, _ = jsonwalk.String(v)
		case "arguments", "input":
			o.full, _ = jsonwalk.String(v)
		case "content":
			o.content = v
		case "summary":
			o.summary = v
		case "encrypted_content":
			o.signature, _ = jsonwalk.String(v)
		case "status":
			o.status, _ = jsonwalk.String(v)
		case "environment":
			o.where = v
		case "execution":
			o.execution, _ = jsonwalk.String(v)
		}
	}
	if w.Err() != nil {
		return o, ErrJSON
	}
	switch o.kind = kindOf(o.typ); {
	case string(o.typ) == "shell_call" && container(o.where):
		o.kind = turn.Hosted // its shell_call_output follows
	case string(o.typ) == "tool_search_call" && string(o.execution) == "client":
		o.kind = turn.CustomCall
	}
	o.id, o.name = id, o.typ
	switch o.kind {
	case turn.Prose, turn.Refusal, turn.Reasoning:
		o.name = nil
	case turn.Call, turn.CustomCall:
		if callID != nil {
			o.id = callID
		}
		if name != nil {
			o.name = name
		}
	}
	return o, nil
}

// container reports whether a shell call's environment is at the provider. One that says nothing is taken for the
// caller's: to hold a call back is safe.
func container(where []byte) bool {
	typ, _ := jsonwalk.String(jsonwalk.Get(where, "type"))
	return bytes.HasPrefix(typ, []byte("container"))
}

// spelled reports whether the input of a call is streamed as text; else it is in its item.
func spelled(typ []byte) bool {
	return string(typ) == "function_call" || string(typ) == "custom_tool_call"
}

// content is one part of a message or reasoning item.
type content struct {
	kind  turn.BlockKind
	inner bool
	text  []byte // escaped body
}

// readPart reads a part. ok is false for a part of a type that holds no text known here.
func readPart(raw []byte) (c content, ok bool) {
	var typ, refusal []byte
	w := jsonwalk.Members(raw)
	for k, v, more := w.Next(); more; k, v, more = w.Next() {
		switch string(plainKey(k)) {
		case "type":
			typ, _ = jsonwalk.String(v)
		case "text":
			c.text, _ = jsonwalk.String(v)
		case "refusal":
			refusal, _ = jsonwalk.String(v)
		}
	}
	switch string(typ) {
	case "output_text", "text":
		c.kind = turn.Prose
	case "refusal":
		c.kind, c.text = turn.Refusal, refusal
	case "summary_text":
		c.kind = turn.Reasoning
	case "reasoning_text":
		c.kind, c.inner = turn.Reasoning, true
	default:
		return c, false
	}
	return c, w.Err() == nil
}

// runes counts the code points of an escaped body; annotations count their places in them.
func runes(body []byte) int {
	n := 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '\\' && i+1 < len(body) && body[i+1] == 'u':
			if !jsonwalk.EndsInHighSurrogate(body[:min(i+6, len(body))]) {
				n++ // the first half of a pair counts with its second
			}
			i += 5
		case c == '\\':
			n++
			i++
		case c&0xc0 != 0x80:
			n++
		}
	}
	return n
}
