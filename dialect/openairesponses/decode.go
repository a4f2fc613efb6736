package openairesponses

import (
	"errors"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Decoding errors. Each is an event that no client could place in the response either, so that passing it on, or
// skipping it, would lose or corrupt content. The text is the token that metrics count.
var (
	ErrJSON          = errors.New("malformed_json")
	ErrSecondCreated = errors.New("second_response_created") // two generations in one response (FIELD-REPORTS D1)
	ErrItem          = errors.New("item_missing")
	ErrDeltaKind     = errors.New("delta_of_another_item_kind")
)

// NewDecoder returns a decoder for one attempt.
func (Dialect) NewDecoder(*dialect.Request) dialect.Decoder { return &decoder{track: track{at: -1}} }

// decoder numbers blocks in the order they open. Items are known by their output_index: some hosts give an item another
// id in every event (WIRE 1.2).
type decoder struct {
	begun  bool
	failed bool // an error event was seen; the response.failed behind it says the same
	calls  bool
	blocks int
	items  []wireItem
	track
}

type wireItem struct {
	index int
	kind  turn.BlockKind
	parts []wirePart // the first is there from the start, unclaimed while no event named it
	done  bool
}

type wirePart struct {
	block   int
	kind    turn.BlockKind
	inner   bool
	index   int
	claimed bool
	spoke   bool // it had text, so what a done event says is a repetition
	ended   bool // an event before output_item.done closed it
}

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(dst []turn.Delta, e sse.Event) ([]turn.Delta, error) {
	if silent(e.Data) {
		return append(dst, turn.Delta{Kind: turn.Pulse}), nil
	}
	if done(e.Data) {
		return append(dst, turn.Delta{Kind: turn.Terminal}), nil
	}
	f, err := readFrame(e)
	if err != nil {
		return dst, err
	}
	had := len(dst)
	if dst, err = d.event(dst, &f, e.Data); err != nil {
		return dst[:had], err
	}
	if len(dst) == had {
		dst = append(dst, turn.Delta{Kind: turn.Pulse})
	}
	seq := number(f.seq)
	d.reached(&f)
	for i := had; i < len(dst); i++ {
		dst[i].Seq = seq
	}
	return dst, nil
}

func (d *decoder) event(dst []turn.Delta, f *frame, data []byte) ([]turn.Delta, error) {
	switch string(f.typ) {
	case "response.output_text.delta":
		return d.delta(dst, f, turn.Prose, false)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		return d.argue(dst, f)
	case "response.reasoning_summary_text.delta":
		return d.delta(dst, f, turn.Reasoning, false)
	case "response.reasoning_text.delta":
		return d.delta(dst, f, turn.Reasoning, true)
	case "response.refusal.delta":
		return d.delta(dst, f, turn.Refusal, false)
	case "response.output_text.done":
		return d.told(dst, f, turn.Prose, false)
	case "response.refusal.done":
		return d.told(dst, f, turn.Refusal, false)
	case "response.reasoning_summary_text.done":
		return d.told(dst, f, turn.Reasoning, false)
	case "response.reasoning_text.done":
		return d.told(dst, f, turn.Reasoning, true)
	case "response.function_call_arguments.done", "response.custom_tool_call_input.done":
		return d.argued(dst, f)
	case "response.content_part.added", "response.reasoning_summary_part.added", "response.reasoning_part.added":
		return d.part(dst, f, data, part)
	case "response.content_part.done", "response.reasoning_summary_part.done", "response.reasoning_part.done":
		return d.part(dst, f, data, shut)
	case "response.output_text.annotation.added":
		return d.annotate(dst, f)
	case "response.output_item.added":
		return d.itemAdded(dst, f)
	case "response.output_item.done":
		return d.itemDone(dst, f)
	case "response.created":
		if d.begun {
			return dst, ErrSecondCreated
		}
		d.begun = true
		d.grasp(f)
		return append(dst, turn.Delta{Kind: turn.Head, Raw: data}), nil
	case "response.in_progress", "response.queued":
		return append(dst, turn.Delta{Kind: turn.Head, Raw: data}), nil
	case "response.completed", "response.incomplete", "response.failed":
		return d.finish(dst, f, data), nil
	case "keepalive", "ping":
		return dst, nil
	}
	if string(f.typ) == "error" || len(f.typ) == 0 && f.fault != nil && !jsonwalk.IsNull(f.fault) {
		d.failed, d.id = true, ""
		return append(dst, turn.Delta{Kind: turn.Fault, Fault: readFault(f), Raw: data}), nil
	}
	return d.other(dst, f, data), nil
}

// other passes what has no meaning here: the progress of an item that runs at the provider, or an event of a later year.
func (d *decoder) other(dst []turn.Delta, f *frame, data []byte) []turn.Delta {
	it := d.find(f)
	if it == nil || f.output == nil {
		return append(dst, turn.Delta{Kind: turn.Opaque, Block: -1, Raw: data})
	}
	kind := turn.Opaque
	switch it.kind {
	case turn.HostedResult, turn.Hosted, turn.CustomCall:
		kind = turn.Extra
	}
	return append(dst, turn.Delta{Kind: kind, Block: it.about(f).block, Raw: data})
}

// about returns the part at the event's content_index, the first for an event that tells none.
func (it *wireItem) about(f *frame) *wirePart {
	index, ok := wireIndex(f.content)
	for i := range it.parts {
		if p := &it.parts[i]; ok && p.claimed && p.index == index && it.kind != turn.Reasoning {
			return p
		}
	}
	return &it.parts[0]
}

// find returns the newest item at the event's output_index. Events are about the last item or one close to it.
func (d *decoder) find(f *frame) *wireItem {
	index, ok := wireIndex(f.output)
	for n := len(d.items) - 1; n >= 0; n-- {
		if it := &d.items[n]; !ok || it.index == index {
			return it
		}
	}
	return nil
}

// finish reads a terminal event. A turn that holds calls asks for them: the wire says only "completed".
func (d *decoder) finish(dst []turn.Delta, f *frame, data []byte) []turn.Delta {
	var usage, details []byte
	w := jsonwalk.Members(f.response)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch string(plainKey(k)) {
		case "usage":
			usage = v
		case "incomplete_details":
			details = v
		}
	}
	end := turn.Delta{Kind: turn.Finish, Why: turn.Stopped, Text: []byte("completed")}
	switch string(f.typ) {
	case "response.failed":
		fault := readFault(f)
		switch {
		case d.failed || string(f.repeats) == "true":
			return dst // the error event before it was the fault
		case !final(fault.Code):
			d.failed, d.id = true, ""
			return append(dst, turn.Delta{Kind: turn.Fault, Fault: fault, Raw: data})
		}
		end.Why, end.Text = turn.Filtered, []byte("failed")
	case "response.incomplete":
		reason, _ := jsonwalk.String(jsonwalk.Get(details, "reason"))
		end.Why, end.Text = turn.OtherEnd, reason
		switch string(reason) {
		case "max_output_tokens", "max_tokens", "":
			end.Why = turn.Length
		case "content_filter":
			end.Why = turn.Filtered
		}
	default:
		if d.calls {
			end.Why = turn.ToolUse
		}
	}
	if jsonwalk.KindOf(usage) == jsonwalk.KindObject {
		dst = append(dst, turn.Delta{Kind: turn.Count, Usage: readUsage(usage)})
	}
	return append(dst, end)
}

func readUsage(raw []byte) turn.Usage {
	u := turn.Usage{Known: true, Raw: raw}
	w := jsonwalk.Members(raw)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch n, _ := jsonwalk.Int(v); string(plainKey(k)) {
		case "input_tokens":
			u.Input = n
		case "output_tokens":
			u.Output = n
		}
	}
	return u
}
