package openaichat

import (
	"encoding/json"
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Emit implements dialect.Writer. A whole call in one delta is what Mistral, xAI
// and Ollama send anyway.
func (w Wire) Emit(dst []byte, _ *dialect.Request, said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[n]
	var d []byte
	switch b.Kind {
	case turn.Prose:
		d = appendMember(d, "content", appendQuoted(nil, b.Text))
	case turn.Reasoning:
		key := string(nameReasoningContent)
		if b.Name == string(nameReasoning) {
			key = b.Name
		}
		d = appendMember(d, key, appendQuoted(nil, b.Text))
		if b.Stage&detailed != 0 || b.Name == string(nameDetails) {
			d = appendMember(append(d, ','), string(nameDetails), appendDetails(nil, b.Text))
		}
	case turn.Refusal:
		d = appendMember(d, "refusal", appendQuoted(nil, b.Text))
	case turn.Call, turn.CustomCall:
		d = append(d, `"tool_calls":[`...)
		d = append(appendCall(d, b), ']')
	default:
		return dst
	}
	alone := *said
	alone.Blocks = said.Blocks[:n]
	id := w.identify(said.Head)
	if !id.texts && !hasRole(&alone, b.Choice) {
		d = append([]byte(`"role":"assistant",`), d...)
	}
	return id.chunk(dst, id.choices(b.Choice, d, b.Text, nil), nil)
}

// Replay implements dialect.Writer.
func (w Wire) Replay(dst []byte, r *dialect.Request, said *turn.Snapshot) []byte {
	before := len(dst)
	for n := range said.Blocks {
		b := &said.Blocks[n]
		if !b.Live() {
			continue
		}
		was := len(dst)
		if b.Kind != turn.Prose || len(b.Text) > 0 || len(b.Notes) == 0 {
			dst = w.Emit(dst, r, said, n)
		}
		alone := *said
		alone.Blocks = said.Blocks[:n]
		dst = w.besides(dst, said.Head, b, len(dst) == was && !hasRole(&alone, b.Choice))
	}
	if len(dst) == before {
		id := w.identify(said.Head)
		return id.chunk(dst, id.choices(0, []byte(`"role":"assistant","content":""`), nil, nil), nil)
	}
	return dst
}

// appendCall renders a whole call.
func appendCall(dst []byte, b *turn.Block) []byte {
	typ, input, args := "function", "arguments", b.Text
	if b.Kind == turn.CustomCall {
		typ, input = "custom", "input"
	} else if len(args) == 0 {
		args = []byte("{}") // closed without arguments: none are needed
	}
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(b.Index), 10)
	dst = append(dst, `,"id":`...)
	dst = append(dst, quote([]byte(b.ID))...)
	dst = append(dst, `,"type":"`+typ+`","`+typ+`":{"name":`...)
	dst = append(dst, quote([]byte(b.Name))...)
	dst = append(dst, `,"`+input+`":`...)
	dst = appendQuoted(dst, args)
	return append(dst, "}}"...)
}

// appendChoice renders choices with one element; delta are the members of its
// delta, reason is a raw value or nil.
func appendChoice(dst []byte, choice int, delta, reason []byte) []byte {
	dst = append(dst, `[{"index":`...)
	dst = strconv.AppendInt(dst, int64(choice), 10)
	dst = append(dst, `,"delta":{`...)
	dst = append(dst, delta...)
	return append(appendReason(append(dst, '}'), reason), "}]"...)
}

func appendReason(dst, reason []byte) []byte {
	if reason == nil {
		reason = []byte("null")
	}
	return appendMember(append(dst, ','), "finish_reason", reason)
}

// Finish implements dialect.Writer.
func (w Wire) Finish(dst []byte, r *dialect.Request, said *turn.Snapshot, e dialect.Ending) []byte {
	id := w.identify(said.Head)
	if !e.FinishSent {
		for i := range max(1, len(said.Ends)) {
			reason := e.Reason
			if reason == "" {
				reason = finishReason(e.Why)
			}
			dst = id.chunk(dst, id.choices(i, nil, nil, quote([]byte(reason))), nil)
		}
	}
	if !e.UsageSent && e.Usage.Known && r.IncludeUsage {
		dst = id.chunk(dst, []byte("[]"), appendUsage(nil, e.Usage))
	}
	return append(dst, "data: [DONE]\n\n"...)
}

// Fail implements dialect.Writer: `data: {"error":{…}}` and no [DONE], the form
// that every SDK raises on (WIRE 5.6). A provider's own error goes out as it is,
// if it is one that SDKs recognise.
func (Wire) Fail(dst []byte, _ *turn.Snapshot, f dialect.Failure) []byte {
	return sse.Append(dst, "", errorJSON(f))
}

// ErrorBody implements dialect.Writer.
func (Wire) ErrorBody(f dialect.Failure) (status int, body []byte) {
	if f.Status == 0 {
		return 502, errorJSON(f)
	}
	return f.Status, errorJSON(f)
}

func errorJSON(f dialect.Failure) []byte {
	if c, err := readChunk(f.Raw); err == nil && c.fault != nil {
		return f.Raw
	}
	var e struct {
		Error struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Param   *string `json:"param"`
			Code    string  `json:"code"`
		} `json:"error"`
	}
	e.Error.Message, e.Error.Type, e.Error.Code = f.Message, f.Type, f.Code
	if e.Error.Message == "" {
		e.Error.Message = "the provider's stream was interrupted"
	}
	// Say what broke and why it was not healed (FIELD-REPORTS E6).
	if f.Cause != "" || f.Reason != "" {
		e.Error.Message += " (" + f.Cause + "; not recovered: " + f.Reason + ")"
	}
	if e.Error.Type == "" {
		e.Error.Type = "upstream_error"
	}
	if e.Error.Code == "" {
		e.Error.Code = "stream_interrupted"
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic("BUG: openaichat: " + err.Error()) // strings always marshal
	}
	return b
}

// Heartbeat implements dialect.Writer: one comment line and no blank line, which
// some decoders would dispatch as an empty event (FIELD-REPORTS B5).
func (Wire) Heartbeat(dst []byte, _ *dialect.Request, _ *turn.Snapshot) []byte {
	return sse.AppendComment(dst, " keep-alive")
}

// Retract implements dialect.Writer.
func (Wire) Retract(dst []byte, said *turn.Snapshot, n int, reason string) []byte {
	if n < 0 {
		return sse.Append(dst, "stream_reset", append(appendMember([]byte{'{'}, "reason", quote([]byte(reason))), '}'))
	}
	b := &said.Blocks[n]
	data := appendMember([]byte{'{'}, "id", quote([]byte(b.ID)))
	data = appendMember(append(data, ','), "name", quote([]byte(b.Name)))
	data = appendMember(append(data, ','), "reason", quote([]byte(reason)))
	return sse.Append(dst, "tool_call_cancel", append(data, '}'))
}

// CloseBlock implements dialect.Writer: chat does not close blocks.
func (Wire) CloseBlock(dst []byte, _ *turn.Snapshot, _ int) []byte { return dst }

// DropReasoning implements dialect.Writer: chat's reasoning is unsigned and
// simply goes on.
func (Wire) DropReasoning(dst []byte, _ *turn.Snapshot, _ int) []byte { return dst }
