package openaichat

import (
	"errors"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// What makes an event invalid for the dialect.
var (
	ErrNotJSON   = errors.New("chunk is not json")
	ErrMalformed = errors.New("chunk is malformed")
	ErrChoice    = errors.New("choice index out of range")
)

// chunk is the top level of an event. All fields are raw values; absent and null
// are nil.
type chunk struct {
	id, object, choices, usage, groq []byte

	beside []beside // structures that nothing here reads: the sources of an answer

	// An error has many shapes: a truthy member error, or its fields at the top.
	fault, message, typ, code, detail []byte
}

func readChunk(data []byte) (chunk, error) {
	var c chunk
	w := jsonwalk.Members(data)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if jsonwalk.IsNull(val) {
			continue
		}
		switch string(key) {
		case "id":
			c.id = val
		case "object":
			c.object = val
		case "choices":
			c.choices = val
		case "usage":
			c.usage = val
		case "x_groq":
			c.groq = val
		case "error":
			if truthy(val) {
				c.fault = val
			}
		case "message":
			c.message = val
		case "type":
			c.typ = val
		case "code":
			c.code = val
		case "detail":
			c.detail = val
		case "citations", "search_results", "images", "related_questions", "videos":
			if filled(val) {
				c.beside = append(c.beside, beside{inChunk, key, val})
			}
		}
	}
	if w.Err() != nil {
		return c, ErrMalformed
	}
	return c, nil
}

// truthy is JavaScript's notion, which is what the SDKs raise on: `"error":null`
// and false are no errors, {} is one.
func truthy(val []byte) bool {
	switch string(val) {
	case "null", "false", "0", `""`:
		return false
	}
	return len(val) > 0
}

// choice is one element of choices.
type choice struct {
	index                               int
	delta, text, logprobs, usage, fault []byte
	finish, native                      []byte // string bodies
	strange                             bool   // content in a member that is not a delta
}

func readChoice(raw []byte) (choice, error) {
	var c choice
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if jsonwalk.IsNull(val) {
			continue
		}
		switch string(key) {
		case "index":
			n, ok := jsonwalk.Int(val)
			if !ok || n < 0 || n >= turn.MaxChoices {
				return c, ErrChoice
			}
			c.index = int(n)
		case "delta":
			c.delta = val
		case "finish_reason":
			c.finish, _ = jsonwalk.String(val)
		case "native_finish_reason":
			c.native, _ = jsonwalk.String(val)
		case "logprobs":
			c.logprobs = val
		case "usage":
			c.usage = val
		case "error":
			if truthy(val) {
				c.fault = val
			}
		case "text":
			c.text = val
		case "message":
			c.strange = true
		}
	}
	if w.Err() != nil {
		return c, ErrMalformed
	}
	c.strange = c.strange && c.delta == nil // Perplexity repeats the delta in an old message member.
	return c, nil
}

// spokenDelta is choices[].delta; raw values, absent and null are nil.
type spokenDelta struct {
	content, refusal                     []byte
	reasoningContent, reasoning, details []byte
	calls, function, audio, annotations  []byte
	beside                               []beside // said in members that we do not know
}

func readDelta(raw []byte) (spokenDelta, error) {
	var d spokenDelta
	if raw == nil {
		return d, nil
	}
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if jsonwalk.IsNull(val) {
			continue
		}
		switch string(key) {
		case "content":
			d.content = val
		case "refusal":
			d.refusal = val
		case "reasoning_content":
			d.reasoningContent = val
		case "reasoning":
			d.reasoning = val
		case "reasoning_details":
			d.details = val
		case "tool_calls":
			d.calls = val
		case "function_call":
			d.function = val
		case "audio":
			d.audio = val
		case "annotations":
			d.annotations = val
		default:
			// Flags and counters (role, channel, Mistral's index) are scalars; a
			// structure is content of a later year (Groq's executed_tools).
			if filled(val) {
				d.beside = append(d.beside, beside{inDelta, key, val})
			}
		}
	}
	if w.Err() != nil {
		return d, ErrMalformed
	}
	return d, nil
}

// filled reports whether val is an array or object with something in it.
func filled(val []byte) bool {
	switch jsonwalk.KindOf(val) {
	case jsonwalk.KindArray:
		e := jsonwalk.Elements(val)
		_, ok := e.Next()
		return ok
	case jsonwalk.KindObject:
		w := jsonwalk.Members(val)
		_, _, ok := w.Next()
		return ok
	}
	return false
}

// thought is the reasoning of a delta and the member it came in. Newer vLLM sends
// the same words in both members: one counts.
func (d *spokenDelta) thought() (body, name []byte) {
	if body, _ := jsonwalk.String(d.reasoningContent); len(body) > 0 {
		return body, nameReasoningContent
	}
	if body, _ := jsonwalk.String(d.reasoning); len(body) > 0 {
		return body, nameReasoning
	}
	return nil, nil
}

// Where reasoning came from, as the name of its block. A host that wants its
// reasoning back wants it under that name.
var (
	nameReasoningContent = []byte("reasoning_content")
	nameReasoning        = []byte("reasoning")
	nameDetails          = []byte("reasoning_details")
	nameThinking         = []byte("thinking")
	nameAudio            = []byte("audio")
	nameFunction         = []byte("function_call")
	nameContent          = []byte("content")
	nameAnnotations      = []byte("annotations")
	nameLogprobs         = []byte("logprobs")
)

// readDetail reads one element of reasoning_details (OpenRouter, Snowflake): its
// words, and whether it carries something that is not words.
func readDetail(raw []byte) (body []byte, sealed bool) {
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "text", "summary":
			if s, ok := jsonwalk.String(val); ok {
				body = s
			}
		case "signature", "data":
			sealed = sealed || !jsonwalk.IsNull(val) && string(val) != `""`
		}
	}
	return body, sealed
}

// wordless is a list of details without their words, which are the block's: what is
// left is what seals them.
func wordless(details []byte) []byte {
	return mapped(details, func(_ int, el []byte) []byte {
		for _, key := range [...]string{"text", "summary"} {
			if body, ok := jsonwalk.String(jsonwalk.Get(el, key)); ok && len(body) > 0 {
				el = jsonwalk.SetMember(nil, el, key, []byte(`""`))
			}
		}
		return el
	})
}

// detailed is the bit of a reasoning block's Stage that says that its words came in
// reasoning_details, too.
const detailed uint8 = 1

// part is one element of a content list.
type part struct {
	kind turn.BlockKind // Prose, Reasoning, or 0
	body []byte         // of a text part, or of thinking given as a string
	list []byte         // of thinking given as text parts (Mistral)
}

func readPart(raw []byte) part {
	var typ, text, thinking []byte
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "type":
			typ, _ = jsonwalk.String(val)
		case "text":
			text, _ = jsonwalk.String(val)
		case "thinking":
			thinking = val
		}
	}
	switch string(typ) {
	case "text", "output_text":
		return part{kind: turn.Prose, body: text}
	case "thinking":
		if body, ok := jsonwalk.String(thinking); ok {
			return part{kind: turn.Reasoning, body: body}
		}
		return part{kind: turn.Reasoning, list: thinking}
	}
	return part{}
}

// hasLogprobs: some hosts send the member on every chunk with nothing in it.
func hasLogprobs(raw []byte) bool {
	w := jsonwalk.Members(raw)
	for _, val, ok := w.Next(); ok; _, val, ok = w.Next() {
		if filled(val) {
			return true
		}
	}
	return false
}
