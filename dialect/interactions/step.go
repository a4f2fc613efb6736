package interactions

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// step is the opening of a step.
type step struct {
	kind     turn.BlockKind
	id, name []byte // string bodies
	args     []byte // raw object of a function call that came with its opening
}

func readStep(raw []byte) step {
	var s step
	var typ []byte
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "type":
			typ, _ = jsonwalk.String(val)
		case "id", "call_id":
			s.id, _ = jsonwalk.String(val)
		case "name":
			s.name, _ = jsonwalk.String(val)
		case "arguments":
			s.args = val
		}
	}
	switch s.kind = kindOf(typ); s.kind {
	case turn.Prose, turn.Reasoning:
		s.id, s.name = nil, nil
	case turn.Call:
	default:
		if s.name == nil {
			s.name = typ
		}
	}
	if !filled(s.args) { // a placeholder: the arguments come as deltas
		s.args = nil
	}
	return s
}

func kindOf(typ []byte) turn.BlockKind {
	switch {
	case string(typ) == "model_output":
		return turn.Prose
	case string(typ) == "thought":
		return turn.Reasoning
	case string(typ) == "function_call":
		return turn.Call
	case bytes.HasSuffix(typ, []byte("_call")):
		return turn.Hosted
	case bytes.HasSuffix(typ, []byte("_result")):
		return turn.HostedResult
	}
	return turn.Unknown
}

// payload is a step's delta: its type, and the string that carries its text.
type payload struct {
	typ  []byte // string body
	text []byte // raw string; nil when the type has none
}

func readDelta(raw []byte) (p payload, err error) {
	var text, args, signature, content []byte
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "type":
			p.typ, _ = jsonwalk.String(val)
		case "text":
			text = val
		case "arguments":
			args = val
		case "signature":
			signature = val
		case "content":
			content = val
		}
	}
	if w.Err() != nil {
		return p, ErrNotJSON
	}
	switch string(p.typ) {
	case "text":
		p.text = text
	case "arguments_delta":
		p.text = args
	case "thought_signature":
		p.text = signature
	case "thought_summary":
		p.text = jsonwalk.Get(content, "text")
	}
	return p, nil
}

// fits reports whether a delta of that type is text of a block of that kind.
func (p *payload) fits(kind turn.BlockKind) bool {
	switch string(p.typ) {
	case "text":
		return kind == turn.Prose
	case "arguments_delta":
		return kind == turn.Call
	case "thought_signature", "thought_summary":
		return kind == turn.Reasoning
	}
	return false
}

func filled(val []byte) bool {
	switch jsonwalk.KindOf(val) {
	case jsonwalk.KindArray:
		e := jsonwalk.Elements(val)
		_, ok := e.Next()
		return ok
	case jsonwalk.KindObject:
		w := jsonwalk.Members(val)
		_, _, ok := w.Next()
		return ok
	}
	return false
}
