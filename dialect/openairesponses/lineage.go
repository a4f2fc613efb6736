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

// Known implements [dialect.Lineage]. An answer to a stored prompt is not: what that put in front of the input is known to
// the provider alone.
func (Dialect) Known(body []byte, said *turn.Snapshot) string {
	if store, told := jsonwalk.Bool(jsonwalk.Get(body, "store")); told && !store ||
		filled(jsonwalk.Get(body, "prompt")) || filled(jsonwalk.Get(body, "conversation")) {
		return ""
	}
	return text(jsonwalk.Get(said.Head, "response", "id"))
}

// Keep implements [dialect.Lineage]. What is kept is an object in the words of a request: previous_response_id, if there
// was one, and input, which is the request's and, behind it, what was said.
func (d Dialect) Keep(body []byte, said *turn.Snapshot) (l dialect.Legacy) {
	id := d.Known(body, said)
	if id == "" {
		return l
	}
	l.ID, l.Items = id, heirlooms(said)
	input := items(jsonwalk.Get(body, "input"))
	for _, h := range l.Items {
		if !jsonwalk.IsNull(h.Item) {
			input = append(input, h.Item)
		}
	}
	members := []field{{"input", list(input)}}
	if on := jsonwalk.Get(body, previous); filled(on) {
		members = append(members, field{previous, on})
	}
	l.Turn = object(members)
	return l
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

// nothing is what is left of an item that cannot be said again.
var nothing = []byte("null")

// heirlooms is a finished turn as input items, each under the id that the client has. The provider knows nothing of
// them, so that nothing may refer to what it keeps: reasoning stays where it is sealed in its item and its own follows,
// both byte for byte; any other is nothing, and what is not behind its reasoning goes without id.
func heirlooms(said *turn.Snapshot) (out []dialect.Heirloom) {
	w := wire{said: said}
	var thought []byte // sealed reasoning, the last of out, which waits for its own
	for n := range said.Blocks {
		b := &said.Blocks[n]
		if !b.Live() || first(said, n) != n {
			continue
		}
		h := dialect.Heirloom{ID: text(itemID(said, n)), Item: nothing}
		item := finishedItem(said, n)
		if b.Kind == turn.Reasoning {
			if thought = nil; item != nil && len(b.Signature) > 0 && !turn.DropMarked(b.Signature) {
				thought = item
			}
			out = append(out, h)
			continue
		}
		if item == nil {
			item = w.itemOf(n, "completed")
		}
		blank := isPart(b.Kind) && len(bytes.TrimSpace(w.words(n))) == 0
		switch {
		case blank:
			out = append(out, h)
			continue
		case thought != nil:
			out[len(out)-1].Item = slices.Clone(thought)
		case b.Kind != turn.Hosted && b.Kind != turn.HostedResult: // what ran at the provider has its id for its own sake
			item = jsonwalk.DeleteMember(nil, item, "id")
		}
		thought = nil
		h.Item = slices.Clone(item)
		out = append(out, h)
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

// reference is the type of an item that is named only.
const reference = "item_reference"

// Refers implements [dialect.Lineage].
func (Dialect) Refers(body []byte) (ids []string) {
	if !jsonwalk.Has(body, reference) {
		return nil
	}
	es := jsonwalk.Elements(jsonwalk.Get(body, "input"))
	for item, ok := es.Next(); ok; item, ok = es.Next() {
		if id := referred(item); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// referred is the id of an item that is named only.
func referred(item []byte) string {
	if typ := text(jsonwalk.Get(item, "type")); typ != reference {
		return ""
	}
	return text(jsonwalk.Get(item, "id"))
}

// Inline implements [dialect.Lineage].
func (Dialect) Inline(body []byte, kept func(id string) []byte) []byte {
	all := jsonwalk.All(jsonwalk.Get(body, "input"))
	var edits []jsonwalk.Patch
	gone := make([]bool, len(all))
	for i, item := range all {
		id := referred(item)
		if id == "" {
			continue
		}
		switch with := kept(id); {
		case with == nil:
		case jsonwalk.IsNull(with):
			gone[i] = true
		default:
			edits = append(edits, patch(body, item, with))
		}
	}
	edits = jsonwalk.Cut(edits, body, all, func(i int) bool { return gone[i] })
	if len(edits) == 0 {
		return body
	}
	return jsonwalk.ApplySorted(body, edits)
}
