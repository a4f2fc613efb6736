package anthropic

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Emit renders block n of said, whole and closed, as the provider would have: start, one delta, stop. A call that is not
// complete, and thinking that was not signed, render nothing.
func (Dialect) Emit(dst []byte, _ *dialect.Request, said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[n]
	switch {
	case b.IsCall() && !b.Complete():
		return dst
	case b.Kind == turn.Reasoning && (!b.Closed || len(b.Signature) == 0):
		return dst
	}
	dst = blockBody(blockStart(dst, b.Index, openingOf(b)), b)
	if b.Kind == turn.Reasoning {
		dst = blockDelta(dst, b.Index, "signature_delta", "signature", b.Signature)
	}
	return blockStop(dst, b.Index)
}

// Replay renders message_start as the provider sent it, and the blocks behind it.
func (d Dialect) Replay(dst []byte, r *dialect.Request, said *turn.Snapshot) []byte {
	head := said.Head
	if content := jsonwalk.Get(head, "message", "content"); filled(content) != nil {
		// Blocks that came with the start are rendered like all others.
		head = jsonwalk.ApplySorted(head, []jsonwalk.Patch{patch(head, content, []byte("[]"))})
	}
	dst = sse.Append(dst, "message_start", head)
	for n := range said.Blocks {
		switch b := &said.Blocks[n]; {
		case !b.Live():
		case b.IsCall():
			// What is whole and not closed yet, the finish closes.
			if dst = blockBody(blockStart(dst, b.Index, openingOf(b)), b); b.Closed {
				dst = blockStop(dst, b.Index)
			}
		case b.Closed:
			dst = d.Emit(dst, r, said, n)
		default:
			dst = blockBody(blockStart(dst, b.Index, openingOf(b)), b)
		}
	}
	return dst
}

// blockBody renders the text of a block as one delta, and its citations.
func blockBody(dst []byte, b *turn.Block) []byte {
	switch {
	case b.Kind == turn.Call && len(b.Text) == 0:
		dst = blockDelta(dst, b.Index, "input_json_delta", "partial_json", nil)
	case len(b.Text) > 0:
		typ, member := deltaType(b.Kind)
		dst = blockDelta(dst, b.Index, typ, member, b.Text)
	}
	for _, c := range dialect.Noted(b.Notes, nil) {
		data := strconv.AppendInt([]byte(`{"type":"content_block_delta","index":`), int64(b.Index), 10)
		data = append(append(data, `,"delta":{"type":"citations_delta","citation":`...), c...)
		dst = sse.Append(dst, "content_block_delta", append(data, "}}"...))
	}
	return dst
}

// CloseBlock renders the stop of block n. An unfinished call stays open, since the stop would make it runnable; thinking
// that the provider did not close gets the mark, since the stop would pass for a signature's.
func (d Dialect) CloseBlock(dst []byte, said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[n]
	switch {
	case b.IsCall() && !b.Complete():
		return dst
	case b.Kind == turn.Reasoning && !b.Closed:
		return d.DropReasoning(dst, said, n)
	}
	return blockStop(dst, b.Index)
}

// Finish renders an honest end. Open blocks are closed where that invents nothing: text, content that came whole, calls
// with complete arguments. Open thinking is closed under the drop mark. An open call that is not complete stays open: no
// SDK needs the stop, and some make a call of it (WIRE 3.2, D3).
//
// Usage rides on message_delta, so UsageSent means no more than FinishSent. output_tokens is required by SDKs; when
// nobody knows it an estimate stands in.
func (d Dialect) Finish(dst []byte, _ *dialect.Request, said *turn.Snapshot, e dialect.Ending) []byte {
	if !e.FinishSent {
		for n := range said.Blocks {
			switch b := &said.Blocks[n]; {
			case b.Closed || !b.Live():
			case b.Kind == turn.Reasoning:
				dst = d.DropReasoning(dst, said, n)
			case whole(b):
				dst = blockStop(dst, b.Index)
			}
		}
		dst = messageDelta(dst, e, said)
	}
	return sse.Append(dst, "message_stop", []byte(`{"type":"message_stop"}`))
}

// messageDelta renders the one message_delta of a message.
func messageDelta(dst []byte, e dialect.Ending, said *turn.Snapshot) []byte {
	reason := e.Reason
	if reason == "" {
		reason = reasonOf(e.Why, e.Stop)
	}
	data := append([]byte(`{"type":"message_delta","delta":{"stop_reason":"`), jsonwalk.Escape(nil, []byte(reason))...)
	data = append(data, `","stop_sequence":`...)
	if e.Stop != "" && reason == "stop_sequence" {
		data = append(data, '"')
		data = jsonwalk.Escape(data, []byte(e.Stop))
		data = append(data, '"')
	} else {
		data = append(data, "null"...)
	}
	data = append(data, `},"usage":{`...)
	if in, _ := jsonwalk.Int(jsonwalk.Get(said.Head, "message", "usage", "input_tokens")); e.Usage.Known && e.Usage.Input > 0 && e.Usage.Input != in {
		// Hosted tools make the prompt grow during the turn; message_start told its first size.
		data = append(data, `"input_tokens":`...)
		data = append(strconv.AppendInt(data, e.Usage.Input, 10), ',')
	}
	data = append(data, `"output_tokens":`...)
	data = strconv.AppendInt(data, outputTokens(e.Usage, said), 10)
	return sse.Append(dst, "message_delta", append(data, "}}"...))
}

func outputTokens(u turn.Usage, said *turn.Snapshot) int64 {
	switch {
	case u.Known:
		return u.Output
	case said.Finished() && said.Usage.Known:
		return said.Usage.Output
	}
	// Before the finish the only record is message_start's, whose output_tokens says how many were ready with it.
	return max(said.Usage.Output, said.EstimateTokens())
}

// reasonOf is whyOf backwards.
func reasonOf(why turn.Why, stop string) string {
	switch why {
	case turn.Length:
		return "max_tokens"
	case turn.ToolUse:
		return "tool_use"
	case turn.Filtered:
		return "refusal"
	case turn.Paused:
		return "pause_turn"
	}
	if stop != "" {
		return "stop_sequence"
	}
	return "end_turn"
}

// DropReasoning closes the open thinking block n under the mark. Nothing is rendered for any other block.
func (Dialect) DropReasoning(dst []byte, said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[n]
	if b.Kind != turn.Reasoning || b.Closed {
		return dst
	}
	dst = blockDelta(dst, b.Index, "signature_delta", "signature", []byte(turn.DropMark))
	return blockStop(dst, b.Index)
}

// Heartbeat is a ping in the one spelling that every SDK takes (FIELD-REPORTS B6).
func (Dialect) Heartbeat(dst []byte, _ *dialect.Request, _ *turn.Snapshot) []byte {
	return append(dst, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
}

// Retract renders the announcements of mode "events" (DESIGN §5). Strict SDKs report an unknown event type, which is
// why the mode is asked for by the caller.
func (Dialect) Retract(dst []byte, said *turn.Snapshot, n int, reason string) []byte {
	why := jsonwalk.Escape(nil, []byte(reason))
	if n < 0 {
		data := append([]byte(`{"type":"stream_reset","reason":"`), why...)
		return sse.Append(dst, "stream_reset", append(data, `"}`...))
	}
	b := &said.Blocks[n]
	data := append([]byte(`{"type":"tool_call_cancel","id":"`), jsonwalk.Escape(nil, []byte(b.ID))...)
	data = append(append(data, `","name":"`...), jsonwalk.Escape(nil, []byte(b.Name))...)
	data = append(append(data, `","reason":"`...), why...)
	return sse.Append(dst, "tool_call_cancel", append(data, `"}`...))
}

// openingOf is the content_block of a block's start event: its opening as the provider spelled it, with the content
// that follows as deltas taken out.
func openingOf(b *turn.Block) []byte {
	raw := b.Raw
	if len(raw) == 0 {
		switch b.Kind {
		case turn.Reasoning:
			return []byte(`{"type":"thinking","thinking":"","signature":""}`)
		case turn.Call:
			return newCall(b)
		}
		return []byte(`{"type":"text","text":""}`)
	}
	if b.Kind != turn.Call && b.Kind != turn.Hosted {
		return raw
	}
	if id := text(jsonwalk.Get(raw, "id")); id != b.ID {
		quoted := append(jsonwalk.Escape([]byte{'"'}, []byte(b.ID)), '"')
		if raw = jsonwalk.SetMember(nil, raw, "id", quoted); raw == nil {
			return newCall(b)
		}
	}
	if filled(jsonwalk.Get(raw, "input")) == nil && jsonwalk.Get(raw, "input") != nil {
		return raw
	}
	return jsonwalk.SetMember(nil, raw, "input", []byte("{}"))
}

func newCall(b *turn.Block) []byte {
	raw := append([]byte(`{"type":"tool_use","id":"`), jsonwalk.Escape(nil, []byte(b.ID))...)
	raw = append(append(raw, `","name":"`...), jsonwalk.Escape(nil, []byte(b.Name))...)
	return append(raw, `","input":{}}`...)
}

func blockStart(dst []byte, index int, block []byte) []byte {
	data := strconv.AppendInt([]byte(`{"type":"content_block_start","index":`), int64(index), 10)
	data = append(append(data, `,"content_block":`...), block...)
	return sse.Append(dst, "content_block_start", append(data, '}'))
}

// blockDelta takes the text as an escaped body.
func blockDelta(dst []byte, index int, typ, member string, body []byte) []byte {
	data := strconv.AppendInt([]byte(`{"type":"content_block_delta","index":`), int64(index), 10)
	data = append(append(data, `,"delta":{"type":"`...), typ...)
	data = append(append(data, `","`...), member...)
	data = append(append(data, `":"`...), body...)
	return sse.Append(dst, "content_block_delta", append(data, `"}}`...))
}

func blockStop(dst []byte, index int) []byte {
	data := strconv.AppendInt([]byte(`{"type":"content_block_stop","index":`), int64(index), 10)
	return sse.Append(dst, "content_block_stop", append(data, '}'))
}
