package openaichat

import (
	"slices"
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// Body is a request body being edited: members found once, patches applied once.
type Body struct {
	src     []byte
	keys    [][]byte
	vals    [][]byte
	patches []jsonwalk.Patch
	added   []byte // members to append, each with its leading comma
	dropped []string
}

// OpenBody reads the members of a request, of chat or of the legacy completions.
func OpenBody(src []byte) (*Body, error) {
	b := &Body{src: src}
	w := jsonwalk.Members(src)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		b.keys, b.vals = append(b.keys, key), append(b.vals, val)
	}
	if w.Err() != nil {
		return nil, ErrRequest
	}
	return b, nil
}

// Get returns the member that counts, the last of its name, or nil.
func (b *Body) Get(key string) []byte {
	for i := len(b.keys) - 1; i >= 0; i-- {
		if jsonwalk.KeyIs(b.keys[i], key) {
			return b.vals[i]
		}
	}
	return nil
}

// Set gives the member that counts the raw value val.
func (b *Body) Set(key string, val []byte) {
	old := b.Get(key)
	if old == nil {
		b.added = appendMember(append(b.added, ','), key, val)
		return
	}
	at := jsonwalk.Offset(b.src, old)
	b.patches = append(b.patches, jsonwalk.Patch{At: at, End: at + len(old), With: val})
}

// Drop takes a member out.
func (b *Body) Drop(key string) {
	if b.Get(key) != nil {
		b.dropped = append(b.dropped, key)
	}
}

// Rest sets what every request for the rest of a turn has in common (WIRE 2.2).
func (b *Body) Rest(r *dialect.Request, c dialect.Continuation) {
	b.Set("stream", []byte("true"))
	b.setUsage()
	if b.Get("n") != nil {
		b.Set("n", []byte("1"))
	}
	if b.Get("store") != nil { // half a turn belongs in nobody's stored history
		b.Set("store", []byte("false"))
	}
	if c.Model != "" {
		b.Set("model", quote([]byte(c.Model)))
	}
	for _, key := range []string{"max_tokens", "max_completion_tokens"} {
		if c.MaxTokens > 0 && present(b.Get(key)) {
			b.Set(key, strconv.AppendInt(nil, c.MaxTokens, 10))
		}
	}
	if r.Structured { // a grammar would start over (WIRE 2.3)
		b.Drop("response_format")
		b.Drop("guided_json")
	}
}

// setUsage asks for the usage record, keeping the caller's other stream options.
func (b *Body) setUsage() {
	yes := []byte("true")
	if old := b.Get("stream_options"); jsonwalk.KindOf(old) == jsonwalk.KindObject {
		b.Set("stream_options", jsonwalk.SetMember(nil, old, "include_usage", yes))
		return
	}
	b.Set("stream_options", []byte(`{"include_usage":true}`))
}

// Close returns the edited body.
func (b *Body) Close() []byte {
	last := b.vals[len(b.vals)-1]
	end := jsonwalk.Offset(b.src, last) + len(last)
	b.patches = append(b.patches, jsonwalk.Patch{At: end, End: end, With: b.added})
	slices.SortStableFunc(b.patches, func(x, y jsonwalk.Patch) int { return x.At - y.At })
	out := jsonwalk.Apply(make([]byte, 0, len(b.src)+4096), b.src, b.patches)
	for _, key := range b.dropped {
		out = jsonwalk.DeleteMember(nil, out, key)
	}
	return out
}

func present(val []byte) bool { return val != nil && !jsonwalk.IsNull(val) }
