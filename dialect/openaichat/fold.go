package openaichat

import (
	"slices"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonfold"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

// fold makes a chat.completion (a text_completion) of chunks. What a chunk tells in
// pieces grows, whatever else it tells counts as it was told last; what is known of
// neither grows where it stands in a delta, and is told anew everywhere else.
type fold struct {
	texts   bool // see Wire
	whole   *jsonfold.Value
	choices []*foldedChoice
}

// foldedChoice is a choice so far.
type foldedChoice struct {
	lane  lane // finds a call's pieces, as the decoder does
	value *jsonfold.Value
	calls []*jsonfold.Value // of lane.calls
	chats bool              // it speaks in deltas
}

// NewFold implements dialect.Upgrader.
func (w Wire) NewFold() dialect.Fold { return &fold{texts: w.Texts, whole: jsonfold.New()} }

// Size implements dialect.Fold.
func (f *fold) Size() int {
	n := f.whole.Size()
	for _, c := range f.choices {
		n += c.value.Size()
	}
	return n
}

// Add implements dialect.Fold.
func (f *fold) Add(e sse.Event) {
	if jsonwalk.KindOf(e.Data) != jsonwalk.KindObject {
		return
	}
	w := jsonwalk.Members(e.Data)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		f.member(key, val)
	}
}

func (f *fold) member(key, val []byte) {
	switch string(key) {
	case "id", "created", "model":
		if m := f.whole.Named(key); m.Empty() || string(m.Body()) == "0" { // Azure's first chunk has none
			m.Set(val)
		}
	case "object":
		if string(val) == `"text_completion"` {
			f.whole.Named(key).Set(val)
		} else if m := f.whole.Named(key); m.Empty() {
			m.Set([]byte(`"chat.completion"`))
		}
	case "choices":
		f.whole.Named(key) // has its place
		e := jsonwalk.Elements(val)
		for c, ok := e.Next(); ok; c, ok = e.Next() {
			f.choice(c)
		}
	case "usage":
		if !jsonwalk.IsNull(val) {
			f.whole.Named(key).Set(val)
		}
	case "x_groq":
		f.groq(val)
	case "obfuscation": // pads chunks, and nothing else
	default:
		f.whole.Named(key).Renew(val)
	}
}

// groq takes what Groq says beside the standard: without a stream its usage stands
// where everybody's does.
func (f *fold) groq(val []byte) {
	w := jsonwalk.Members(val)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if string(key) == "usage" {
			f.whole.At("usage").Offer(val)
			continue
		}
		f.whole.At("x_groq").Named(key).Renew(val)
	}
}

// of returns the choice with an index. They stand in the order of their indices.
func (f *fold) of(index int) *foldedChoice {
	at := 0
	for ; at < len(f.choices) && f.choices[at].lane.index <= index; at++ {
		if c := f.choices[at]; c.lane.index == index {
			return c
		}
	}
	c := &foldedChoice{lane: lane{index: index}, value: jsonfold.New()}
	f.choices = slices.Insert(f.choices, at, c)
	return c
}

func (f *fold) choice(raw []byte) {
	head, err := readChoice(raw)
	if err != nil {
		return
	}
	c := f.of(head.index)
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		v := c.value.Named(key)
		switch string(key) {
		case "delta":
			c.delta(val)
		case "text":
			if body, ok := jsonwalk.String(val); ok && (f.texts || head.delta == nil) {
				v.Text(body)
			}
		case "message": // Perplexity repeats the delta here
		case "logprobs":
			logprobs(v, val)
		case "usage": // Moonshot
			if !jsonwalk.IsNull(val) {
				f.whole.Named(key).Offer(val)
			}
		default:
			v.Update(val)
		}
	}
}

// logprobs adds lists to lists.
func logprobs(v *jsonfold.Value, val []byte) {
	if jsonwalk.KindOf(val) != jsonwalk.KindObject {
		v.Renew(val)
		return
	}
	w := jsonwalk.Members(val)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if jsonwalk.KindOf(val) == jsonwalk.KindArray {
			v.Named(key).Extend(val)
		} else {
			v.Named(key).Renew(val)
		}
	}
}

func (c *foldedChoice) delta(raw []byte) {
	c.chats = true
	m := c.value.At("message")
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		v := m.Named(key)
		switch string(key) {
		case "content":
			content(v, val)
		case "tool_calls":
			e := jsonwalk.Elements(val)
			for call, ok := e.Next(); ok; call, ok = e.Next() {
				c.call(call)
			}
		case "annotations":
			if jsonwalk.IsNull(val) {
				v.Renew(val)
			} else {
				v.Extend(val)
			}
		case "role", "channel", "name":
			v.Renew(val)
		case "function_call":
			c.function(v, val)
		case "index": // Mistral's, of the chunk
		default:
			v.Merge(val)
		}
	}
}

// content takes a piece of text, or of a list of parts (Mistral): what is said goes on
// in the last part of its kind.
func content(v *jsonfold.Value, val []byte) {
	body, isText := jsonwalk.String(val)
	switch {
	case isText && v.Last() != nil:
		if len(body) > 0 {
			grow(v, append(append([]byte(`{"type":"text","text":"`), body...), `"}`...))
		}
	case isText:
		v.Text(body)
	case jsonwalk.KindOf(val) != jsonwalk.KindArray:
		v.Renew(val)
	default:
		if v.IsText() && !v.Empty() {
			said := v.Append([]byte(`[{"type":"text","text":`))
			v.Set(append(said, "}]"...))
		}
		e := jsonwalk.Elements(val)
		for part, ok := e.Next(); ok; part, ok = e.Next() {
			grow(v, part)
		}
	}
}

// grow adds a part to a list, or to the last part if both are words of one kind.
func grow(list *jsonfold.Value, part []byte) {
	last := list.Last()
	kind := jsonwalk.Get(part, "type")
	p := readPart(part)
	if last == nil || p.kind == 0 || string(last.At("type").Append(nil)) != string(kind) {
		list.Push().Set(part)
		return
	}
	w := jsonwalk.Members(part)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch body, isText := jsonwalk.String(val); {
		case string(key) == "type":
		case isText && (string(key) == "text" || string(key) == "thinking"):
			last.Named(key).Text(body)
		case string(key) == "thinking":
			e := jsonwalk.Elements(val)
			for inner, ok := e.Next(); ok; inner, ok = e.Next() {
				grow(last.Named(key), inner)
			}
		default:
			last.Named(key).Renew(val)
		}
	}
}
