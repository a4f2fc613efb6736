package openairesponses

import (
	"bytes"
	"slices"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

var _ dialect.Lineage = Dialect{}

// previous names the turn that a request builds on.
const previous = "previous_response_id"

// Named implements [dialect.Lineage].
func (Dialect) Named(body []byte) string { return text(jsonwalk.Get(body, previous)) }

// Keep implements [dialect.Lineage]. What is kept is an object in the words of a request: previous_response_id, if there
// was one, and input, which is the request's and, behind it, what was said. A stored prompt is not kept: what it put in
// front of the input is known to the provider alone.
func (Dialect) Keep(body []byte, said *turn.Snapshot) (id string, kept []byte) {
	if store, told := jsonwalk.Bool(jsonwalk.Get(body, "store")); told && !store ||
		filled(jsonwalk.Get(body, "prompt")) || filled(jsonwalk.Get(body, "conversation")) {
		return "", nil
	}
	id = text(jsonwalk.Get(said.Head, "response", "id"))
	if id == "" {
		return "", nil
	}
	members := []field{{"input", list(append(items(jsonwalk.Get(body, "input")), bequeathed(said)...))}}
	if on := jsonwalk.Get(body, previous); filled(on) {
		members = append(members, field{previous, on})
	}
	return id, object(members)
}

// Expand implements [dialect.Lineage].
func (Dialect) Expand(body, kept []byte) []byte {
	input := append(items(jsonwalk.Get(kept, "input")), items(jsonwalk.Get(body, "input"))...)
	out := jsonwalk.SetMember(nil, body, "input", list(input))
	if on := jsonwalk.Get(kept, previous); filled(on) {
		out = jsonwalk.SetMember(nil, out, previous, on)
	} else {
		out = jsonwalk.DeleteMember(nil, out, previous)
	}
	if out == nil || !jsonwalk.Valid(out) {
		return nil
	}
	return out
}

// items are the items of input, which may be text.
func items(input []byte) [][]byte {
	if jsonwalk.KindOf(input) == jsonwalk.KindString {
		return [][]byte{userMessage(input)}
	}
	return jsonwalk.All(input)
}

// bequeathed is a finished turn as input items. The provider knows nothing of it, so that nothing may refer to what it
// keeps: reasoning stays where it is sealed in its item and its own follows, both byte for byte; any other is left out,
// and what is not behind its reasoning goes without id.
func bequeathed(said *turn.Snapshot) (out [][]byte) {
	w := wire{said: said}
	var thought []byte
	for n := range said.Blocks {
		b := &said.Blocks[n]
		if !b.Live() || first(said, n) != n {
			continue
		}
		item := finishedItem(said, n)
		if b.Kind == turn.Reasoning {
			if thought = nil; len(b.Signature) > 0 && !marked(b.Signature) {
				thought = item
			}
			continue
		}
		if item == nil {
			item = w.itemOf(n, "completed")
		}
		switch b.Kind {
		case turn.Hosted, turn.HostedResult:
			// What ran at the provider has its id for its own sake.
		case turn.Prose, turn.Refusal:
			if len(bytes.TrimSpace(w.words(n))) == 0 {
				continue
			}
			item = unnamed(item, thought)
		default:
			item = unnamed(item, thought)
		}
		if thought != nil {
			out = append(out, slices.Clone(thought))
			thought = nil
		}
		out = append(out, slices.Clone(item))
	}
	return out
}

// words is the decoded text of all parts of the item that block n begins.
func (w *wire) words(n int) (out []byte) {
	for _, m := range parts(w.said, n) {
		out = append(out, w.said.Blocks[m].Plain()...)
	}
	return out
}

// unnamed takes the id off an item that does not follow its reasoning.
func unnamed(item, thought []byte) []byte {
	if thought != nil {
		return item
	}
	return jsonwalk.DeleteMember(nil, item, "id")
}
