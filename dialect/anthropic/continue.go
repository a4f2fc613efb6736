package anthropic

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Reasons why no continuation can be asked for. A planner that knows the rules of DESIGN §3 meets none of them; they are
// here so that a request the provider must refuse, or that would run something twice, is never built.
var (
	ErrManner     = errors.New("messages continuation: manner not supported")
	ErrNothing    = errors.New("messages continuation: nothing was said that could be continued")
	ErrCall       = errors.New("messages continuation: a complete tool call must be answered first")
	ErrHostedTool = errors.New("messages continuation: hosted tool without a result")
	ErrUnknown    = errors.New("messages continuation: block of unknown type")
	ErrBudget     = errors.New("messages continuation: what is left of max_tokens holds no thinking")
	ErrBody       = errors.New("messages continuation: not valid json")
)

// minBudget is the least thinking.budget_tokens the API accepts (docs.anthropic.com, extended thinking).
const minBudget = 1024

// PrefillCostsThinking reports whether a true prefill of this request has to switch extended thinking off for the hop:
// the API refuses a trailing assistant turn while thinking is on, and, with thinking off, refuses thinking blocks in it
// (FIELD-REPORTS D5; the 400 "When thinking is disabled, an assistant message in the final position cannot contain
// thinking"). Continue does so; where the quality of the rest matters more than an exact seam, prefer [turn.Asked].
//
// A request that ends in the caller's own assistant turn with thinking in it, as the resumption of a pause_turn does, is
// taken with thinking on (corpus pause-turn-web-search.1), and would be refused with it off.
func PrefillCostsThinking(r *dialect.Request) bool { return r.Thinking && !resumes(r.Body) }

// resumes reports whether the last message is an assistant turn with thinking in it.
func resumes(body []byte) bool {
	last := jsonwalk.Last(jsonwalk.Get(body, "messages"))
	return text(jsonwalk.Get(last, "role")) == "assistant" &&
		slices.ContainsFunc(jsonwalk.All(jsonwalk.Get(last, "content")), func(b []byte) bool {
			return strings.HasSuffix(text(jsonwalk.Get(b, "type")), "thinking")
		})
}

// Continue builds the request for the rest of the turn. All bytes of the caller's messages and system prompt stay as
// they are, so that prompt caches hit; a trailing assistant message of the caller's own is extended, any other history
// gets one assistant message behind it and, when asked, one user message behind that.
//
//	kept       text with words in it; the last one without trailing white space (D6)
//	           signed thinking and redacted blocks, byte for byte (D8), if the hop can take them
//	           hosted tool calls with their results
//	left out   unfinished thinking, marked thinking, blank blocks, unfinished calls, withdrawn blocks, half of a surrogate
//	           pair (C6)
//	refused    complete calls, hosted tools without a result, blocks of unknown type
func (Dialect) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	if c.Manner != turn.Prefill && c.Manner != turn.Asked {
		return nil, fmt.Errorf("%w: %v", ErrManner, c.Manner)
	}
	thinking := (c.Manner == turn.Asked || resumes(r.Body)) && (c.Model == "" || c.Model == r.Model)
	partial, err := collect(said, thinking)
	if err != nil {
		return nil, err
	}
	e := edit{req: r, c: c}
	if e.read(); e.messages == nil {
		return nil, ErrBody
	}
	if err := e.limits(); err != nil {
		return nil, err
	}
	e.choice(said)
	if c.Model != "" && e.model != nil {
		e.replace(e.model, quote([]byte(c.Model)))
	}
	if !e.extend(partial) {
		return nil, ErrBody
	}
	body := jsonwalk.ApplySorted(r.Body, e.patches)
	for _, m := range e.added {
		body = jsonwalk.SetMember(nil, body, m.key, m.val)
	}
	if r.Structured {
		body = unstructured(body)
	}
	if !jsonwalk.Valid(body) { // Bodies of strings are forwarded as the provider spelled them, unchecked until here.
		return nil, ErrBody
	}
	return body, nil
}

// piece is one content block of the partial assistant message: text, or raw JSON.
type piece struct {
	text []byte // escaped body
	raw  []byte
}

// collect picks what of the turn can be sent back.
func collect(said *turn.Snapshot, thinking bool) ([]piece, error) {
	var out []piece
	var blank []byte // white space that waits for a text block to be part of
	last := -1       // the last piece that a message may end in: thinking may not be the final block
	for n := range said.Blocks {
		b := &said.Blocks[n]
		p := piece{}
		switch kind := b.Kind; {
		case !b.Live():
			continue
		case kind == turn.Prose:
			p.text = jsonwalk.Paired(b.Text)
			if jsonwalk.Blank(p.text) {
				// A block of its own is refused (D6), but as part of a
				// neighbour the white space keeps the words apart.
				if n := len(out); n > 0 && out[n-1].text != nil {
					out[n-1].text = slices.Concat(out[n-1].text, p.text)
				} else {
					blank = append(blank, p.text...)
				}
				continue
			}
			p.text, blank = slices.Concat(blank, p.text), nil
		case kind == turn.Reasoning:
			if !thinking || !b.Closed || len(b.Signature) == 0 || turn.DropMarked(b.Signature) {
				continue
			}
			p.raw = thinkingBlock(b)
		case kind == turn.Redacted:
			if !thinking || !b.Closed {
				continue
			}
			p.raw = b.Raw
		case kind == turn.Hosted:
			raw, ok := hostedCall(said, n)
			if !ok {
				return nil, fmt.Errorf("%w: %s", ErrHostedTool, b.Name)
			}
			p.raw = raw
		case kind == turn.HostedResult:
			p.raw = b.Raw
		case b.IsCall():
			if b.Complete() {
				return nil, fmt.Errorf("%w: %s", ErrCall, b.Name)
			}
			continue
		default:
			return nil, fmt.Errorf("%w: %s", ErrUnknown, b.Name)
		}
		if out = append(out, p); b.Kind != turn.Reasoning && b.Kind != turn.Redacted {
			last = len(out) - 1
		}
	}
	out = out[:last+1]
	if len(out) == 0 {
		return nil, ErrNothing
	}
	if p := &out[last]; p.text != nil {
		p.text = jsonwalk.TrimRight(p.text)
	}
	return out, nil
}

func thinkingBlock(b *turn.Block) []byte {
	raw := append([]byte(`{"type":"thinking","thinking":"`), b.Text...)
	raw = append(append(raw, `","signature":"`...), b.Signature...)
	return append(raw, `"}`...)
}

// hostedCall rebuilds a hosted tool call from its opening and its streamed input. It is whole only with its result.
func hostedCall(said *turn.Snapshot, n int) ([]byte, bool) {
	b := &said.Blocks[n]
	answered := slices.ContainsFunc(said.Blocks[n+1:], func(r turn.Block) bool {
		return r.Kind == turn.HostedResult && text(jsonwalk.Get(r.Raw, "tool_use_id")) == b.ID
	})
	if !answered {
		return nil, false
	}
	if len(b.Text) == 0 {
		return b.Raw, true
	}
	input := b.Plain()
	if !jsonwalk.Valid(input) {
		return nil, false
	}
	return jsonwalk.SetMember(nil, b.Raw, "input", input), true
}

func quote(plain []byte) []byte { return append(jsonwalk.Escape([]byte{'"'}, plain), '"') }

// unstructured takes the output format away: a grammar starts at its beginning on every request and would open a second
// document (WIRE 2.3).
func unstructured(body []byte) []byte {
	body = jsonwalk.DeleteMember(nil, body, "output_format")
	config := jsonwalk.Get(body, "output_config")
	if jsonwalk.Get(config, "format") == nil {
		return body
	}
	if config = jsonwalk.DeleteMember(nil, config, "format"); filled(config) == nil {
		return jsonwalk.DeleteMember(nil, body, "output_config")
	}
	return jsonwalk.SetMember(nil, body, "output_config", config)
}

// edit collects the changes to one request body.
type edit struct {
	req     *dialect.Request
	c       dialect.Continuation
	patches []jsonwalk.Patch
	added   []member // members the body did not have

	messages, maxTokens, thinking, toolChoice, model, management []byte
}

type member struct {
	key string
	val []byte
}

func (e *edit) read() {
	w := jsonwalk.Members(e.req.Body)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch string(plainKey(k)) {
		case "messages":
			e.messages = v
		case "max_tokens":
			e.maxTokens = v
		case "thinking":
			e.thinking = v
		case "tool_choice":
			e.toolChoice = v
		case "model":
			e.model = v
		case "context_management":
			e.management = v
		}
	}
}

func (e *edit) replace(old, with []byte) {
	e.patches = append(e.patches, patch(e.req.Body, old, with))
}

func (e *edit) insert(at int, with []byte) {
	e.patches = append(e.patches, jsonwalk.Patch{At: at, End: at, With: with})
}

// limits sets what is left of max_tokens and keeps thinking.budget_tokens below it: lowered to leave at least as much
// for the answer, or, where the minimum does not fit, switched off.
func (e *edit) limits() error {
	limit := e.req.MaxTokens
	if e.c.MaxTokens > 0 {
		limit = e.c.MaxTokens
		if v := strconv.AppendInt(nil, limit, 10); e.maxTokens != nil {
			e.replace(e.maxTokens, v)
		} else {
			e.added = append(e.added, member{"max_tokens", v})
		}
	}
	if !e.req.Thinking {
		return nil
	}
	if e.c.Manner == turn.Prefill && PrefillCostsThinking(e.req) {
		e.thinkingOff()
		return nil
	}
	raw := jsonwalk.Get(e.thinking, "budget_tokens")
	budget, ok := jsonwalk.Int(raw)
	switch {
	case !ok || limit == 0 || budget < limit:
		return nil
	case limit <= minBudget && e.c.Manner == turn.Prefill:
		return ErrBudget // off is refused as well, see PrefillCostsThinking
	case limit <= minBudget:
		e.thinkingOff()
		return nil
	}
	at := jsonwalk.Offset(e.thinking, raw)
	e.replace(e.thinking[at:at+len(raw)], strconv.AppendInt(nil, max(minBudget, limit/2), 10))
	return nil
}

// thinkingOff also takes out the context edits that are refused without thinking.
func (e *edit) thinkingOff() {
	e.replace(e.thinking, []byte(`{"type":"disabled"}`))
	edits := jsonwalk.All(jsonwalk.Get(e.management, "edits"))
	e.patches = jsonwalk.Cut(e.patches, e.req.Body, edits, func(n int) bool {
		return strings.HasPrefix(text(jsonwalk.Get(edits[n], "type")), "clear_thinking")
	})
}

// choice releases a forced tool choice that the turn has already satisfied: only hosted calls can be behind a
// continuation, so a forced choice of one of them must not be made again.
func (e *edit) choice(said *turn.Snapshot) {
	if !e.req.ForcedTool {
		return
	}
	want := text(jsonwalk.Get(e.toolChoice, "name"))
	satisfied := slices.ContainsFunc(said.Blocks, func(b turn.Block) bool {
		return b.Kind == turn.Hosted && b.Live() && (want == "" || want == b.Name)
	})
	if !satisfied {
		return
	}
	released := jsonwalk.SetMember(nil, e.toolChoice, "type", []byte(`"auto"`))
	e.replace(e.toolChoice, jsonwalk.DeleteMember(nil, released, "name"))
}
