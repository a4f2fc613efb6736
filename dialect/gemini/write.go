package gemini

import (
	"bytes"
	"cmp"
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Emit implements dialect.Writer: one chunk with the block as one whole part.
func (Dialect) Emit(dst []byte, _ *dialect.Request, said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[n]
	part := partOf(b)
	if part == nil {
		return dst
	}
	id := identify(said.Head)
	return frame(dst, said, nil, id.chunk(b.Choice, part, "", nil))
}

// partOf renders a block as a part of its own, nil when it is none: a checkpoint,
// or a call that is not complete.
func partOf(b *turn.Block) []byte {
	switch b.Kind {
	case turn.Prose:
		if b.Raw == nil {
			return textPart(b.Text)
		}
		if jsonwalk.Get(b.Raw, "continuationToken") != nil {
			return nil
		}
	case turn.Reasoning:
		p := append([]byte(`{"text":"`), b.Text...)
		p = append(p, `","thought":true`...)
		if b.Closed && len(b.Signature) > 0 {
			p = append(append(append(p, `,"thoughtSignature":"`...), b.Signature...), '"')
		}
		return append(p, '}')
	case turn.Call:
		if !b.Complete() {
			return nil
		}
		return callPart(b)
	case turn.Refusal, turn.CustomCall:
		return nil // the wire has neither
	case turn.Redacted, turn.Hosted, turn.HostedResult, turn.Unknown:
	}
	return b.Raw
}

func textPart(body []byte) []byte {
	return append(append([]byte(`{"text":"`), body...), `"}`...)
}

// callPart renders a whole call. The part that opened it keeps its signature, which
// the next request must bring back (400 otherwise), and whatever else stood in it.
func callPart(b *turn.Block) []byte {
	f := readCall(jsonwalk.Get(b.Raw, "functionCall"))
	if f.args != nil && !f.goesOn && f.partial == nil && !f.malformed {
		return b.Raw
	}
	call := append([]byte(`{"name":`), quote([]byte(b.Name))...)
	call = append(append(call, `,"args":`...), b.Arguments()...)
	if b.ID != "" {
		call = append(append(call, `,"id":`...), quote([]byte(b.ID))...)
	}
	call = append(call, '}')
	if b.Raw != nil {
		if p := jsonwalk.SetMember(nil, b.Raw, "functionCall", call); p != nil {
			return p
		}
	}
	return append(append([]byte(`{"functionCall":`), call...), '}')
}

// Finish implements dialect.Writer: the chunk that a provider ends with, an empty
// text and the reason. There is no terminator, and usage came with every chunk
// before: behind a finish that was sent, nothing is missing.
func (Dialect) Finish(dst []byte, _ *dialect.Request, said *turn.Snapshot, e dialect.Ending) []byte {
	if e.FinishSent {
		return dst
	}
	reason := e.Reason
	if reason == "" {
		reason = finishReason(e.Why)
	}
	var usage []byte
	if !e.UsageSent && e.Usage.Known {
		usage = appendUsage(nil, e.Usage)
	}
	id := identify(said.Head)
	if feedback := blocking(said); feedback != nil {
		c := id.chunk(0, nil, "", usage)
		c = jsonwalk.SetMember(nil, jsonwalk.DeleteMember(nil, c, "candidates"), "promptFeedback", feedback)
		return frame(dst, said, nil, c)
	}
	if said.Finished() { // the ends of a turn that was told again: the client has none
		for i, end := range said.Ends {
			dst = frame(dst, said, nil, id.chunk(i, textPart(nil), cmp.Or(end.Reason, reason), usage))
		}
		return dst
	}
	for i := range max(1, len(said.Ends)) {
		if i < len(said.Ends) && said.Ends[i].Why != turn.Unfinished {
			continue // the provider's own
		}
		dst = frame(dst, said, nil, id.chunk(i, textPart(nil), reason, usage))
	}
	return dst
}

// blocking is the promptFeedback of a turn that ended with it before anything was said;
// nil: it did not. The head is the chunk that it came in.
func blocking(said *turn.Snapshot) []byte {
	if feedback := jsonwalk.Get(said.Head, "promptFeedback"); len(said.Blocks) == 0 && blockReason(feedback) != nil {
		return feedback
	}
	return nil
}

// Fail implements dialect.Writer: `data: {"error":{…}}`, which every SDK that was
// tried raises on but two old ones, for which the connection is aborted (WIRE 3.4,
// 5.6).
func (Dialect) Fail(dst []byte, said *turn.Snapshot, f dialect.Failure) []byte {
	return frame(dst, said, nil, errorJSON(f))
}

// ErrorBody implements dialect.Writer.
func (grammar) ErrorBody(f dialect.Failure) (status int, body []byte) {
	if f.Status == 0 {
		return 502, errorJSON(f)
	}
	return f.Status, errorJSON(f)
}

func errorJSON(f dialect.Failure) []byte {
	if raw := bytes.TrimSpace(f.Raw); jsonwalk.Valid(raw) && jsonwalk.KindOf(jsonwalk.Get(raw, "error")) == jsonwalk.KindObject {
		return raw
	}
	code := f.Status
	if code == 0 {
		code = 502
	}
	status := f.Type
	if status == "" {
		status = statusOf(code)
	}
	message := f.Message
	if message == "" {
		message = "the provider's stream was interrupted"
	}
	// Say what broke and why it was not healed (FIELD-REPORTS E6).
	if f.Cause != "" || f.Reason != "" {
		message += " (" + f.Cause + "; not recovered: " + f.Reason + ")"
	}
	b := strconv.AppendInt([]byte(`{"error":{"code":`), int64(code), 10)
	b = append(append(b, `,"message":`...), quote([]byte(message))...)
	b = append(append(b, `,"status":`...), quote([]byte(status))...)
	return append(b, "}}"...)
}

// CloseBlock implements dialect.Writer: parts are not closed.
func (grammar) CloseBlock(dst []byte, _ *turn.Snapshot, _ int) []byte { return dst }

// DropReasoning implements dialect.Writer: thoughts simply go on.
func (grammar) DropReasoning(dst []byte, _ *turn.Snapshot, _ int) []byte { return dst }

// Retract implements dialect.Writer: the dialect has no mode "events" (DESIGN §5).
func (grammar) Retract(dst []byte, _ *turn.Snapshot, _ int, _ string) []byte { return dst }
