package openairesponses

import (
	"bytes"
	"fmt"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// collect picks what of the turn can be sent back, as input items, and returns its text, decoded, too.
//
//	kept       text with words in it, as a plain assistant message; the last one without trailing white space (D6)
//	           finished hosted items, byte for byte
//	           a finished reasoning item in front of its own finished item, both byte for byte
//	left out   any other reasoning: the API refuses an item "without its required following item" (D9); marked or
//	           unfinished reasoning, blank texts, unfinished calls, withdrawn blocks, half of a surrogate pair (C6)
//	refused    complete calls, unfinished hosted items, items of unknown type
func collect(said *turn.Snapshot, prefill bool) (items [][]byte, prose []byte, err error) {
	var c collector
	for n := range said.Blocks {
		b := &said.Blocks[n]
		if !b.Live() {
			continue
		}
		if b.Kind == turn.Prose {
			prose = append(prose, b.Plain()...)
		}
		if err := c.take(said, n); err != nil {
			return nil, nil, err
		}
	}
	c.flush()
	if len(c.out) == 0 {
		return nil, nil, ErrNothing
	}
	for i, e := range c.out {
		switch end := i == len(c.out)-1; {
		case e.raw != nil:
			items = append(items, e.raw)
		case end && prefill:
			items = append(items, inProgress(jsonwalk.TrimRight(e.words), e.phase))
		case end:
			items = append(items, message(jsonwalk.TrimRight(e.words), e.phase))
		default:
			items = append(items, message(e.words, e.phase))
		}
	}
	return items, prose, nil
}

// entry is one input item: raw, or the words of a plain message.
type entry struct{ raw, words, phase []byte }

type collector struct {
	out     []entry
	now     entry  // the message that is being gathered
	thought []byte // a finished reasoning item that waits for its own
}

func (c *collector) flush() {
	if len(bytes.TrimSpace(jsonwalk.Unescape(nil, c.now.words))) > 0 {
		c.out = append(c.out, c.now)
	}
	c.now, c.thought = entry{}, nil
}

// keep adds a finished item, behind its reasoning.
func (c *collector) keep(raw []byte) {
	pair := c.thought
	c.flush()
	if pair != nil {
		c.out = append(c.out, entry{raw: pair})
	}
	c.out = append(c.out, entry{raw: raw})
}

func (c *collector) take(said *turn.Snapshot, n int) error {
	b := &said.Blocks[n]
	switch b.Kind {
	case turn.Prose:
		c.prose(said, n)
	case turn.Reasoning:
		if first(said, n) != n {
			return nil
		}
		c.flush()
		if b.Closed && len(b.Signature) > 0 && !turn.DropMarked(b.Signature) && b.Stage&whole != 0 {
			c.thought = b.Raw
		}
	case turn.Hosted, turn.HostedResult:
		if !b.Closed || b.Kind == turn.Hosted && !answered(said, n) {
			return fmt.Errorf("%w: %s", ErrHostedTool, b.Name)
		}
		c.keep(b.Raw)
	case turn.Call, turn.CustomCall:
		if b.Complete() {
			return fmt.Errorf("%w: %s", ErrCall, b.Name)
		}
	case turn.Refusal:
		if len(b.Text) > 0 {
			return fmt.Errorf("%w: refusal", ErrUnknown)
		}
	default:
		return fmt.Errorf("%w: %s", ErrUnknown, b.Name)
	}
	return nil
}

func (c *collector) prose(said *turn.Snapshot, n int) {
	b, f := &said.Blocks[n], first(said, n)
	switch raw := finishedItem(said, n); {
	case f == n && raw != nil && c.thought != nil:
		c.keep(raw)
		return
	case f == n:
		c.flush()
		c.now.phase = jsonwalk.Get(b.Raw, "phase")
	case raw != nil && len(c.out) > 0 && string(c.out[len(c.out)-1].raw) == string(raw):
		return // a part of what was kept whole
	}
	c.now.words = append(c.now.words, jsonwalk.Paired(b.Text)...)
}

// message is an assistant message of a request. Its text goes without ids: without its reasoning item, an item under its
// id is refused.
func message(words, phase []byte) []byte {
	m := append([]byte(`{"role":"assistant","content":`), quoted(words)...)
	if len(phase) > 0 && !jsonwalk.IsNull(phase) {
		m = append(append(m, `,"phase":`...), phase...)
	}
	return append(m, '}')
}

// inProgress is a message that the model is to go on with.
func inProgress(words, phase []byte) []byte {
	m := append([]byte(`{"type":"message","id":"msg_unfinished","role":"assistant","status":"in_progress","content":[{"type":"output_text","text":`), quoted(words)...)
	m = append(m, `,"annotations":[]}]`...)
	if len(phase) > 0 && !jsonwalk.IsNull(phase) {
		m = append(append(m, `,"phase":`...), phase...)
	}
	return append(m, '}')
}

// finishedItem is an item as its provider summed it up, nil for one that it did not.
func finishedItem(said *turn.Snapshot, n int) []byte {
	for m := range said.Blocks {
		if b := &said.Blocks[m]; b.Index == said.Blocks[n].Index && (!b.Closed || b.Withdrawn) {
			return nil
		}
	}
	if b := &said.Blocks[first(said, n)]; b.Stage&whole != 0 {
		return b.Raw
	}
	return nil
}

// answered reports whether the output of hosted call n is there.
func answered(said *turn.Snapshot, n int) bool {
	for m := n + 1; m < len(said.Blocks); m++ {
		if b := &said.Blocks[m]; b.Kind == turn.HostedResult && b.Closed && text(jsonwalk.Get(b.Raw, "call_id")) == text(jsonwalk.Get(said.Blocks[n].Raw, "call_id")) {
			return true
		}
	}
	return false
}
