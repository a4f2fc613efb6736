package anthropic

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Fail renders `event: error`, the provider's own data when there is any. Without the top-level type some SDKs would
// read past it and end normally (FIELD-REPORTS E2).
//
// Blocks in the middle of text, and blocks that came whole, are closed first (D2). An open call or thinking block is
// not: closed, it would be taken for a finished one (D3, D7), and the error says that the message has no end.
func (Dialect) Fail(dst []byte, said *turn.Snapshot, f dialect.Failure) []byte {
	if said != nil {
		for n := range said.Blocks {
			if b := &said.Blocks[n]; !b.Closed && b.Live() && !b.IsCall() && whole(b) {
				dst = blockStop(dst, b.Index)
			}
		}
	}
	if len(f.Raw) > 0 {
		return sse.Append(dst, "error", f.Raw)
	}
	_, data := fault(f)
	return sse.Append(dst, "error", data)
}

// ErrorBody is the protocol's error body, which has the same shape as the event, and its status. A provider's own
// error data is handed on as it is.
func (Dialect) ErrorBody(f dialect.Failure) (status int, body []byte) {
	status, body = fault(f)
	if len(f.Raw) > 0 && jsonwalk.Valid(f.Raw) {
		body = append([]byte(nil), f.Raw...)
	}
	return status, body
}

func fault(f dialect.Failure) (status int, data []byte) {
	typ := f.Type
	if status = f.Status; status == 0 {
		if status = statusOf(typ); status == 0 {
			status = 502
		}
	}
	if typ == "" {
		typ = typeOf(status)
	}
	data = append([]byte(`{"type":"error","error":{"type":"`), jsonwalk.Escape(nil, []byte(typ))...)
	data = append(append(data, `","message":"`...), jsonwalk.Escape(nil, []byte(explain(f)))...)
	return status, append(data, `"}}`...)
}

// explain says what happened and why it was not healed (FIELD-REPORTS E6), behind the provider's own words.
func explain(f dialect.Failure) string {
	msg := f.Message
	if msg == "" {
		msg = "the provider's stream was interrupted"
	}
	var why string
	switch {
	case f.Cause != "" && f.Reason != "":
		why = "cause: " + f.Cause + ", not recovered: " + f.Reason
	case f.Cause != "":
		why = "cause: " + f.Cause
	case f.Reason != "":
		why = "not recovered: " + f.Reason
	default:
		return msg
	}
	return msg + " (" + why + ")"
}
