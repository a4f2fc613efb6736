package interactions

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

func event(dst []byte, typ, members string, raw []byte) []byte {
	data := append([]byte("{"+members), raw...)
	return sse.Append(dst, typ, append(data, `,"event_type":"`+typ+`"}`...))
}

func stepStart(dst []byte, index int, step []byte) []byte {
	return event(dst, "step.start", `"index":`+strconv.Itoa(index)+`,"step":`, step)
}

func stepStop(dst []byte, index int) []byte {
	return event(dst, "step.stop", `"index":`+strconv.Itoa(index), nil)
}

// stepDelta takes the text as an escaped body.
func stepDelta(dst []byte, index int, kind turn.Kind, of turn.BlockKind, body []byte) []byte {
	head, tail := `{"type":"text","text":"`, `"}`
	switch {
	case kind == turn.Sign:
		head = `{"type":"thought_signature","signature":"`
	case of == turn.Reasoning:
		head, tail = `{"type":"thought_summary","content":{"type":"text","text":"`, `"}}`
	case of == turn.Call:
		head = `{"type":"arguments_delta","arguments":"`
	}
	delta := append([]byte(head), body...)
	return event(dst, "step.delta", `"index":`+strconv.Itoa(index)+`,"delta":`, append(delta, tail...))
}

// opening is the step of a block's start event, without what follows as deltas.
func opening(b *turn.Block) []byte {
	switch {
	case b.Kind == turn.Reasoning:
		return []byte(`{"type":"thought"}`)
	case b.Kind == turn.Prose:
		return []byte(`{"type":"model_output"}`)
	case b.Kind == turn.Call && b.Raw == nil:
		s := append([]byte(`{"type":"function_call","id":`), quote([]byte(b.ID))...)
		s = append(append(s, `,"name":`...), quote([]byte(b.Name))...)
		return append(s, `,"arguments":{}}`...)
	case b.Kind == turn.Call && filled(jsonwalk.Get(b.Raw, "arguments")):
		return jsonwalk.SetMember(nil, b.Raw, "arguments", []byte("{}"))
	}
	return b.Raw
}

// open renders a block up to where it stands: its start and what was said in it.
func open(dst []byte, b *turn.Block) []byte {
	dst = stepStart(dst, b.Index, opening(b))
	if len(b.Text) > 0 {
		dst = stepDelta(dst, b.Index, turn.Text, b.Kind, b.Text)
	}
	for _, n := range dialect.Noted(b.Notes, nil) {
		dst = event(dst, "step.delta", `"index":`+strconv.Itoa(b.Index)+`,"delta":`, noted(n))
	}
	if b.Kind == turn.Reasoning && b.Closed && len(b.Signature) > 0 {
		dst = stepDelta(dst, b.Index, turn.Sign, b.Kind, b.Signature)
	}
	return dst
}

// noted is the delta that a block's note was kept of: an annotation, or in brackets
// another delta as it came (Decoder.Decode).
func noted(n []byte) []byte {
	if jsonwalk.KindOf(n) == jsonwalk.KindArray {
		return n[1 : len(n)-1]
	}
	return append(append([]byte(`{"type":"text_annotation_delta","annotations":[`), n...), "]}"...)
}

// Emit implements dialect.Writer. A call that is not complete renders nothing.
func (Dialect) Emit(dst []byte, _ *dialect.Request, said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[n]
	if b.IsCall() && !b.Complete() {
		return dst
	}
	return stepStop(open(dst, b), b.Index)
}

// Replay implements dialect.Writer.
func (Dialect) Replay(dst []byte, _ *dialect.Request, said *turn.Snapshot) []byte {
	if said.Head != nil {
		dst = sse.Append(dst, "interaction.created", said.Head)
	}
	for n := range said.Blocks {
		b := &said.Blocks[n]
		if !b.Live() {
			continue
		}
		if dst = open(dst, b); b.Closed {
			dst = stepStop(dst, b.Index)
		}
	}
	return dst
}

// CloseBlock implements dialect.Writer. An unfinished call stays open, since the
// stop would make it runnable; a thought that the provider did not close gets the
// mark, since the stop would pass for its signature's.
func (d Dialect) CloseBlock(dst []byte, said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[n]
	switch {
	case b.IsCall() && !b.Complete():
		return dst
	case b.Kind == turn.Reasoning && !b.Closed:
		return d.DropReasoning(dst, said, n)
	}
	return stepStop(dst, b.Index)
}

// DropReasoning implements dialect.Writer.
func (Dialect) DropReasoning(dst []byte, said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[n]
	if b.Kind != turn.Reasoning || b.Closed {
		return dst
	}
	return stepStop(stepDelta(dst, b.Index, turn.Sign, b.Kind, []byte(turn.DropMark)), b.Index)
}

// Finish implements dialect.Writer: what is open and whole is closed, then the
// completed interaction under the head's id, then the marker.
func (d Dialect) Finish(dst []byte, _ *dialect.Request, said *turn.Snapshot, e dialect.Ending) []byte {
	if !e.FinishSent {
		for n := range said.Blocks {
			if b := &said.Blocks[n]; !b.Closed && b.Live() {
				dst = d.CloseBlock(dst, said, n)
			}
		}
		status := e.Reason
		if status == "" {
			status = statusOf(e.Why)
		}
		i := jsonwalk.Get(said.Head, "interaction")
		if i == nil {
			i = []byte(`{"object":"interaction"}`)
		}
		i = jsonwalk.SetMember(nil, i, "status", quote([]byte(status)))
		if !e.UsageSent && e.Usage.Known {
			i = jsonwalk.SetMember(nil, i, "usage", appendUsage(nil, e.Usage))
		}
		dst = event(dst, "interaction.completed", `"interaction":`, i)
	}
	return append(dst, "event: done\ndata: [DONE]\n\n"...)
}

// Fail implements dialect.Writer.
func (Dialect) Fail(dst []byte, _ *turn.Snapshot, f dialect.Failure) []byte {
	if fr, err := readFrame(f.Raw); err == nil && fr.fault != nil {
		return sse.Append(dst, "error", f.Raw)
	}
	return event(dst, "error", `"error":`, errorOf(f))
}

// ErrorBody implements dialect.Writer.
func (Dialect) ErrorBody(f dialect.Failure) (status int, body []byte) {
	if status = f.Status; status == 0 {
		status = 502
	}
	if fr, err := readFrame(f.Raw); err == nil && fr.fault != nil {
		return status, append([]byte(nil), f.Raw...)
	}
	return status, append(append([]byte(`{"error":`), errorOf(f)...), '}')
}

func errorOf(f dialect.Failure) []byte {
	code, message := f.Type, f.Message
	if code == "" {
		code = f.Code
	}
	if code == "" {
		code = "stream_interrupted"
	}
	if message == "" {
		message = "the provider's stream was interrupted"
	}
	// Say what broke and why it was not healed (FIELD-REPORTS E6).
	if f.Cause != "" || f.Reason != "" {
		message += " (" + f.Cause + "; not recovered: " + f.Reason + ")"
	}
	e := append([]byte(`{"code":`), quote([]byte(code))...)
	e = append(append(e, `,"message":`...), quote([]byte(message))...)
	return append(e, '}')
}

// Heartbeat implements dialect.Writer: a status that says nothing new. Comments are
// not known to be safe with this family of SDKs (WIRE 3.4).
func (Dialect) Heartbeat(dst []byte, _ *dialect.Request, said *turn.Snapshot) []byte {
	id := jsonwalk.Get(said.Head, "interaction", "id")
	if id == nil {
		id = []byte(`""`)
	}
	return event(dst, "interaction.status_update", `"status":"in_progress","interaction_id":`, id)
}

// Retract implements dialect.Writer: the dialect has no mode "events" (DESIGN §5).
func (Dialect) Retract(dst []byte, _ *turn.Snapshot, _ int, _ string) []byte { return dst }
