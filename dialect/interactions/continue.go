package interactions

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Why a turn cannot be continued.
var (
	ErrManner  = errors.New("interactions continuation: manner not supported")
	ErrNothing = errors.New("interactions continuation: nothing was said that could be continued")
	ErrCall    = errors.New("interactions continuation: a complete function call must be answered first")
	ErrUnknown = errors.New("interactions continuation: step that cannot be sent back")
	ErrBody    = errors.New("interactions continuation: not valid json")
)

// Continue implements dialect.Dialect: the caller's input as steps, byte for byte,
// and behind it the partial output as a step of the model's, never stored.
//
//	kept       text with words in it, signed thoughts
//	left out   unfinished thoughts and calls, withdrawn steps
//	refused    complete calls, steps of hosted tools, whose content came in deltas
//	           that nothing here can put together again
func (Dialect) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	if c.Manner != turn.Prefill && c.Manner != turn.Asked {
		return nil, fmt.Errorf("%w: %v", ErrManner, c.Manner)
	}
	steps, text, err := collect(said, c.Model == "" || c.Model == r.Model)
	if err != nil {
		return nil, err
	}
	input := inputSteps(jsonwalk.Get(r.Body, "input"), r, steps)
	if input == nil {
		return nil, ErrBody
	}
	if c.Manner == turn.Asked {
		whole := append(bytes.Clone(r.Prefill), text...)
		input = append(input, `,{"type":"user_input","content":[{"type":"text","text":`...)
		input = append(append(input, quote(dialect.Ask(r, c, whole))...), `}]}`...)
	}
	body := jsonwalk.SetMember(nil, r.Body, "input", append(input, ']'))
	for _, m := range [...]struct {
		key string
		val []byte
	}{{"stream", []byte("true")}, {"store", []byte("false")}} {
		body = jsonwalk.SetMember(nil, body, m.key, m.val)
	}
	if c.Model != "" {
		body = jsonwalk.SetMember(nil, body, "model", quote([]byte(c.Model)))
	}
	if config := jsonwalk.Get(body, "generation_config"); c.MaxTokens > 0 && jsonwalk.Get(config, "max_output_tokens") != nil {
		config = jsonwalk.SetMember(nil, config, "max_output_tokens", strconv.AppendInt(nil, c.MaxTokens, 10))
		body = jsonwalk.SetMember(nil, body, "generation_config", config)
	}
	if r.Structured { // a grammar would start over (WIRE 2.3)
		for _, key := range [...]string{"response_format", "response_mime_type"} {
			if jsonwalk.Get(body, key) != nil {
				body = jsonwalk.DeleteMember(nil, body, key)
			}
		}
	}
	if !jsonwalk.Valid(body) {
		return nil, ErrBody
	}
	return body, nil
}

// collect renders what of the turn can be sent back, as steps with commas between
// them, and the text that it ends in, decoded.
func collect(said *turn.Snapshot, sameModel bool) (steps, text []byte, err error) {
	var thoughts, body []byte
	for n := range said.Blocks {
		b := &said.Blocks[n]
		switch {
		case !b.Live():
		case b.IsCall() && b.Complete():
			return nil, nil, fmt.Errorf("%w: %s", ErrCall, b.Name)
		case b.IsCall():
		case b.Kind == turn.Prose:
			body = slices.Concat(body, b.Text)
		case b.Kind != turn.Reasoning:
			return nil, nil, fmt.Errorf("%w: %s", ErrUnknown, b.Name)
		case sameModel && b.Closed && len(b.Signature) > 0 && len(body) == 0:
			thoughts = append(append(thoughts, `{"type":"thought","signature":"`...), b.Signature...)
			if thoughts = append(thoughts, '"'); len(b.Text) > 0 {
				thoughts = append(append(thoughts, `,"summary":[{"type":"text","text":"`...), b.Text...)
				thoughts = append(thoughts, `"}]`...)
			}
			thoughts = append(thoughts, "},"...)
		}
	}
	if jsonwalk.EndsInHighSurrogate(body) {
		body = body[:len(body)-len(`\ud83d`)]
	}
	text = bytes.TrimRightFunc(jsonwalk.Unescape(nil, body), unicode.IsSpace)
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil, ErrNothing
	}
	body = body[:len(body)-len(jsonwalk.CutBody(body, len(text)))]
	steps = append(thoughts, `{"type":"model_output","content":[{"type":"text","text":"`...)
	return append(append(steps, body...), `"}]}`...), text, nil
}

// inputSteps renders the caller's input and the steps behind it as the beginning of
// a list of steps, without its end. Input that is no such list is one step of the
// user's.
func inputSteps(input []byte, r *dialect.Request, steps []byte) []byte {
	user := func(content []byte) []byte {
		out := append([]byte(`[{"type":"user_input","content":`), content...)
		return append(append(out, "},"...), steps...)
	}
	switch jsonwalk.KindOf(input) {
	case jsonwalk.KindString:
		return user(append(append([]byte(`[{"type":"text","text":`), input...), "}]"...))
	case jsonwalk.KindObject:
		return user(append(append([]byte{'['}, input...), ']'))
	case jsonwalk.KindArray:
	default:
		return nil
	}
	last := jsonwalk.Last(input)
	if last == nil {
		return append([]byte{'['}, steps...)
	}
	if !isStep(last) {
		return user(input)
	}
	end := jsonwalk.Offset(input, last) + len(last)
	if content := jsonwalk.Get(last, "content"); len(r.Prefill) > 0 && filled(content) {
		// The caller's own partial output goes on: two outputs in a row would
		// be two answers.
		at := bytes.LastIndexByte(steps, '[') + 1
		more := append([]byte{','}, steps[at:len(steps)-2]...)
		close := jsonwalk.Offset(input, content) + len(content) - 1
		out := append(bytes.Clone(input[:close]), more...)
		return append(out, input[close:end]...)
	}
	return append(append(bytes.Clone(input[:end]), ','), steps...)
}

// isStep tells a step from content by its type.
func isStep(obj []byte) bool {
	switch typ := typeOf(obj); typ {
	case "", "text", "image", "audio", "video", "document", "file":
		return false
	}
	return true
}
