package openaichat

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/internal/jsonfold"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// call takes one element of tool_calls: a call, or a piece of one.
func (c *foldedChoice) call(raw []byte) {
	f, err := readFragment(raw)
	if err != nil {
		return
	}
	known, words := c.lane.find(&f), f.words()
	if known == nil {
		if len(f.id)+len(f.name)+len(words) == 0 {
			return
		}
		if !f.hasIndex {
			f.index = c.lane.nextIndex()
		}
		c.lane.calls = append(c.lane.calls, call{index: f.index, id: bytes.Clone(f.id), custom: f.custom})
		known = &c.lane.calls[len(c.lane.calls)-1]
		v := c.value.At("message").At("tool_calls").Push()
		v.At("id")
		v.At("type").Set([]byte(`"function"`))
		if f.custom {
			v.At("type").Set([]byte(`"custom"`))
		}
		c.calls = append(c.calls, v)
	}
	if !known.custom {
		known.args.PushBody(words)
	}
	for i := range c.lane.calls {
		if &c.lane.calls[i] == known {
			c.piece(c.calls[i], raw)
		}
	}
}

func (c *foldedChoice) piece(v *jsonfold.Value, raw []byte) {
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "index", "type": // of the piece; the call has its type
		case "id":
			v.Named(key).Offer(val)
		case "function", "custom":
			c.function(v.Named(key), val)
		default:
			v.Named(key).Update(val)
		}
	}
}

// function takes a piece of what is called, and with what.
func (c *foldedChoice) function(v *jsonfold.Value, raw []byte) {
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch body, isText := jsonwalk.String(val); {
		case string(key) == "name":
			v.Named(key).Offer(val)
		case string(key) != "arguments" && string(key) != "input":
			v.Named(key).Renew(val)
		case isText:
			v.Named(key).Text(body)
		case !jsonwalk.IsNull(val): // the arguments themselves (FIELD-REPORTS C13)
			v.Named(key).Set(val)
		}
	}
}

// Whole implements dialect.Fold.
func (f *fold) Whole(dst []byte) (answer []byte, ok bool) {
	if len(f.choices) == 0 {
		return dst, false
	}
	all := f.whole.At("choices")
	all.Set([]byte("[]"))
	for _, c := range f.choices {
		c.settle(f.texts)
		all.Push().Set(c.value.Append(nil))
	}
	return f.whole.Append(dst), true
}

// settle gives a choice the members that its reader relies on. Of an answer that is
// nothing but calls, or a refusal, the content is null.
func (c *foldedChoice) settle(texts bool) {
	c.value.At("finish_reason").Offer([]byte("null"))
	if texts && !c.chats {
		c.value.At("text").Offer([]byte(`""`))
		return
	}
	m := c.value.At("message")
	m.At("role").Offer([]byte(`"assistant"`))
	if v := m.At("content"); v.Empty() && (len(c.calls) > 0 || !m.At("refusal").Empty()) {
		v.Set([]byte("null"))
	} else {
		v.Offer([]byte(`""`))
	}
}
