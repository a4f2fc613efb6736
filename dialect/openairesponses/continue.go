package openairesponses

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Reasons why no continuation can be asked for. A planner that knows the rules of DESIGN §3 meets none of them; they are
// here so that a request the provider must refuse, or that would run something twice, is never built.
var (
	ErrManner       = errors.New("responses continuation: manner not supported")
	ErrNothing      = errors.New("responses continuation: nothing was said that could be continued")
	ErrCall         = errors.New("responses continuation: a complete tool call must be answered first")
	ErrHostedTool   = errors.New("responses continuation: unfinished hosted item")
	ErrUnknown      = errors.New("responses continuation: item of unknown type")
	ErrConversation = errors.New("responses continuation: would be committed to the conversation")
	ErrBody         = errors.New("responses continuation: not valid json")
)

// minOutput is the least max_output_tokens that the API accepts (platform.openai.com, create a response).
const minOutput = 16

// Continue builds the request for the rest of the turn. The caller's input keeps its bytes, so that prompt caches hit;
// what was said follows it (see collect), and, when asked, one user message behind that. The hop is stored nowhere, runs
// in the foreground and writes no document of its own; previous_response_id stays, and names what it named.
//
// A true prefill is an assistant message in progress at the end of the input, which vLLM goes on with (WIRE 2.1).
func (Dialect) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	switch {
	case c.Manner != turn.Prefill && c.Manner != turn.Asked:
		return nil, fmt.Errorf("%w: %v", ErrManner, c.Manner)
	case filled(jsonwalk.Get(r.Body, "conversation")):
		return nil, ErrConversation
	}
	items, prose, err := collect(said, c.Manner == turn.Prefill)
	if err != nil {
		return nil, err
	}
	if c.Manner == turn.Asked {
		q := quote(string(ask(r, c, append(slices.Clone(r.Prefill), prose...))))
		items = append(items, slices.Concat([]byte(`{"role":"user","content":`), q, []byte{'}'}))
	}
	body := prolong(r, items)
	if body == nil {
		return nil, ErrBody
	}
	body = jsonwalk.SetMember(nil, body, "store", []byte("false"))
	body = jsonwalk.DeleteMember(nil, body, "background")
	if c.MaxTokens > 0 {
		body = jsonwalk.SetMember(nil, body, "max_output_tokens", strconv.AppendInt(nil, max(minOutput, c.MaxTokens), 10))
	}
	if c.Model != "" {
		body = jsonwalk.SetMember(nil, body, "model", quote(c.Model))
	}
	if r.Structured {
		body = unstructured(body)
	}
	if r.ForcedTool && satisfied(said) {
		body = jsonwalk.SetMember(nil, body, "tool_choice", []byte(`"auto"`))
	}
	if !jsonwalk.Valid(body) { // Bodies of strings are forwarded as the provider spelled them, unchecked until here.
		return nil, ErrBody
	}
	return body, nil
}

// prolong puts items behind the caller's input. Text that the caller left in progress is extended, not followed.
func prolong(r *dialect.Request, items [][]byte) []byte {
	old := jsonwalk.Get(r.Body, "input")
	switch jsonwalk.KindOf(old) {
	case jsonwalk.KindString:
		first := slices.Concat([]byte(`{"role":"user","content":`), old, []byte{'}'})
		return jsonwalk.SetMember(nil, r.Body, "input", list(slices.Insert(slices.Clone(items), 0, first)))
	case jsonwalk.KindArray:
	default: // a stored prompt speaks for the caller
		return jsonwalk.SetMember(nil, r.Body, "input", list(items))
	}
	last := jsonwalk.Last(old)
	if last == nil {
		return jsonwalk.SetMember(nil, r.Body, "input", list(items))
	}
	var patches []jsonwalk.Patch
	if r.Prefill != nil {
		if at, more, ok := extension(r.Body, last, items[0]); ok {
			patches = append(patches, jsonwalk.Patch{At: at, End: at, With: more})
			items = items[1:]
		}
	}
	if end := jsonwalk.Offset(r.Body, last) + len(last); len(items) > 0 {
		behind := list(items)
		behind[0] = ','
		patches = append(patches, jsonwalk.Patch{At: end, End: end, With: behind[:len(behind)-1]})
	}
	return jsonwalk.ApplySorted(r.Body, patches)
}

// extension finds where the text of one message goes on in the caller's own, and what is to be put there.
func extension(body, last, item []byte) (at int, more []byte, ok bool) {
	content := jsonwalk.Get(last, "content")
	if jsonwalk.KindOf(content) == jsonwalk.KindArray {
		content = jsonwalk.Get(jsonwalk.Last(content), "text")
	}
	if _, isText := jsonwalk.String(content); !isText || text(jsonwalk.Get(item, "role")) != "assistant" {
		return 0, nil, false
	}
	own := jsonwalk.Get(item, "content")
	if jsonwalk.KindOf(own) == jsonwalk.KindArray {
		own = jsonwalk.Get(own, "0", "text")
	}
	more, ok = jsonwalk.String(own)
	return jsonwalk.Offset(body, content) + len(content) - 1, more, ok
}

// unstructured takes the output format away: a grammar starts at its beginning on every request and would open a second
// document (WIRE 2.3).
func unstructured(body []byte) []byte {
	shape := jsonwalk.DeleteMember(nil, jsonwalk.Get(body, "text"), "format")
	if !filled(shape) {
		return jsonwalk.DeleteMember(nil, body, "text")
	}
	return jsonwalk.SetMember(nil, body, "text", shape)
}

// satisfied reports whether a forced choice was already made: only hosted calls can be behind a continuation.
func satisfied(said *turn.Snapshot) bool {
	return slices.ContainsFunc(said.Blocks, func(b turn.Block) bool {
		return b.Live() && (b.Kind == turn.Hosted || b.Kind == turn.HostedResult)
	})
}

// filled reports whether a value is there and holds something.
func filled(v []byte) bool {
	return len(v) > 0 && !jsonwalk.IsNull(v) && string(v) != "{}" && string(v) != "[]" && string(v) != `""`
}
