package bedrock

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Rewrite renders event e of a later attempt. What is rendered keeps its headers and its payload, padding included, but
// for the block's index, the text that was cut and the usage. messageStart, empty deltas and everything skipped render
// as nothing. A block that opens with a delta of which no text is left opens with an empty one, so that what closes it
// later is not the first that the client hears of it.
func (Converse) Rewrite(dst []byte, _ *dialect.Request, e sse.Event, ds []turn.Delta, said *turn.Snapshot) []byte {
	p, err := readPayload(e.Data)
	if err != nil {
		return rawIfOpaque(dst, e, ds)
	}
	r := rewriter{e: e, p: p, ds: ds, said: said}
	for i := range ds {
		switch d := &ds[i]; d.Kind {
		case turn.Extra:
			if dialect.Again(d, said, "citation") {
				d.Kind = turn.Skip
				continue
			}
			return r.block(dst)
		case turn.Open, turn.Text, turn.Sign, turn.Close:
			return r.block(dst)
		case turn.Count, turn.Terminal:
			return r.metadata(dst)
		case turn.Opaque:
			if d.Block >= 0 {
				return r.block(dst)
			}
			return append(dst, e.Raw...)
		case turn.Finish, turn.Fault:
			return append(dst, e.Raw...)
		case turn.Pulse:
			if string(e.Name) == keepAlive {
				return append(dst, e.Raw...)
			}
		case turn.Skip, turn.Head:
		}
	}
	return dst
}

func rawIfOpaque(dst []byte, e sse.Event, ds []turn.Delta) []byte {
	for i := range ds {
		if ds[i].Kind == turn.Opaque {
			return append(dst, e.Raw...)
		}
	}
	return dst
}

// rewriter is one call of Rewrite.
type rewriter struct {
	e    sse.Event
	p    payload
	ds   []turn.Delta
	said *turn.Snapshot
}

// block renders an event about one block. Its deltas are an opening, at most one text or signature or extra, a close.
func (r *rewriter) block(dst []byte) []byte {
	block, opens, extra := -1, false, false
	var body []byte // what is left of the text
	for i := range r.ds {
		switch d := &r.ds[i]; d.Kind {
		case turn.Open:
			block, opens = d.Block, true
		case turn.Text, turn.Sign:
			block, body = d.Block, d.Text
		case turn.Extra:
			block, extra = d.Block, true
		case turn.Close, turn.Opaque:
			block = d.Block
		default:
		}
	}
	index, kind := r.place(block)
	if opens && body == nil && !extra && (kind == turn.Prose || kind == turn.Reasoning) {
		return blockDelta(dst, index, textDelta(kind, nil))
	}
	patches := []jsonwalk.Patch{r.patch(r.p.index, strconv.AppendInt(nil, int64(index), 10))}
	if body != nil {
		patches = append(patches, r.patch(readDelta(r.p.delta).text, append(append([]byte{'"'}, body...), '"')))
	}
	return reload(dst, r.e, jsonwalk.ApplySorted(r.e.Data, patches))
}

// place returns the client's index and the kind of a block: one of said, or one that this very event opens.
func (r *rewriter) place(block int) (index int, kind turn.BlockKind) {
	for i := range r.ds {
		if d := &r.ds[i]; d.Kind == turn.Open && d.Block == block {
			return d.Index, d.Of
		}
	}
	if block >= 0 && block < len(r.said.Blocks) {
		b := &r.said.Blocks[block]
		return b.Index, b.Kind
	}
	return max(block, 0), turn.Prose
}

func (r *rewriter) patch(old, with []byte) jsonwalk.Patch {
	at := jsonwalk.Offset(r.e.Data, old)
	return jsonwalk.Patch{At: at, End: at + len(old), With: with}
}

// metadata renders the last frame with the whole turn's usage.
func (r *rewriter) metadata(dst []byte) []byte {
	if r.said.Terminated {
		return dst
	}
	for i := range r.ds {
		if d := &r.ds[i]; d.Kind == turn.Count && r.p.usage != nil {
			usage := appendUsage(r.p.usage, d.Usage)
			return reload(dst, r.e, jsonwalk.ApplySorted(r.e.Data, []jsonwalk.Patch{r.patch(r.p.usage, usage)}))
		}
	}
	return append(dst, r.e.Raw...)
}
