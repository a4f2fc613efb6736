package bedrock

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonfold"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

// fold makes the answer of Converse of the frames of ConverseStream.
type fold struct {
	whole   *jsonfold.Value
	blocks  jsonfold.Blocks // their inputs are the arguments of a toolUse as they were streamed
	stopped bool
}

// NewFold implements [dialect.Upgrader].
func (Converse) NewFold() dialect.Fold {
	f := &fold{whole: jsonfold.New()}
	f.whole.At("output").At("message").At("role").Set([]byte(`"assistant"`))
	return f
}

// Size implements [dialect.Fold].
func (f *fold) Size() int { return f.whole.Size() + f.blocks.Size() }

// Add implements [dialect.Fold].
func (f *fold) Add(e sse.Event) {
	switch string(e.Name) {
	case "messageStart":
		f.whole.At("output").At("message").At("role").Renew(jsonwalk.Get(e.Data, "role"))
	case "contentBlockStart":
		p, _ := readPayload(e.Data)
		b := f.of(p.index)
		w := jsonwalk.Members(p.start)
		for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
			b.Value.Named(key).Update(val)
		}
	case "contentBlockDelta":
		p, _ := readPayload(e.Data)
		grow(f.of(p.index), p.delta)
	case "messageStop", "metadata":
		f.stopped = f.stopped || string(e.Name) == "messageStop"
		w := jsonwalk.Members(e.Data)
		for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
			if string(key) != "p" { // pads frames, and nothing else
				f.whole.Named(key).Update(val)
			}
		}
	}
}

// of is the block with an index. Text has no start of its own.
func (f *fold) of(index []byte) *jsonfold.Block {
	n, _ := jsonwalk.Int(index)
	if b := f.blocks.Newest(n); b != nil {
		return b
	}
	return f.blocks.Open(n)
}

// grow takes a delta. In the ordinary answer reasoning is one member that holds its words and their signature, citations
// stand beside the text that they are of, and what runs at the provider answers in a list.
func grow(b *jsonfold.Block, delta []byte) {
	name, val := member(delta)
	switch string(name) {
	case "":
	case "toolUse":
		body, _ := jsonwalk.String(jsonwalk.Get(val, "input"))
		b.Input = jsonwalk.Unescape(b.Input, body)
	case "reasoningContent":
		w := jsonwalk.Members(val)
		for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
			in := b.Value.Named(name)
			if string(key) != "redactedContent" {
				in = in.At("reasoningText")
			}
			in.Named(key).Merge(val)
		}
	case "text":
		body, _ := jsonwalk.String(val)
		if c := b.Value.At("citationsContent"); !c.Empty() {
			words(c, body)
			return
		}
		b.Value.At("text").Text(body)
	case "citation":
		c := b.Value.At("citationsContent")
		if t := b.Value.At("text"); t.IsText() {
			words(c, t.Body())
			t.Drop()
		}
		c.At("citations").Push().Set(val)
	case "toolResult":
		b.Value.Named(name).At("content").Extend(val)
	default:
		b.Value.Named(name).Merge(val)
	}
}

// words adds to the text of a cited block.
func words(cited *jsonfold.Value, body []byte) {
	list := cited.At("content")
	if list.Last() == nil {
		list.Push()
	}
	list.Last().At("text").Text(body)
}

// Whole implements [dialect.Fold].
func (f *fold) Whole(dst []byte) (answer []byte, ok bool) {
	if !f.stopped {
		return dst, false
	}
	all := f.whole.At("output").At("message").At("content")
	all.Set([]byte("[]"))
	for _, b := range f.blocks {
		if use := b.Value.At("toolUse"); !use.Empty() || len(b.Input) > 0 {
			use.At("input").Set([]byte("{}"))
			if jsonwalk.Valid(b.Input) {
				use.At("input").Set(b.Input)
			}
		}
		all.Push().Set(b.Value.Append(nil))
	}
	return f.whole.Append(dst), true
}
