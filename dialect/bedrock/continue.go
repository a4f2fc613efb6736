package bedrock

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Reasons why no continuation can be asked for.
var (
	ErrManner  = errors.New("converse continuation: manner not supported")
	ErrNothing = errors.New("converse continuation: nothing was said that could be continued")
	ErrCall    = errors.New("converse continuation: a complete tool call must be answered first")
	ErrHosted  = errors.New("converse continuation: a tool that ran at the provider")
	ErrUnknown = errors.New("converse continuation: block that cannot be sent back")
	ErrBudget  = errors.New("converse continuation: what is left of maxTokens holds no thinking")
	ErrBody    = errors.New("converse continuation: not valid json")
)

// minBudget is the least thinking.budget_tokens that Claude accepts (Bedrock user guide, extended thinking).
const minBudget = 1024

// Continue builds the request for the rest of the turn. All bytes of the caller's messages and system prompt stay as they
// are, so that prompt caches hit; a trailing assistant message of the caller's own is extended, any other history gets
// one assistant message behind it and, when asked, one user message behind that.
//
//	kept       text with words in it, the last one without trailing white space; signed and redacted reasoning, byte for
//	           byte, if the hop can take it
//	left out   unfinished and marked reasoning, unfinished calls, withdrawn blocks, citations
//	refused    complete calls; tools that ran at the provider, whose results came in deltas that no request can carry
//	           back; images, blocks of unknown type
func (Converse) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	if c.Manner != turn.Prefill && c.Manner != turn.Asked {
		return nil, fmt.Errorf("%w: %v", ErrManner, c.Manner)
	}
	messages := jsonwalk.Get(r.Body, "messages")
	last := jsonwalk.Last(messages)
	if last == nil {
		return nil, ErrBody
	}
	// Claude refuses a trailing assistant turn while it thinks, and thinking in one while it does not; one that the
	// caller itself ends with is taken as it is.
	resumes := plain(jsonwalk.Get(last, "role")) == "assistant" && bytes.Contains(jsonwalk.Get(last, "content"), []byte(`"reasoningContent"`))
	partial, err := collect(said, c.Manner == turn.Asked || resumes)
	if err != nil {
		return nil, err
	}
	body, err := limit(r, c, resumes)
	if err != nil {
		return nil, err
	}
	if r.Structured {
		body = unstructured(body)
	}
	if messages = extend(jsonwalk.Get(body, "messages"), partial); messages == nil {
		return nil, ErrBody
	}
	if c.Manner == turn.Asked {
		text := bytes.Clone(r.Prefill)
		for _, p := range partial {
			text = jsonwalk.Unescape(text, p.text)
		}
		messages = append(messages[:len(messages)-1], `,{"role":"user","content":[{"text":`...)
		messages = append(append(messages, quote(dialect.Ask(r, c, text))...), `}]}]`...)
	}
	body = jsonwalk.SetMember(nil, body, "messages", messages)
	if !jsonwalk.Valid(body) { // Bodies of strings are forwarded as the provider spelled them, unchecked until here.
		return nil, ErrBody
	}
	return body, nil
}

// part is one content block of the partial assistant message: text, or raw JSON.
type part struct {
	text []byte // escaped body
	raw  []byte
}

// collect picks what of the turn can be sent back. White space alone is no block; it keeps the words of its neighbours
// apart. Reasoning may not come last: what no text follows is left out.
func collect(said *turn.Snapshot, reasoning bool) (out []part, err error) {
	var run []byte // of text
	var thoughts []part
	flush := func() {
		if !jsonwalk.Blank(run) {
			out = append(append(out, thoughts...), part{text: run})
			run, thoughts = nil, nil
		}
	}
	for n := range said.Blocks {
		b := &said.Blocks[n]
		var thought []byte
		switch kind := b.Kind; {
		case !b.Live():
		case kind == turn.Prose:
			run = slices.Concat(run, jsonwalk.Paired(b.Text))
		case kind == turn.Reasoning && b.Closed && len(b.Signature) > 0 && !turn.DropMarked(b.Signature):
			thought = reasoningBlock(b)
		case kind == turn.Redacted && b.Closed && b.Extras == 0:
			thought = b.Raw
		case kind == turn.Reasoning, kind == turn.Redacted:
		case b.IsCall():
			if b.Complete() {
				return nil, fmt.Errorf("%w: %s", ErrCall, b.Name)
			}
		case kind == turn.Hosted, kind == turn.HostedResult:
			return nil, fmt.Errorf("%w: %s", ErrHosted, b.Name)
		default:
			return nil, fmt.Errorf("%w: %s", ErrUnknown, b.Name)
		}
		if thought != nil && reasoning {
			flush()
			thoughts = append(thoughts, part{raw: thought})
		}
	}
	if flush(); len(out) == 0 {
		return nil, ErrNothing
	}
	last := &out[len(out)-1]
	last.text = jsonwalk.TrimRight(last.text)
	return out, nil
}

func reasoningBlock(b *turn.Block) []byte {
	raw := append([]byte(`{"reasoningContent":{"reasoningText":{"text":"`), b.Text...)
	raw = append(append(raw, `","signature":"`...), b.Signature...)
	return append(raw, `"}}}`...)
}

// extend puts the partial turn behind the messages: into the caller's own trailing assistant message, where text goes on
// in the text that is there, else as a message of its own. nil if that message cannot be read.
func extend(messages []byte, partial []part) []byte {
	last := jsonwalk.Last(messages)
	end := jsonwalk.Offset(messages, last) + len(last)
	if plain(jsonwalk.Get(last, "role")) != "assistant" {
		with := appendParts([]byte(`,{"role":"assistant","content":[`), partial)
		return jsonwalk.Apply(nil, messages, []jsonwalk.Patch{{At: end, End: end, With: append(with, `]}`...)}})
	}
	content := jsonwalk.Get(last, "content")
	if jsonwalk.KindOf(content) != jsonwalk.KindArray {
		return nil
	}
	block := jsonwalk.Last(content)
	if block == nil {
		at := jsonwalk.Offset(messages, content) + 1
		return jsonwalk.Apply(nil, messages, []jsonwalk.Patch{{At: at, End: at, With: appendParts(nil, partial)}})
	}
	var ps []jsonwalk.Patch
	if old := jsonwalk.Get(block, "text"); old != nil && partial[0].text != nil {
		at := jsonwalk.Offset(messages, old) + len(old) - 1
		ps = append(ps, jsonwalk.Patch{At: at, End: at, With: partial[0].text})
		partial = partial[1:]
	}
	if len(partial) > 0 {
		at := jsonwalk.Offset(messages, block) + len(block)
		ps = append(ps, jsonwalk.Patch{At: at, End: at, With: appendParts([]byte{','}, partial)})
	}
	return jsonwalk.Apply(nil, messages, ps)
}

// appendParts appends content blocks with commas between them.
func appendParts(dst []byte, partial []part) []byte {
	for i, p := range partial {
		if i > 0 {
			dst = append(dst, ',')
		}
		if p.raw != nil {
			dst = append(dst, p.raw...)
			continue
		}
		dst = append(append(dst, `{"text":"`...), p.text...)
		dst = append(dst, `"}`...)
	}
	return dst
}

// limit sets what is left of maxTokens and keeps the thinking budget below it, or thinking off, where the manner or what
// is left does not allow any.
func limit(r *dialect.Request, c dialect.Continuation, resumes bool) ([]byte, error) {
	body, left := r.Body, r.MaxTokens
	if c.MaxTokens > 0 {
		left = c.MaxTokens
		config := jsonwalk.Get(body, "inferenceConfig")
		if config == nil {
			config = []byte("{}")
		}
		config = jsonwalk.SetMember(nil, config, "maxTokens", strconv.AppendInt(nil, left, 10))
		body = jsonwalk.SetMember(nil, body, "inferenceConfig", config)
	}
	if !r.Thinking {
		return body, nil
	}
	fields := jsonwalk.Get(body, "additionalModelRequestFields")
	budget, ok := jsonwalk.Int(jsonwalk.Get(fields, "thinking", "budget_tokens"))
	fits := !ok || left == 0 || budget < left
	var thinking []byte
	switch off := []byte(`{"type":"disabled"}`); {
	case c.Manner == turn.Prefill && !resumes:
		thinking = off
	case fits:
		return body, nil
	case left <= minBudget && resumes:
		return nil, ErrBudget // off is refused as well
	case left <= minBudget:
		thinking = off
	default:
		less := strconv.AppendInt(nil, max(minBudget, left/2), 10)
		thinking = jsonwalk.SetMember(nil, jsonwalk.Get(fields, "thinking"), "budget_tokens", less)
	}
	fields = jsonwalk.SetMember(nil, fields, "thinking", thinking)
	return jsonwalk.SetMember(nil, body, "additionalModelRequestFields", fields), nil
}

// unstructured takes the output format away: a grammar starts at its beginning on every request (WIRE 2.3).
func unstructured(body []byte) []byte {
	without := func(outer, key string) {
		if object := jsonwalk.Get(body, outer); jsonwalk.Get(object, key) != nil {
			body = jsonwalk.SetMember(nil, body, outer, jsonwalk.DeleteMember(nil, object, key))
		}
	}
	without("outputConfig", "textFormat")
	const fields = "additionalModelRequestFields"
	without(fields, "output_format")
	if config := jsonwalk.Get(body, fields, "output_config"); jsonwalk.Get(config, "format") != nil {
		config = jsonwalk.DeleteMember(nil, config, "format")
		body = jsonwalk.SetMember(nil, body, fields, jsonwalk.SetMember(nil, jsonwalk.Get(body, fields), "output_config", config))
	}
	return body
}
