package gemini

import (
	"bytes"
	"slices"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonfold"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

// folded makes one GenerateContentResponse of many. Texts of a kind go on in one part;
// every other part stands for itself; what is told beside them counts as it was told
// last.
type folded struct {
	whole      *jsonfold.Value
	candidates []*foldedCandidate
}

type foldedCandidate struct {
	index int64
	value *jsonfold.Value
	flows bool // its last part is nothing but words
}

// NewFold implements dialect.Upgrader.
func (Dialect) NewFold() dialect.Fold { return &folded{whole: jsonfold.New()} }

// Size implements dialect.Fold.
func (f *folded) Size() int {
	n := f.whole.Size()
	for _, c := range f.candidates {
		n += c.value.Size()
	}
	return n
}

// Add implements dialect.Fold.
func (f *folded) Add(e sse.Event) {
	data := bytes.TrimSpace(e.Data)
	if jsonwalk.KindOf(data) != jsonwalk.KindObject {
		return
	}
	w := jsonwalk.Members(data)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "candidates":
			f.whole.Named(key) // has its place
			es := jsonwalk.Elements(val)
			for c, ok := es.Next(); ok; c, ok = es.Next() {
				f.candidate(c)
			}
		case "usageMetadata": // a running total, whole every time
			f.whole.Named(key).Renew(val)
		default:
			f.whole.Named(key).Update(val)
		}
	}
}

func (f *folded) candidate(raw []byte) {
	index, _ := jsonwalk.Int(jsonwalk.Get(raw, "index"))
	at := slices.IndexFunc(f.candidates, func(c *foldedCandidate) bool { return c.index >= index })
	if at < 0 || f.candidates[at].index != index {
		if at < 0 {
			at = len(f.candidates)
		}
		f.candidates = slices.Insert(f.candidates, at, &foldedCandidate{index: index, value: jsonfold.New()})
	}
	c := f.candidates[at]
	c.value.At("continuationToken").Drop() // an earlier chunk's is not the answer's
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		v := c.value.Named(key)
		switch string(key) {
		case "content":
			c.content(v, val)
		case "citationMetadata":
			cite(v, val)
		default:
			v.Update(val)
		}
	}
}

func (c *foldedCandidate) content(v *jsonfold.Value, raw []byte) {
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if string(key) != "parts" {
			v.Named(key).Renew(val)
			continue
		}
		es := jsonwalk.Elements(val)
		for p, ok := es.Next(); ok; p, ok = es.Next() {
			c.grow(v.Named(key), p)
		}
	}
}

// grow adds a part. A text goes on in the part before it, if that is one of its kind
// that is not signed: a signature is of all that its part says, and ends it.
func (c *foldedCandidate) grow(parts *jsonfold.Value, raw []byte) {
	p, err := readPart(raw)
	if err == nil && p.kind == inert {
		return
	}
	flowed := c.flows
	c.flows = err == nil && flows(raw)
	if last := parts.Last(); !flowed || !c.flows || signed(last) || thinks(last) != (p.kind == thought) {
		parts.Push().Set(raw)
		return
	}
	last := parts.Last()
	last.At("text").Text(p.text)
	if p.signature != nil {
		last.At("thoughtSignature").Text(p.signature)
	}
}

// flows reports whether a part is nothing but words.
func flows(part []byte) bool {
	text := false
	w := jsonwalk.Members(part)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "text":
			text = jsonwalk.KindOf(val) == jsonwalk.KindString
		case "thought", "thoughtSignature":
		default:
			return false
		}
	}
	return text
}

func signed(part *jsonfold.Value) bool { return !part.At("thoughtSignature").Empty() }

func thinks(part *jsonfold.Value) bool { return string(part.At("thought").Body()) == "true" }

// cite adds the sources that were not named before.
func cite(v *jsonfold.Value, raw []byte) {
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		list := v.Named(key)
		if jsonwalk.KindOf(val) != jsonwalk.KindArray {
			list.Renew(val)
			continue
		}
		es := jsonwalk.Elements(val)
		for source, ok := es.Next(); ok; source, ok = es.Next() {
			known := slices.ContainsFunc(list.Elements(), func(has *jsonfold.Value) bool { return bytes.Equal(has.Append(nil), source) })
			if !known {
				list.Push().Set(source)
			}
		}
	}
}

// Whole implements dialect.Fold. A prompt that was refused has no candidates.
func (f *folded) Whole(dst []byte) (answer []byte, ok bool) {
	if len(f.candidates) == 0 && f.whole.At("promptFeedback").Empty() {
		return dst, false
	}
	if len(f.candidates) > 0 {
		all := f.whole.At("candidates")
		all.Set([]byte("[]"))
		for _, c := range f.candidates {
			all.Push().Set(c.value.Append(nil))
		}
	}
	return f.whole.Append(dst), true
}
