package anthropic

import (
	"bytes"
	"errors"
	"math"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Decoding errors. Each is an event that no client could place in the message either, so that passing it on, or
// skipping it, would lose or corrupt content. The text is the token that metrics count.
var (
	ErrJSON        = errors.New("malformed_json")
	ErrSecondStart = errors.New("second_message_start") // two generations in one response (FIELD-REPORTS D1)
	ErrIndex       = errors.New("block_index_missing")
	ErrIndexInUse  = errors.New("block_index_in_use") // a block opens at the index of one that is still open (D2)
	ErrNoBlock     = errors.New("delta_without_block")
	ErrDeltaKind   = errors.New("delta_of_another_block_kind")
)

// NewDecoder returns a decoder for one attempt.
func (Dialect) NewDecoder(*dialect.Request) dialect.Decoder { return &decoder{} }

// decoder numbers blocks in the order they open. A gap in the wire's indices, or the index of a closed block used
// again, is represented as it is, so that it can pass through: the ordinal is new, Index is the wire's.
type decoder struct {
	// The last event, if it was a delta of text, and what it said. It changed nothing
	// here, so what differs from it in the text only says the same but for the text.
	like jsonwalk.Stencil
	last turn.More

	begun  bool
	input  int64 // input_tokens of message_start; a message_delta may leave it out
	blocks []wireBlock
}

// wireBlock is a block of this attempt; its ordinal is its place.
type wireBlock struct {
	index int
	kind  turn.BlockKind
	open  bool
}

// frame holds the top-level members that matter, raw. typ is the escaped body of the type, nil when there is none.
type frame struct {
	typ, index, delta, block, message, usage, fault []byte

	named bool // typ is the event's name, not the data's
}

// readFrame walks an event's data once.
func readFrame(data []byte) (frame, error) {
	var f frame
	w := jsonwalk.Members(data)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch string(plainKey(k)) {
		case "type":
			f.typ, _ = jsonwalk.String(v)
		case "index":
			f.index = v
		case "delta":
			f.delta = v
		case "content_block":
			f.block = v
		case "message":
			f.message = v
		case "usage":
			f.usage = v
		case "error":
			f.fault = v
		}
	}
	if w.Err() != nil {
		return frame{}, ErrJSON
	}
	return f, nil
}

// silent reports whether an event has no data to speak of: comments, `event: ping` alone, empty data, the `[DONE]` of
// other dialects, and the `data: : keepalive` that some gateways send (FIELD-REPORTS B6, B7).
func silent(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) == 0 || data[0] == ':' || string(data) == "[DONE]"
}

// More implements [dialect.Repeater].
func (d *decoder) More(e sse.Event) (m turn.More, ok bool) {
	m = d.last
	m.Text, ok = d.like.Body(e.Data)
	return m, ok
}

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(dst []turn.Delta, e sse.Event) ([]turn.Delta, error) {
	if m, ok := d.More(e); ok {
		return append(dst, turn.Delta{Kind: turn.Text, Block: m.Block, Text: m.Text}), nil
	}
	d.like.Forget()
	if silent(e.Data) {
		return append(dst, turn.Delta{Kind: turn.Pulse}), nil
	}
	f, err := readFrame(e.Data)
	if err != nil {
		if string(e.Name) == "ping" {
			return append(dst, turn.Delta{Kind: turn.Pulse}), nil
		}
		return dst, err
	}
	if f.typ == nil {
		f.typ, f.named = e.Name, true
	}
	switch string(f.typ) {
	case "content_block_delta":
		return d.delta(dst, f, e.Data)
	case "content_block_start":
		return d.start(dst, f, e.Data)
	case "content_block_stop":
		return d.stop(dst, f), nil
	case "ping":
		return append(dst, turn.Delta{Kind: turn.Pulse}), nil
	case "message_start":
		return d.head(dst, f, e.Data)
	case "message_delta":
		return d.finish(dst, f)
	case "message_stop":
		return append(dst, turn.Delta{Kind: turn.Terminal}), nil
	case "error":
		return append(dst, turn.Delta{Kind: turn.Fault, Fault: readFault(f.fault), Raw: e.Data}), nil
	}
	if f.fault != nil && !jsonwalk.IsNull(f.fault) && len(f.typ) == 0 {
		// An error of a gateway in front of the provider, in whatever shape (FIELD-REPORTS E1).
		return append(dst, turn.Delta{Kind: turn.Fault, Fault: readFault(f.fault), Raw: e.Data}), nil
	}
	opaque := turn.Delta{Kind: turn.Opaque, Block: -1, Raw: e.Data}
	if n, ok := d.find(f.index); ok {
		opaque.Block = n
	}
	return append(dst, opaque), nil
}

// find returns the ordinal of the newest block at a wire index. Events are about the last block or one close to it.
func (d *decoder) find(raw []byte) (ordinal int, ok bool) {
	index, ok := wireIndex(raw)
	if !ok {
		return 0, false
	}
	for n := len(d.blocks) - 1; n >= 0; n-- {
		if d.blocks[n].index == index {
			return n, true
		}
	}
	return 0, false
}

func wireIndex(raw []byte) (int, bool) {
	n, ok := jsonwalk.Int(raw)
	if !ok || n < 0 || n > math.MaxInt32 {
		return 0, false
	}
	return int(n), true
}

func (d *decoder) head(dst []turn.Delta, f frame, data []byte) ([]turn.Delta, error) {
	if d.begun {
		return dst, ErrSecondStart
	}
	d.begun = true
	dst = append(dst, turn.Delta{Kind: turn.Head, Raw: data})
	var usage, content []byte
	w := jsonwalk.Members(f.message)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch string(plainKey(k)) {
		case "usage":
			usage = v
		case "content":
			content = v
		}
	}
	if w.Err() != nil {
		return dst, ErrJSON
	}
	dst = d.count(dst, usage)
	// Calls made by code that already ran arrive whole inside the message (programmatic tool calling); the blocks that
	// follow are numbered behind them.
	es := jsonwalk.Elements(content)
	for raw, ok := es.Next(); ok; raw, ok = es.Next() {
		n := len(d.blocks)
		var err error
		if dst, err = d.open(dst, n, raw, data); err != nil {
			return dst, err
		}
		d.blocks[n].open = false
		dst = append(dst, turn.Delta{Kind: turn.Close, Block: n})
	}
	return dst, nil
}

func (d *decoder) start(dst []turn.Delta, f frame, data []byte) ([]turn.Delta, error) {
	index, ok := wireIndex(f.index)
	if !ok {
		return dst, ErrIndex
	}
	if n, used := d.find(f.index); used && d.blocks[n].open {
		return dst, ErrIndexInUse
	}
	return d.open(dst, index, f.block, data)
}

func (d *decoder) open(dst []turn.Delta, index int, raw, data []byte) ([]turn.Delta, error) {
	o, err := readOpening(raw)
	if err != nil {
		return dst, err
	}
	n := len(d.blocks)
	d.blocks = append(d.blocks, wireBlock{index: index, kind: o.kind, open: true})
	open := turn.Delta{Kind: turn.Open, Of: o.kind, Block: n, Index: index, ID: o.id, Name: o.name}
	if o.kind != turn.Prose && o.kind != turn.Reasoning {
		open.Raw = raw // the caller field of a call, a result's content, an unknown block: only the opening has it
	}
	dst = append(dst, open)
	text := o.text
	if o.input != nil && (o.kind == turn.Call || o.kind == turn.Hosted) {
		text = jsonwalk.Escape(nil, o.input) // arguments travel as the body of a string
	}
	if len(text) > 0 {
		dst = append(dst, turn.Delta{Kind: turn.Text, Block: n, Text: text})
	}
	if o.kind == turn.Reasoning && len(o.signature) > 0 {
		dst = append(dst, turn.Delta{Kind: turn.Sign, Block: n, Text: o.signature})
	}
	if o.citations != nil {
		dst = append(dst, turn.Delta{Kind: turn.Extra, Block: n, Raw: data})
	}
	return dst, nil
}

// stop of a block that never opened closes nothing and loses nothing.
func (d *decoder) stop(dst []turn.Delta, f frame) []turn.Delta {
	n, ok := d.find(f.index)
	if !ok {
		return append(dst, turn.Delta{Kind: turn.Pulse})
	}
	d.blocks[n].open = false
	return append(dst, turn.Delta{Kind: turn.Close, Block: n})
}

// delta decodes the event that most of a stream consists of.
func (d *decoder) delta(dst []turn.Delta, f frame, data []byte) ([]turn.Delta, error) {
	p, err := readDelta(f.delta)
	if err != nil {
		return dst, err
	}
	kind := turn.Text
	var fits bool
	n, found := d.find(f.index)
	of := turn.Unknown
	if found {
		of = d.blocks[n].kind
	}
	switch string(p.typ) {
	case "text_delta":
		fits = of == turn.Prose
	case "thinking_delta":
		fits = of == turn.Reasoning
	case "input_json_delta":
		fits = of == turn.Call || of == turn.Hosted
	case "signature_delta":
		kind, fits = turn.Sign, of == turn.Reasoning
	default:
		kind, fits = turn.Extra, true
	}
	body, isString := p.body()
	cut := isString // out of data
	if kind == turn.Text && jsonwalk.KindOf(p.partial) == jsonwalk.KindObject {
		// Some hosts send arguments as the object itself (FIELD-REPORTS C13); as text they are the same arguments.
		body, isString = jsonwalk.Escape(nil, p.partial), true
	}
	switch {
	case kind == turn.Extra || of == turn.Unknown && found || !isString && p.said():
		kind, fits, body = turn.Extra, true, nil
	case len(body) == 0:
		return append(dst, turn.Delta{Kind: turn.Pulse}), nil
	}
	switch {
	case !found:
		return dst, ErrNoBlock
	case !fits && (of == turn.HostedResult || of == turn.Redacted):
		kind, body = turn.Extra, nil // content for a block that should have come whole: kept, not understood
	case !fits:
		return dst, ErrDeltaKind
	}
	out := turn.Delta{Kind: kind, Block: n, Text: body}
	switch {
	case kind == turn.Extra && p.citation != nil:
		out.Raw, out.Keep = p.citation, true
	case kind == turn.Extra:
		out.Raw = data
	case kind == turn.Text && cut && !f.named:
		d.last = turn.More{Block: n}
		d.like.Learn(data, body)
	}
	return append(dst, out), nil
}

// payload is a content_block_delta's delta: its type and the raw value of the member that the type names.
type payload struct {
	typ, text, thinking, partial, signature, citation []byte
}

func readDelta(raw []byte) (payload, error) {
	var p payload
	w := jsonwalk.Members(raw)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch string(plainKey(k)) {
		case "type":
			p.typ, _ = jsonwalk.String(v)
		case "text":
			p.text = v
		case "thinking":
			p.thinking = v
		case "partial_json":
			p.partial = v
		case "signature":
			p.signature = v
		case "citation":
			p.citation = filled(v)
		}
	}
	if w.Err() != nil {
		return p, ErrJSON
	}
	return p, nil
}

// value is the raw member that carries the text of this type of delta, nil if there is none.
func (p *payload) value() []byte {
	switch string(p.typ) {
	case "text_delta":
		return p.text
	case "thinking_delta":
		return p.thinking
	case "input_json_delta":
		return p.partial
	case "signature_delta":
		return p.signature
	}
	return nil
}

func (p *payload) body() (body []byte, ok bool) { return jsonwalk.String(p.value()) }

// said reports whether the text member is there and not null: something that is not a string was said.
func (p *payload) said() bool {
	v := p.value()
	return v != nil && !jsonwalk.IsNull(v)
}

func (d *decoder) finish(dst []turn.Delta, f frame) ([]turn.Delta, error) {
	had := len(dst)
	dst = d.count(dst, f.usage)
	if f.delta != nil {
		w := jsonwalk.Members(f.delta)
		for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
			if reason, isString := jsonwalk.String(v); isString && len(reason) > 0 && jsonwalk.KeyIs(k, "stop_reason") {
				dst = append(dst, turn.Delta{Kind: turn.Finish, Why: whyOf(reason), Text: reason})
			}
		}
		if w.Err() != nil {
			return dst[:had], ErrJSON
		}
	}
	if len(dst) == had {
		dst = append(dst, turn.Delta{Kind: turn.Pulse})
	}
	return dst, nil
}

// whyOf maps stop_reason (WIRE 1.3).
func whyOf(reason []byte) turn.Why {
	switch string(reason) {
	case "end_turn", "stop_sequence":
		return turn.Stopped
	case "max_tokens", "model_context_window_exceeded":
		return turn.Length
	case "tool_use":
		return turn.ToolUse
	case "pause_turn":
		return turn.Paused
	case "refusal":
		return turn.Filtered
	}
	return turn.OtherEnd
}

// count reads a usage object. Both numbers are cumulative; what message_delta leaves out stays as message_start said.
func (d *decoder) count(dst []turn.Delta, raw []byte) []turn.Delta {
	if jsonwalk.KindOf(raw) != jsonwalk.KindObject {
		return dst
	}
	u := turn.Usage{Known: true, Raw: raw}
	w := jsonwalk.Members(raw)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		n, isInt := jsonwalk.Int(v)
		switch {
		case !isInt:
		case jsonwalk.KeyIs(k, "input_tokens"):
			d.input = n
		case jsonwalk.KeyIs(k, "output_tokens"):
			u.Output = n
		}
	}
	u.Input = d.input
	return append(dst, turn.Delta{Kind: turn.Count, Usage: u})
}
