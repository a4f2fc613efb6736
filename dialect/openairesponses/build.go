package openairesponses

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// partOf is the part object of a block.
func partOf(b *turn.Block, body, notes []byte) []byte {
	switch {
	case foreign(b):
		return slices.Clone(notes)
	case b.Kind == turn.Refusal:
		return slices.Concat([]byte(`{"type":"refusal","refusal":`), quoted(body), []byte{'}'})
	case b.Kind == turn.Reasoning && b.Stage&inner != 0:
		return slices.Concat([]byte(`{"type":"reasoning_text","text":`), quoted(body), []byte{'}'})
	case b.Kind == turn.Reasoning:
		return slices.Concat([]byte(`{"type":"summary_text","text":`), quoted(body), []byte{'}'})
	}
	return slices.Concat([]byte(`{"type":"output_text","annotations":[`), notes, []byte(`],"logprobs":[],"text":`), quoted(body), []byte{'}'})
}

// finished reports whether the client has the end of the item that block n belongs to.
func finished(said *turn.Snapshot, n int) bool {
	ps := parts(said, n)
	for _, m := range ps {
		if !said.Blocks[m].Closed {
			return false
		}
	}
	return stage(&said.Blocks[ps[0]])&whole != 0
}

// itemOf builds the item that block n belongs to out of its opening and its parts, with a status.
func (w *wire) itemOf(n int, status string) []byte {
	b := &w.said.Blocks[first(w.said, n)]
	item := b.Raw
	if jsonwalk.KindOf(item) != jsonwalk.KindObject {
		item = newItem(w.said, b)
	}
	if id := itemID(w.said, n); !bytes.Equal(jsonwalk.Get(item, "id"), id) {
		item = jsonwalk.SetMember(nil, item, "id", id)
	}
	if b.Kind != turn.Reasoning && (b.Kind != turn.CustomCall || jsonwalk.Get(item, "status") != nil) {
		item = jsonwalk.SetMember(nil, item, "status", quote(status))
	}
	switch b.Kind {
	case turn.Prose, turn.Refusal:
		return jsonwalk.SetMember(nil, item, "content", list(w.row(n, 0)))
	case turn.Reasoning:
		item = jsonwalk.SetMember(nil, item, "summary", list(w.row(n, 0)))
		if deep := w.row(n, inner); len(deep) > 0 {
			item = jsonwalk.SetMember(nil, item, "content", list(deep))
		}
		if b.Closed && len(b.Signature) > 0 {
			item = jsonwalk.SetMember(nil, item, "encrypted_content", quoted(b.Signature))
		}
	case turn.Call, turn.CustomCall:
		if _, _, member := names(b); b.Kind == turn.Call || jsonwalk.Get(item, member) != nil {
			item = jsonwalk.SetMember(nil, item, member, quoted(arguments(b)))
		}
	}
	return item
}

// row lists the parts of an item, those of its reasoning text (inner) or the others.
func (w *wire) row(n int, deep uint8) (out [][]byte) {
	for _, m := range parts(w.said, n) {
		if b := &w.said.Blocks[m]; b.Stage&inner == deep && w.real(m) && (!foreign(b) || len(b.Notes) > 0) {
			out = append(out, partOf(b, w.text(m), b.Notes))
		}
	}
	return out
}

// arguments is the input of a call as an escaped body.
func arguments(b *turn.Block) []byte {
	if b.Kind == turn.Call && len(b.Text) == 0 {
		return []byte("{}")
	}
	return b.Text
}

// newItem is the opening of an item that came without one.
func newItem(said *turn.Snapshot, b *turn.Block) []byte {
	id := ownID(said, b)
	switch b.Kind {
	case turn.Reasoning:
		return slices.Concat([]byte(`{"id":`), id, []byte(`,"type":"reasoning","summary":[]}`))
	case turn.Call:
		return slices.Concat([]byte(`{"id":`), id, []byte(`,"type":"function_call","status":"in_progress","arguments":"","call_id":`), quote(b.ID),
			[]byte(`,"name":`), quote(b.Name), []byte{'}'})
	case turn.CustomCall:
		return slices.Concat([]byte(`{"id":`), id, []byte(`,"type":"custom_tool_call","status":"in_progress","input":"","call_id":`), quote(b.ID),
			[]byte(`,"name":`), quote(b.Name), []byte{'}'})
	}
	return slices.Concat([]byte(`{"id":`), id, []byte(`,"type":"message","status":"in_progress","content":[],"role":"assistant"}`))
}

// opened is an item as its output_item.added spells it: in progress, with what follows as events taken out.
func (w *wire) opened(n int) []byte {
	b := &w.said.Blocks[first(w.said, n)]
	item := b.Raw
	if jsonwalk.KindOf(item) != jsonwalk.KindObject {
		item = newItem(w.said, b)
	}
	if b.Kind == turn.Reasoning {
		item = jsonwalk.DeleteMember(nil, item, "encrypted_content")
	}
	for _, m := range [...]field{{"status", []byte(`"in_progress"`)}, {"content", []byte("[]")}, {"summary", []byte("[]")}, {"arguments", []byte(`""`)}, {"input", []byte(`""`)}} {
		if old := jsonwalk.Get(item, m.name); old != nil && jsonwalk.KindOf(old) == jsonwalk.KindOf(m.val) {
			item = jsonwalk.SetMember(nil, item, m.name, m.val)
		}
	}
	return item
}

// field is a member and its value.
type field struct {
	name string
	val  []byte
}

// output is the list of all items that the client was shown and that came to an end.
func (w *wire) output() []byte {
	var out [][]byte
	for n := range w.said.Blocks {
		b := &w.said.Blocks[n]
		if first(w.said, n) != n {
			continue
		}
		switch {
		case finished(w.said, n):
			out = append(out, b.Raw)
		case b.Withdrawn && b.Kind != turn.Reasoning:
		case b.IsCall() && !b.Complete(), b.Kind == turn.HostedResult, b.Kind == turn.Hosted, b.Kind == turn.Unknown:
			// Without its end there is no such item.
		default:
			out = append(out, w.itemOf(n, "completed"))
		}
	}
	return list(out)
}

// ofAttempt are the members of a response that tell its outcome, not what it is or was asked for.
var ofAttempt = []string{"status", "completed_at", "error", "incomplete_details", "output", "output_text", "usage", "service_tier", "moderation"}

// responseOf is the client's response at its end: the identity and the request of the first attempt, the outcome of the
// last one (nil: none came), the output of all, and the members that are set. Unknown members of either survive.
func (w *wire) responseOf(last []byte, set ...field) []byte {
	head := jsonwalk.Get(w.said.Head, "response")
	set = append(set, field{"output", w.output()})
	var out []field
	put := func(name string, val []byte) {
		if i := slices.IndexFunc(set, func(f field) bool { return f.name == name }); i >= 0 {
			val = set[i].val
			set = slices.Delete(set, i, i+1)
		}
		out = append(out, field{name, val})
	}
	base := last
	if base == nil {
		base = head
	}
	m := jsonwalk.Members(base)
	for k, v, ok := m.Next(); ok; k, v, ok = m.Next() {
		name := string(plainKey(k))
		if own := jsonwalk.Get(head, name); own != nil && !slices.Contains(ofAttempt, name) {
			v = own
		}
		put(name, v)
	}
	m = jsonwalk.Members(head)
	for k, v, ok := m.Next(); ok; k, v, ok = m.Next() {
		name := string(plainKey(k))
		if !slices.ContainsFunc(out, func(f field) bool { return f.name == name }) && !slices.Contains(ofAttempt, name) {
			put(name, v)
		}
	}
	return object(append(out, set...))
}

func object(fields []field) []byte {
	out := []byte{'{'}
	for i, f := range fields {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, quote(f.name)...), ':'), f.val...)
	}
	return append(out, '}')
}

// usageOf is a usage record with the numbers of the whole turn. The details are the last attempt's; what it had of the
// prompt in its cache cannot be more than the prompt.
func usageOf(raw []byte, u turn.Usage) []byte {
	if !u.Known {
		return nil
	}
	in, out := strconv.AppendInt(nil, u.Input, 10), strconv.AppendInt(nil, u.Output, 10)
	total := strconv.AppendInt(nil, u.Input+u.Output, 10)
	if jsonwalk.KindOf(raw) != jsonwalk.KindObject {
		return slices.Concat([]byte(`{"input_tokens":`), in, []byte(`,"input_tokens_details":{"cached_tokens":0},"output_tokens":`), out,
			[]byte(`,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":`), total, []byte{'}'})
	}
	raw = jsonwalk.SetMember(nil, raw, "input_tokens", in)
	raw = jsonwalk.SetMember(nil, raw, "output_tokens", out)
	raw = jsonwalk.SetMember(nil, raw, "total_tokens", total)
	details := jsonwalk.Get(raw, "input_tokens_details")
	if n, ok := jsonwalk.Int(jsonwalk.Get(details, "cached_tokens")); ok && n > u.Input {
		raw = jsonwalk.SetMember(nil, raw, "input_tokens_details", jsonwalk.SetMember(nil, details, "cached_tokens", in))
	}
	return raw
}
