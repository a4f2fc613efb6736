package anthropic

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonfold"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

var _ dialect.Upgrader = Dialect{}

// Upgrade implements [dialect.Upgrader]. Every message can be told as a stream.
func (Dialect) Upgrade(_ *dialect.Request, body []byte) (stream []byte, why string) {
	stream = jsonwalk.SetMember(nil, body, "stream", []byte("true"))
	if stream == nil {
		return nil, "request"
	}
	return stream, ""
}

// StreamPath implements [dialect.Upgrader]: the body says it.
func (Dialect) StreamPath(path string) string { return path }

// NewFold implements [dialect.Upgrader].
func (Dialect) NewFold() dialect.Fold { return &fold{whole: jsonfold.New()} }

// fold makes a message of events: that of message_start, with the blocks of their starts and deltas, and what
// message_delta tells.
type fold struct {
	whole   *jsonfold.Value
	blocks  jsonfold.Blocks // their inputs are the arguments as they were streamed
	begun   bool
	stopped bool
}

// Size implements [dialect.Fold].
func (f *fold) Size() int { return f.whole.Size() + f.blocks.Size() }

// Add implements [dialect.Fold].
func (f *fold) Add(e sse.Event) {
	switch text(jsonwalk.Get(e.Data, "type")) {
	case "message_start":
		f.begun = true
		f.whole.Update(jsonwalk.Get(e.Data, "message"))
		for i, block := range jsonwalk.All(jsonwalk.Get(e.Data, "message", "content")) { // programmatic calls stand here
			f.blocks.Open(int64(i)).Value.Set(block)
		}
	case "content_block_start":
		n, ok := jsonwalk.Int(jsonwalk.Get(e.Data, "index"))
		if !ok {
			return
		}
		f.blocks.Open(n).Value.Set(jsonwalk.Get(e.Data, "content_block"))
	case "content_block_delta":
		n, _ := jsonwalk.Int(jsonwalk.Get(e.Data, "index"))
		if b := f.blocks.Newest(n); b != nil {
			grow(b, jsonwalk.Get(e.Data, "delta"))
		}
	case "message_delta":
		f.delta(e.Data)
	case "message_stop":
		f.stopped = true
	}
}

// grow takes a delta. One of a type that is not known says in its members what is new of the block's.
func grow(b *jsonfold.Block, delta []byte) {
	kind := text(jsonwalk.Get(delta, "type"))
	w := jsonwalk.Members(delta)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch body, _ := jsonwalk.String(val); {
		case string(key) == "type":
		case kind == "input_json_delta":
			if string(key) == "partial_json" {
				b.Input = jsonwalk.Unescape(b.Input, body)
			}
		case kind == "citations_delta":
			if string(key) == "citation" {
				b.Value.At("citations").Push().Set(val)
			}
		default:
			b.Value.Named(key).Merge(val)
		}
	}
}

// delta takes what is known of the message behind its blocks. Usage counts are totals, and those that are not told
// again stay as message_start told them.
func (f *fold) delta(data []byte) {
	w := jsonwalk.Members(data)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "type":
		case "delta":
			f.whole.Update(val)
		case "usage":
			f.whole.Named(key).Update(val)
		default: // context_management
			f.whole.Named(key).Renew(val)
		}
	}
}

// Whole implements [dialect.Fold]. Arguments that max_tokens cut are none here: the ordinary answer has room for whole
// ones only.
func (f *fold) Whole(dst []byte) (answer []byte, ok bool) {
	if !f.begun || !f.stopped {
		return dst, false
	}
	all := f.whole.At("content")
	all.Set([]byte("[]"))
	for _, b := range f.blocks {
		if len(b.Input) > 0 && jsonwalk.Valid(b.Input) {
			b.Value.At("input").Set(b.Input)
		}
		all.Push().Set(b.Value.Append(nil))
	}
	return f.whole.Append(dst), true
}
