package openairesponses

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

// Finish renders an honest end: what is open and whole is closed, then response.completed, or response.incomplete for a
// limit or a filter, with the whole output. An open call that is not complete stays open and is no part of the output; so
// is an item at the provider that did not end. Open reasoning is closed under the mark.
//
// The finish is the terminator, and usage rides on it: once it was sent, nothing is left to render.
func (Dialect) Finish(dst []byte, _ *dialect.Request, said *turn.Snapshot, e dialect.Ending) []byte {
	if e.FinishSent {
		return dst
	}
	w := wire{dst: dst, said: said}
	for n := range said.Blocks {
		switch b := &said.Blocks[n]; {
		case b.Withdrawn || finished(said, n):
		case b.Kind == turn.Reasoning:
			w.drop(n)
		case b.IsCall() && b.Complete():
			w.closeCall(n)
			b.Closed = true
		case b.Kind == turn.Prose || b.Kind == turn.Refusal:
			w.closePart(n)
			w.closeMessage(n)
			b.Closed = true
		case foreign(b):
			w.closeMessage(n)
			b.Closed = true
		}
	}
	typ, reason := outcome(e)
	set := []field{{"status", quote(typ[len("response."):])}}
	if reason != "" {
		set = append(set, field{"incomplete_details", object([]field{{"reason", quote(reason)}})})
	}
	if usage := usageOf(e.Usage.Raw, e.Usage); usage != nil {
		set = append(set, field{"usage", usage})
	}
	data := append(w.begin(typ), `,"response":`...)
	w.end(typ, append(data, w.responseOf(nil, set...)...))
	return w.dst
}

// outcome is the terminal event of an ending and the reason it gives.
func outcome(e dialect.Ending) (typ, reason string) {
	switch {
	case e.Why == turn.Length:
		reason = "max_output_tokens"
	case e.Why == turn.Filtered:
		reason = "content_filter"
	case e.Why == turn.OtherEnd && e.Reason != "completed":
		reason = e.Reason
	}
	if reason == "" {
		return "response.completed", ""
	}
	if e.Reason != "" && e.Reason != "completed" {
		reason = e.Reason
	}
	return "response.incomplete", reason
}

func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
