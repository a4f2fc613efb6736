package bedrock

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Emit renders block n of said, whole and closed. A call that is not complete, and reasoning that was not signed, render
// nothing.
func (Converse) Emit(dst []byte, _ *dialect.Request, said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[n]
	switch {
	case b.IsCall() && !b.Complete():
		return dst
	case b.Kind == turn.Reasoning && (!b.Closed || len(b.Signature) == 0):
		return dst
	}
	return blockStop(opened(dst, b), b.Index)
}

// Replay renders messageStart as the provider sent it, and the blocks behind it.
func (Converse) Replay(dst []byte, _ *dialect.Request, said *turn.Snapshot) []byte {
	head := said.Head
	if head == nil {
		head = []byte(`{"role":"assistant"}`)
	}
	dst = event(dst, "messageStart", head)
	for n := range said.Blocks {
		b := &said.Blocks[n]
		if !b.Live() {
			continue
		}
		if dst = opened(dst, b); b.Closed {
			dst = blockStop(dst, b.Index)
		}
	}
	return dst
}

// opened renders a block up to where it stands: its start, where it has one, and what was said in it, as one delta.
func opened(dst []byte, b *turn.Block) []byte {
	switch b.Kind {
	case turn.Prose:
		dst = blockDelta(dst, b.Index, textDelta(b.Kind, b.Text))
	case turn.Reasoning:
		if dst = blockDelta(dst, b.Index, textDelta(b.Kind, b.Text)); b.Closed && len(b.Signature) > 0 {
			dst = blockDelta(dst, b.Index, signature(b.Signature))
		}
	case turn.Redacted:
		dst = blockDelta(dst, b.Index, b.Raw)
	case turn.Call, turn.Hosted:
		if dst = blockStart(dst, b); len(b.Text) > 0 {
			dst = blockDelta(dst, b.Index, textDelta(b.Kind, b.Text))
		}
	default:
		if b.Raw != nil {
			dst = blockStart(dst, b)
		}
	}
	for _, note := range jsonwalk.All(append(append([]byte{'['}, b.Notes...), ']')) {
		dst = blockDelta(dst, b.Index, note)
	}
	return dst
}

// CloseBlock renders the stop of block n. An unfinished call stays open, since the stop would make it runnable; reasoning
// that the provider did not close gets the mark, since the stop would pass for a signature's.
func (d Converse) CloseBlock(dst []byte, said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[n]
	switch {
	case b.IsCall() && !b.Complete():
		return dst
	case b.Kind == turn.Reasoning && !b.Closed:
		return d.DropReasoning(dst, said, n)
	}
	return blockStop(dst, b.Index)
}

// DropReasoning closes the open reasoning block n under the mark. Nothing is rendered for any other block.
func (Converse) DropReasoning(dst []byte, said *turn.Snapshot, n int) []byte {
	b := &said.Blocks[n]
	if b.Kind != turn.Reasoning || b.Closed {
		return dst
	}
	return blockStop(blockDelta(dst, b.Index, signature([]byte(turn.DropMark))), b.Index)
}

// Finish renders an honest end: open blocks are closed where that invents nothing, then messageStop, then metadata with
// the usage. Where the provider finished without a record there is no metadata: it is optional (WIRE 1.7).
func (d Converse) Finish(dst []byte, _ *dialect.Request, said *turn.Snapshot, e dialect.Ending) []byte {
	if !e.FinishSent {
		for n := range said.Blocks {
			switch b := &said.Blocks[n]; {
			case b.Closed || !b.Live():
			case b.Kind == turn.Hosted || b.Kind == turn.Unknown:
			default:
				dst = d.CloseBlock(dst, said, n)
			}
		}
		reason := e.Reason
		if reason == "" {
			reason = reasonOf(e.Why, e.Stop)
		}
		stop := append([]byte(`{"stopReason":`), quote([]byte(reason))...)
		dst = event(dst, "messageStop", append(stop, '}'))
	}
	if e.UsageSent || !e.Usage.Known {
		return dst
	}
	// Readers take both members for granted. How long the turn took is not ours to know; the model says zero for that.
	data := append([]byte(`{"usage":`), appendUsage(e.Usage.Raw, e.Usage)...)
	return event(dst, "metadata", append(data, `,"metrics":{"latencyMs":0}}`...))
}

// appendUsage is the record raw, or a new one, with the numbers of u. The total moves along with its parts: it counts
// cached tokens, too.
func appendUsage(raw []byte, u turn.Usage) []byte {
	if jsonwalk.KindOf(raw) != jsonwalk.KindObject {
		raw = []byte(`{"inputTokens":0,"outputTokens":0,"totalTokens":0}`)
	}
	num := func(key string) int64 { n, _ := jsonwalk.Int(jsonwalk.Get(raw, key)); return n }
	total := num("totalTokens") + u.Input - num("inputTokens") + u.Output - num("outputTokens")
	for _, m := range [...]struct {
		key string
		n   int64
	}{{"inputTokens", u.Input}, {"outputTokens", u.Output}, {"totalTokens", total}} {
		raw = jsonwalk.SetMember(nil, raw, m.key, strconv.AppendInt(nil, m.n, 10))
	}
	return raw
}

func indexed(index int) []byte {
	return strconv.AppendInt([]byte(`{"contentBlockIndex":`), int64(index), 10)
}

func blockStart(dst []byte, b *turn.Block) []byte {
	start := b.Raw
	if start == nil {
		start = append([]byte(`{"toolUse":{"toolUseId":`), quote([]byte(b.ID))...)
		start = append(append(start, `,"name":`...), quote([]byte(b.Name))...)
		start = append(start, "}}"...)
	}
	data := append(append(indexed(b.Index), `,"start":`...), start...)
	return event(dst, "contentBlockStart", append(data, '}'))
}

func blockDelta(dst []byte, index int, delta []byte) []byte {
	data := append(append(indexed(index), `,"delta":`...), delta...)
	return event(dst, "contentBlockDelta", append(data, '}'))
}

func blockStop(dst []byte, index int) []byte {
	return event(dst, "contentBlockStop", append(indexed(index), '}'))
}

// textDelta takes the text as an escaped body.
func textDelta(kind turn.BlockKind, body []byte) []byte {
	head, tail := `{"text":"`, `"}`
	switch kind {
	case turn.Reasoning:
		head, tail = `{"reasoningContent":{"text":"`, `"}}`
	case turn.Call, turn.Hosted:
		head, tail = `{"toolUse":{"input":"`, `"}}`
	}
	return append(append([]byte(head), body...), tail...)
}

func signature(body []byte) []byte {
	return append(append([]byte(`{"reasoningContent":{"signature":"`), body...), `"}}`...)
}
