package completions

import (
	"bytes"
	"errors"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/openaichat"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Why a text cannot be continued.
var (
	ErrManner      = errors.New("completions are continued by their prompt only")
	ErrNothingSaid = errors.New("nothing was said that could be continued")
	ErrUnsplicable = errors.New("the answer holds something that cannot be continued")
	ErrEcho        = errors.New("the prompt was still being echoed")
)

// Continue implements dialect.Dialect. The prompt stays a list if it is one; of the
// other members only those change that must (WIRE 2.2). An echoed prompt is already
// part of what was said, and is not asked for again.
func (Dialect) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	if c.Manner != turn.Prefill {
		return nil, ErrManner
	}
	b, err := openaichat.OpenBody(r.Body)
	if err != nil {
		return nil, err
	}
	prompt := b.Get("prompt")
	begun, ok := single(prompt)
	if !ok {
		return nil, ErrUnsplicable
	}
	text, err := generated(said)
	if err != nil {
		return nil, err
	}
	if echo, _ := jsonwalk.Bool(b.Get("echo")); echo {
		b.Set("echo", []byte("false"))
		// Two spellings of one text can differ in their escapes only.
		plain := jsonwalk.Unescape(nil, begun)
		if all := jsonwalk.Unescape(nil, text); !bytes.HasPrefix(all, plain) {
			return nil, ErrEcho
		}
		begun = nil
	}
	whole := append(append(append([]byte{'"'}, begun...), text...), '"')
	if jsonwalk.KindOf(prompt) == jsonwalk.KindArray {
		whole = append(append([]byte{'['}, whole...), ']')
	}
	b.Set("prompt", whole)
	b.Rest(r, c)
	return b.Close(), nil
}

// generated is the answer so far, escaped as it came.
func generated(said *turn.Snapshot) ([]byte, error) {
	var text []byte
	for i := range said.Blocks {
		switch k := &said.Blocks[i]; {
		case !k.Live():
		case k.Choice != 0 || k.Kind != turn.Prose:
			return nil, ErrUnsplicable
		default:
			text = append(text, k.Text...)
		}
	}
	if len(text) == 0 {
		return nil, ErrNothingSaid
	}
	return text, nil
}
