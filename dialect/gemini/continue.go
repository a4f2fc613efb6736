package gemini

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

// Why a turn cannot be continued. A planner that knows the rules of DESIGN §3 meets
// none of them but ErrNoCheckpoint.
var (
	ErrManner       = errors.New("gemini continuation: manner not supported")
	ErrNothing      = errors.New("gemini continuation: nothing was said that could be continued")
	ErrCall         = errors.New("gemini continuation: a complete function call must be answered first")
	ErrHostedTool   = errors.New("gemini continuation: hosted tool without a result")
	ErrUnknown      = errors.New("gemini continuation: part that cannot be sent back")
	ErrNoCheckpoint = errors.New("gemini continuation: the provider gave no continuation token")
	ErrBody         = errors.New("gemini continuation: not valid json")
)

// Continue implements dialect.Dialect. All bytes of the caller's contents and of
// its system instruction stay as they are, so that prompt caches hit; a trailing
// content of the model's own is extended, any other history gets one behind it.
//
//	kept       text with words in it; the last one without trailing white space
//	           signatures, each in the part that it came in, if the model is the same
//	           signed thoughts; hosted calls with their results
//	left out   thoughts without a signature, unfinished calls, withdrawn blocks
//	refused    complete calls, hosted calls without a result, pictures, other choices
//
// A forced function call stays: a turn with a complete one is never continued (plan
// R2), so it is not satisfied yet. The manner Provider sends the identical request
// with the token of the last checkpoint, and no limit is reduced, since the
// provider counts on (WIRE 2.1, 2.2). The model stands in the path: c.Model is the
// caller's to put there.
func (Dialect) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	switch c.Manner {
	case turn.Provider:
		token := checkpoint(said)
		if token == nil {
			return nil, ErrNoCheckpoint
		}
		return checked(jsonwalk.SetMember(nil, r.Body, "continuationToken", token))
	case turn.Prefill, turn.Asked:
	default:
		return nil, fmt.Errorf("%w: %v", ErrManner, c.Manner)
	}
	parts, err := collect(said, c.Model == "" || c.Model == r.Model)
	if err != nil {
		return nil, err
	}
	e := edit{req: r, c: c}
	e.read()
	if e.contents == nil {
		return nil, ErrBody
	}
	if !e.extend(parts) {
		return nil, ErrBody
	}
	body := jsonwalk.Apply(nil, r.Body, e.patches)
	return checked(e.configure(body))
}

// checked vouches for a body: texts are forwarded as the provider spelled them,
// unchecked until here.
func checked(body []byte) ([]byte, error) {
	if !jsonwalk.Valid(body) {
		return nil, ErrBody
	}
	return body, nil
}

// checkpoint is the raw token of the last checkpoint that the client's own request
// can go on from: one of the first attempt, since a token belongs to the request it
// answered.
func checkpoint(said *turn.Snapshot) []byte {
	n := lastCheckpoint(said)
	if n < 0 {
		return nil
	}
	return jsonwalk.Get(said.Blocks[n].Raw, "continuationToken")
}

func lastCheckpoint(said *turn.Snapshot) int {
	id := identify(said.Head)[identityIndex([]byte("responseId"))]
	for n := len(said.Blocks) - 1; n >= 0; n-- {
		b := &said.Blocks[n]
		if b.Kind == turn.Prose && b.Live() && jsonwalk.Get(b.Raw, "continuationToken") != nil && bytes.Equal(jsonwalk.Get(b.Raw, "responseId"), id) {
			return n
		}
	}
	return -1
}

// piece is one part of the partial turn: text, or raw JSON.
type piece struct {
	text []byte // escaped body
	raw  []byte
}

// collect picks what of the turn can be sent back.
func collect(said *turn.Snapshot, sameModel bool) ([]piece, error) {
	var out []piece
	last := -1 // the last piece that the turn may end in
	for n := range said.Blocks {
		b := &said.Blocks[n]
		switch {
		case !b.Live():
			continue
		case b.Choice != 0:
			return nil, fmt.Errorf("%w: candidate %d", ErrUnknown, b.Choice)
		case b.IsCall() && b.Complete():
			return nil, fmt.Errorf("%w: %s", ErrCall, b.Name)
		case b.IsCall():
			continue
		case b.Kind == turn.Prose && b.Raw == nil:
			text := jsonwalk.Paired(b.Text)
			if len(text) == 0 {
				continue
			}
			if k := len(out) - 1; k >= 0 && out[k].text != nil {
				out[k].text = slices.Concat(out[k].text, text)
			} else {
				out = append(out, piece{text: text})
			}
		case b.Kind == turn.Prose, b.Kind == turn.Reasoning:
			if !sameModel || b.Kind == turn.Reasoning && (!b.Closed || len(b.Signature) == 0) {
				continue
			}
			if raw := partOf(b); raw != nil {
				out = append(out, piece{raw: raw})
			}
			continue
		case b.Kind == turn.Hosted:
			if !answered(said.Blocks[n+1:]) {
				return nil, fmt.Errorf("%w: %s", ErrHostedTool, b.Name)
			}
			out = append(out, piece{raw: b.Raw})
		case b.Kind == turn.HostedResult:
			out = append(out, piece{raw: b.Raw})
		default:
			return nil, fmt.Errorf("%w: %s", ErrUnknown, b.Name)
		}
		last = len(out) - 1
	}
	if out = out[:last+1]; len(out) > 0 && out[last].text != nil {
		out[last].text = jsonwalk.TrimRight(out[last].text)
		if len(out[last].text) == 0 {
			out = out[:last]
		}
	}
	for _, p := range out {
		if p.raw != nil || !jsonwalk.Blank(p.text) {
			return out, nil
		}
	}
	return nil, ErrNothing
}

// answered reports whether the next hosted item is a result: code runs, and is
// answered, one at a time.
func answered(rest []turn.Block) bool {
	for i := range rest {
		switch rest[i].Kind {
		case turn.HostedResult:
			return rest[i].Closed
		case turn.Hosted:
			return false
		}
	}
	return false
}

// edit collects the changes to one request body.
type edit struct {
	req      *dialect.Request
	c        dialect.Continuation
	contents []byte
	config   []byte
	key      string // of the config, as the caller spells it
	patches  []jsonwalk.Patch
}

func (e *edit) read() {
	w := jsonwalk.Members(e.req.Body)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch {
		case is(key, "contents"):
			e.contents = val
		case is(key, "generationConfig"):
			e.config, e.key = val, string(key)
		}
	}
}

// extend puts the partial turn behind the caller's contents, and the question
// behind that.
func (e *edit) extend(parts []piece) bool {
	last := jsonwalk.Last(e.contents)
	at := jsonwalk.Offset(e.req.Body, e.contents) + len(e.contents) - 1
	var behind []byte
	if last != nil {
		at = jsonwalk.Offset(e.req.Body, last) + len(last)
	}
	if string(jsonwalk.Get(last, "role")) == `"model"` {
		if !e.prolong(jsonwalk.Get(last, "parts"), parts) {
			return false
		}
	} else {
		if last != nil {
			behind = append(behind, ',')
		}
		behind = append(behind, `{"role":"model","parts":[`...)
		behind = append(appendPieces(behind, parts), `]}`...)
	}
	if e.c.Manner == turn.Asked {
		text := bytes.Clone(e.req.Prefill)
		for _, p := range parts {
			text = jsonwalk.Unescape(text, p.text)
		}
		behind = append(behind, `,{"role":"user","parts":[{"text":`...)
		behind = append(append(behind, quote(dialect.Ask(e.req, e.c, text))...), `}]}`...)
	}
	e.patches = append(e.patches, jsonwalk.Patch{At: at, End: at, With: behind})
	return true
}

// prolong extends the caller's own trailing content: text goes on in the text that
// is there, a part with a signature is left as it is.
func (e *edit) prolong(array []byte, parts []piece) bool {
	last := jsonwalk.Last(array)
	if last == nil {
		return false
	}
	p, err := readPart(last)
	if old := jsonwalk.Get(last, "text"); err == nil && p.kind == answer && p.signature == nil && old != nil && parts[0].text != nil {
		at := jsonwalk.Offset(e.req.Body, old) + len(old) - 1
		e.patches = append(e.patches, jsonwalk.Patch{At: at, End: at, With: parts[0].text})
		parts = parts[1:]
	}
	if len(parts) > 0 {
		at := jsonwalk.Offset(e.req.Body, last) + len(last)
		e.patches = append(e.patches, jsonwalk.Patch{At: at, End: at, With: appendPieces([]byte{','}, parts)})
	}
	return true
}

func appendPieces(dst []byte, parts []piece) []byte {
	for i, p := range parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		if p.raw != nil {
			dst = append(dst, p.raw...)
			continue
		}
		dst = append(dst, textPart(p.text)...)
	}
	return dst
}

// configure edits the generation config: what is left of the output limit, and no
// grammar, which would start over (WIRE 2.3).
func (e *edit) configure(body []byte) []byte {
	config := e.config
	if config == nil {
		return body
	}
	w := jsonwalk.Members(e.config)
	for key, _, ok := w.Next(); ok; key, _, ok = w.Next() {
		switch {
		case is(key, "maxOutputTokens") && e.c.MaxTokens > 0:
			config = jsonwalk.SetMember(nil, config, string(key), strconv.AppendInt(nil, e.c.MaxTokens, 10))
		case !e.req.Structured:
		case is(key, "responseMimeType"), is(key, "responseSchema"), is(key, "responseJsonSchema"), string(key) == "_responseJsonSchema":
			config = jsonwalk.DeleteMember(nil, config, string(key))
		}
	}
	return jsonwalk.SetMember(nil, body, e.key, config)
}
