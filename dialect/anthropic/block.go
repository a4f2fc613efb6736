package anthropic

import (
	"bytes"
	"strings"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// kindOf maps a content block's type. Types are open-ended; results are known by their suffix so that a new hosted tool
// needs no new release.
func kindOf(typ []byte) turn.BlockKind {
	switch string(typ) {
	case "text":
		return turn.Prose
	case "thinking":
		return turn.Reasoning
	case "redacted_thinking":
		return turn.Redacted
	case "tool_use":
		return turn.Call
	case "server_tool_use", "mcp_tool_use":
		return turn.Hosted
	case "mcp_tool_result":
		return turn.HostedResult
	}
	if bytes.HasSuffix(typ, []byte("_tool_result")) {
		return turn.HostedResult
	}
	return turn.Unknown
}

// opening is a content block as its opening event spells it. Strings are escaped bodies.
type opening struct {
	kind      turn.BlockKind
	raw       []byte
	id, name  []byte
	text      []byte // text or thinking
	signature []byte
	input     []byte // raw; nil when absent or an object without members
	citations []byte // raw; nil when absent, null or empty
}

func readOpening(raw []byte) (opening, error) {
	o := opening{raw: raw}
	var typ, text, thinking []byte
	w := jsonwalk.Members(raw)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch string(plainKey(k)) {
		case "type":
			typ, _ = jsonwalk.String(v)
		case "id":
			o.id, _ = jsonwalk.String(v)
		case "name":
			o.name, _ = jsonwalk.String(v)
		case "text":
			text, _ = jsonwalk.String(v)
		case "thinking":
			thinking, _ = jsonwalk.String(v)
		case "signature":
			o.signature, _ = jsonwalk.String(v)
		case "input":
			o.input = filled(v)
		case "citations":
			o.citations = filled(v)
		}
	}
	if w.Err() != nil {
		return o, ErrJSON
	}
	switch o.kind = kindOf(typ); o.kind {
	case turn.Prose:
		o.text = text
	case turn.Reasoning:
		o.text = thinking
	case turn.Unknown:
		o.name = typ // so that a refusal can name what stands in the way
	}
	return o, nil
}

// filled returns v unless it is null or an object or array without content, which providers send as placeholders.
func filled(v []byte) []byte {
	inside := v
	if len(v) >= 2 && (v[0] == '{' || v[0] == '[') {
		inside = bytes.TrimSpace(v[1 : len(v)-1])
	}
	if len(inside) == 0 || jsonwalk.IsNull(v) {
		return nil
	}
	return v
}

// plainKey decodes a member's key. Keys of this protocol are ASCII; one with escapes is legal JSON, and rare enough to
// allocate for.
func plainKey(k []byte) []byte {
	if bytes.IndexByte(k, '\\') < 0 {
		return k
	}
	return jsonwalk.Unescape(nil, k)
}

// whole reports whether a block that is still open on the wire may be closed by us without inventing anything: its
// content is text, came whole in its opening event, or is a call whose arguments are complete (DESIGN §1.4, D3, D7).
func whole(b *turn.Block) bool {
	switch b.Kind {
	case turn.Prose, turn.Refusal, turn.Redacted, turn.HostedResult:
		return true
	case turn.Call:
		return b.Complete()
	}
	return false
}

// deltaType is the delta type that carries a block's text, and the member the text is in.
func deltaType(k turn.BlockKind) (typ, member string) {
	switch k {
	case turn.Reasoning:
		return "thinking_delta", "thinking"
	case turn.Call, turn.Hosted:
		return "input_json_delta", "partial_json"
	}
	return "text_delta", "text"
}

// clientTool reports whether a typed tool is run by the caller, not by the provider: Anthropic defines its schema, the
// application executes it. Every other typed tool, and any type not known here, runs at the provider.
func clientTool(typ string) bool {
	for _, p := range [...]string{"bash_", "text_editor_", "computer_", "memory_"} {
		if strings.HasPrefix(typ, p) {
			return true
		}
	}
	return typ == "" || typ == "custom"
}
