package bedrock

import (
	"bytes"
	"errors"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Decoding errors. Each is an event that no client could place in the message either. The text is the token that metrics
// count.
var (
	ErrJSON        = errors.New("malformed_json")
	ErrSecondStart = errors.New("second_message_start")
	ErrIndex       = errors.New("block_index_missing")
	ErrIndexInUse  = errors.New("block_index_in_use")
	ErrNoBlock     = errors.New("delta_without_block")
	ErrDeltaKind   = errors.New("delta_of_another_block_kind")
)

// NewDecoder returns a decoder for one attempt.
func (Converse) NewDecoder(*dialect.Request) dialect.Decoder { return &decoder{} }

// decoder numbers blocks in the order they open.
type decoder struct {
	begun  bool
	blocks []wireBlock
}

// wireBlock is a block of this attempt; its ordinal is its place.
type wireBlock struct {
	index int
	kind  turn.BlockKind
	open  bool
}

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(dst []turn.Delta, e sse.Event) ([]turn.Delta, error) {
	switch string(e.Name) {
	case "contentBlockDelta":
		return d.delta(dst, e.Data)
	case "contentBlockStart":
		return d.start(dst, e.Data)
	case "contentBlockStop":
		return d.stop(dst, e.Data)
	case "messageStart":
		if d.begun {
			return dst, ErrSecondStart
		}
		d.begun = true
		return append(dst, turn.Delta{Kind: turn.Head, Raw: e.Data}), nil
	case "messageStop":
		p, err := readPayload(e.Data)
		reason, _ := jsonwalk.String(p.reason)
		return append(dst, turn.Delta{Kind: turn.Finish, Why: whyOf(reason), Text: reason}), err
	case "metadata":
		return metadata(dst, e.Data)
	case keepAlive:
		return append(dst, turn.Delta{Kind: turn.Pulse}), nil
	}
	if f, ok := faultOf(e); ok {
		return append(dst, turn.Delta{Kind: turn.Fault, Fault: f, Raw: e.Data}), nil
	}
	opaque := turn.Delta{Kind: turn.Opaque, Block: -1, Raw: e.Data}
	if p, err := readPayload(e.Data); err == nil {
		if n, ok := d.find(p.index); ok {
			opaque.Block = n
		}
	}
	return append(dst, opaque), nil
}

// find returns the ordinal of the newest block at a wire index.
func (d *decoder) find(raw []byte) (ordinal int, ok bool) {
	index, ok := wireIndex(raw)
	for n := len(d.blocks) - 1; ok && n >= 0; n-- {
		if d.blocks[n].index == index {
			return n, true
		}
	}
	return 0, false
}

// open appends the opening of a block that begins here.
func (d *decoder) open(dst []turn.Delta, index int, open turn.Delta) []turn.Delta {
	open.Kind, open.Block, open.Index = turn.Open, len(d.blocks), index
	d.blocks = append(d.blocks, wireBlock{index: index, kind: open.Of, open: true})
	return append(dst, open)
}

func (d *decoder) start(dst []turn.Delta, data []byte) ([]turn.Delta, error) {
	p, err := readPayload(data)
	if err != nil {
		return dst, err
	}
	index, ok := wireIndex(p.index)
	if !ok {
		return dst, ErrIndex
	}
	if n, used := d.find(p.index); used && d.blocks[n].open {
		return dst, ErrIndexInUse
	}
	o := readStart(p.start)
	if o.kind == 0 {
		return append(dst, turn.Delta{Kind: turn.Pulse}), nil
	}
	return d.open(dst, index, turn.Delta{Of: o.kind, ID: o.id, Name: o.name, Raw: p.start}), nil
}

// delta decodes the event that most of a stream consists of.
func (d *decoder) delta(dst []turn.Delta, data []byte) ([]turn.Delta, error) {
	p, err := readPayload(data)
	if err != nil {
		return dst, err
	}
	index, ok := wireIndex(p.index)
	if !ok {
		return dst, ErrIndex
	}
	part := readDelta(p.delta)
	n, found := d.find(p.index)
	switch {
	case found:
	case part.of == turn.Call || part.of == turn.HostedResult:
		return dst, ErrNoBlock // whose, and of which tool?
	case part.of == turn.Redacted:
		// The block is this delta: it lives in its opening.
		return d.open(dst, index, turn.Delta{Of: turn.Redacted, Raw: p.delta}), nil
	case part.name == nil:
		return append(dst, turn.Delta{Kind: turn.Pulse}), nil
	default:
		n = len(d.blocks)
		name := part.name
		if part.of != turn.Unknown {
			name = nil
		}
		dst = d.open(dst, index, turn.Delta{Of: part.of, Name: name})
	}
	return d.say(dst, n, &part, p.delta, !found)
}

// say appends what a delta adds to block n; opened: it has just opened it.
func (d *decoder) say(dst []turn.Delta, n int, part *piece, raw []byte, opened bool) ([]turn.Delta, error) {
	body, _ := jsonwalk.String(part.text)
	kind := d.blocks[n].kind
	fits := part.of == kind || part.of == turn.Call && kind == turn.Hosted
	switch {
	case part.kind == turn.Extra || kind == turn.Unknown || kind == turn.HostedResult || kind == turn.Redacted:
		if part.name == nil {
			return append(dst, turn.Delta{Kind: turn.Pulse}), nil
		}
		return append(dst, turn.Delta{Kind: turn.Extra, Block: n, Raw: raw, Keep: true}), nil
	case !fits:
		return dst, ErrDeltaKind
	case len(body) > 0:
		return append(dst, turn.Delta{Kind: part.kind, Block: n, Text: body}), nil
	case opened:
		return dst, nil
	}
	return append(dst, turn.Delta{Kind: turn.Pulse}), nil
}

// stop of a block that never opened closes nothing and loses nothing.
func (d *decoder) stop(dst []turn.Delta, data []byte) ([]turn.Delta, error) {
	p, err := readPayload(data)
	if err != nil {
		return dst, err
	}
	n, ok := d.find(p.index)
	if !ok {
		return append(dst, turn.Delta{Kind: turn.Pulse}), nil
	}
	d.blocks[n].open = false
	return append(dst, turn.Delta{Kind: turn.Close, Block: n}), nil
}

// metadata is the last frame, with or without a usage record.
func metadata(dst []turn.Delta, data []byte) ([]turn.Delta, error) {
	p, err := readPayload(data)
	if err != nil {
		return dst, err
	}
	if jsonwalk.KindOf(p.usage) == jsonwalk.KindObject {
		u := turn.Usage{Known: true, Raw: bytes.TrimSpace(p.usage)}
		u.Input, _ = jsonwalk.Int(jsonwalk.Get(p.usage, "inputTokens"))
		u.Output, _ = jsonwalk.Int(jsonwalk.Get(p.usage, "outputTokens"))
		dst = append(dst, turn.Delta{Kind: turn.Count, Usage: u})
	}
	return append(dst, turn.Delta{Kind: turn.Terminal}), nil
}
