package openaichat

import (
	"bytes"
	"errors"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Why a turn cannot be continued.
var (
	ErrManner      = errors.New("chat has no such manner of continuing")
	ErrNothingSaid = errors.New("nothing was said that could be continued")
	ErrUnsplicable = errors.New("the turn holds something that cannot be continued")
)

// Continue implements dialect.Dialect. Nothing in front of the new turn changes
// by a byte, so that provider prompt caches hit; of the other members only those
// change that must (WIRE 2.2). A forced tool_choice stays: a turn with a complete
// call is never continued (plan R2), so it is not satisfied yet.
func (Dialect) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	if c.Manner != turn.Prefill && c.Manner != turn.Asked {
		return nil, ErrManner
	}
	text, err := partial(r, said)
	if err != nil {
		return nil, err
	}
	b, err := OpenBody(r.Body)
	if err != nil {
		return nil, err
	}
	messages := b.Get("messages")
	if jsonwalk.KindOf(messages) != jsonwalk.KindArray {
		return nil, ErrMessages
	}
	at := jsonwalk.Offset(b.src, messages)
	for _, p := range extend(messages, r, said, c, text) {
		b.patches = append(b.patches, jsonwalk.Patch{At: at + p.At, End: at + p.End, With: p.With})
	}
	b.Rest(r, c)
	b.flags(c)
	return b.Close(), nil
}

// partial is the text to go on from, decoded: the caller's own trailing prefill
// and what was said since, without the trailing white space that strict hosts
// reject.
func partial(r *dialect.Request, said *turn.Snapshot) ([]byte, error) {
	text := bytes.Clone(r.Prefill)
	for i := range said.Blocks {
		switch k := &said.Blocks[i]; {
		case !k.Live():
		case k.Choice != 0:
			return nil, ErrUnsplicable
		case k.Kind == turn.Prose:
			text = jsonwalk.Unescape(text, k.Text)
		case k.Kind == turn.Reasoning: // never goes into the text
		case k.IsCall() && !k.Complete(): // dropped (plan R3)
		case k.IsCall(), k.HasWords(), k.Kind == turn.Unknown:
			return nil, ErrUnsplicable
		}
	}
	if text = bytes.TrimRight(text, " \t\r\n\v\f"); len(bytes.TrimSpace(text)) == 0 {
		return nil, ErrNothingSaid
	}
	return text, nil
}

// extend appends the partial assistant message to messages, or puts its text into
// the caller's own trailing one (llama.cpp rejects two of them), and behind it,
// when the model is to be asked, the user message that asks.
func extend(array []byte, r *dialect.Request, said *turn.Snapshot, c dialect.Continuation, text []byte) []jsonwalk.Patch {
	last := jsonwalk.Last(array)
	end := bytes.LastIndexByte(array, ']')
	var tail []byte
	patches := make([]jsonwalk.Patch, 0, 2)
	if _, ok := trailingAssistant(last); ok {
		message := dress(last, said, c, text)
		at := jsonwalk.Offset(array, last)
		patches = append(patches, jsonwalk.Patch{At: at, End: at + len(last), With: message})
		end = at + len(last)
	} else {
		if last != nil {
			tail = append(tail, ',')
			end = jsonwalk.Offset(array, last) + len(last)
		}
		tail = append(tail, dress([]byte(`{"role":"assistant"}`), said, c, text)...)
	}
	if c.Manner == turn.Asked {
		tail = append(tail, `,{"role":"user","content":`...)
		tail = append(tail, quote(dialect.Ask(r, c, text))...)
		tail = append(tail, '}')
	}
	return append(patches, jsonwalk.Patch{At: end, End: end, With: tail})
}

// dress gives an assistant message the partial text and the flags that make the
// host go on with it; a message that is not the last must not carry them.
func dress(message []byte, said *turn.Snapshot, c dialect.Continuation, text []byte) []byte {
	message = jsonwalk.SetMember(nil, message, "content", quote(text))
	if c.Manner != turn.Prefill {
		message = jsonwalk.DeleteMember(nil, message, "prefix")
		return jsonwalk.DeleteMember(nil, message, "partial")
	}
	if c.Flags.Prefix {
		// DeepSeek's reasoner takes its finished reasoning back under the name it
		// came in; Mistral, which has another, takes no unknown member.
		if thought := reasoningBack(said); thought != nil {
			message = jsonwalk.SetMember(nil, message, "reasoning_content", thought)
		}
		message = jsonwalk.SetMember(nil, message, "prefix", []byte("true"))
	}
	if c.Flags.Partial {
		message = jsonwalk.SetMember(nil, message, "partial", []byte("true"))
	}
	return message
}

func reasoningBack(said *turn.Snapshot) []byte {
	var body []byte
	for i := range said.Blocks {
		if k := &said.Blocks[i]; k.Kind == turn.Reasoning && k.Closed && k.Live() && k.Name == string(nameReasoningContent) {
			body = append(body, k.Text...)
		}
	}
	if len(body) == 0 {
		return nil
	}
	return appendQuoted(nil, body)
}

// flags sets the host's extensions for a prefill, and takes the caller's own away
// when the request no longer ends with the assistant (vLLM: 400).
func (b *Body) flags(c dialect.Continuation) {
	if c.Manner == turn.Asked {
		b.Drop("continue_final_message")
		b.Drop("add_generation_prompt")
		return
	}
	if c.Flags.ContinueFinal {
		b.Set("continue_final_message", []byte("true"))
	}
	if c.Flags.NoGenerationPrompt {
		b.Set("add_generation_prompt", []byte("false"))
	}
	if c.Flags.NoThinking {
		args := b.Get("chat_template_kwargs")
		if jsonwalk.KindOf(args) != jsonwalk.KindObject {
			args = []byte("{}")
		}
		b.Set("chat_template_kwargs", jsonwalk.SetMember(nil, args, "enable_thinking", []byte("false")))
	}
}
