package openaichat

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// left is what relay left of one choice.
type left struct {
	choice                    int
	prose, reasoning, refusal []byte
	calls                     []ring
	extra, unknown            bool
	notes                     [][]byte // annotations
	finish                    []byte   // nil: none
}

// ring is what is left of one call in this chunk.
type ring struct {
	block int
	open  *turn.Delta // nil: goes on
	index int
	kind  turn.BlockKind
	args  []byte
	late  bool // fragments that were not understood; they pass as they are
}

func (w *rewriter) left(choice int) left {
	l := left{choice: choice}
	for i := range w.ds {
		d := &w.ds[i]
		if d.Choice != choice {
			continue
		}
		switch d.Kind {
		case turn.Finish:
			if choice >= len(w.said.Ends) || w.said.Ends[choice].Why == turn.Unfinished {
				l.finish = d.Text
			}
		case turn.Open, turn.Text, turn.Extra:
			w.add(&l, d)
		}
	}
	return l
}

func (w *rewriter) add(l *left, d *turn.Delta) {
	kind, index := w.block(d)
	if d.Kind == turn.Extra && d.Keep && !isBeside(d.Raw) {
		w.cite(l, d)
		l.extra = l.extra || len(l.notes) > 0
		return
	}
	switch kind {
	case turn.Prose:
		l.prose = append(l.prose, d.Text...)
		l.extra = l.extra || d.Kind == turn.Extra
	case turn.Reasoning:
		l.reasoning = append(l.reasoning, d.Text...)
		l.extra = l.extra || d.Kind == turn.Extra
	case turn.Refusal:
		l.refusal = append(l.refusal, d.Text...)
		l.extra = l.extra || d.Kind == turn.Extra
	case turn.Unknown:
		l.unknown = true
		l.extra = true
	case turn.Call, turn.CustomCall:
		if n := len(l.calls); n == 0 || l.calls[n-1].block != d.Block {
			l.calls = append(l.calls, ring{block: d.Block, index: index, kind: kind})
		}
		r := &l.calls[len(l.calls)-1]
		switch d.Kind {
		case turn.Open:
			r.open = d
		case turn.Extra:
			r.late = true
		}
		r.args = append(r.args, d.Text...)
	}
}

// block finds the kind and the client's index of the block that d belongs to.
func (w *rewriter) block(d *turn.Delta) (turn.BlockKind, int) {
	for i := range w.ds {
		if o := &w.ds[i]; o.Kind == turn.Open && o.Block == d.Block {
			return o.Of, o.Index
		}
	}
	if d.Block >= 0 && d.Block < len(w.said.Blocks) {
		b := &w.said.Blocks[d.Block]
		return b.Kind, b.Index
	}
	return 0, 0
}

// words collects what a delta said before relay edited it, read as the decoder
// reads it.
func words(s *spokenDelta) (prose, reasoning []byte, sealed bool) {
	thought, _ := s.thought()
	reasoning = bytes.Clone(thought)
	e := jsonwalk.Elements(s.details)
	for raw, ok := e.Next(); ok; raw, ok = e.Next() {
		body, seal := readDetail(raw)
		sealed = sealed || seal
		if len(thought) == 0 {
			reasoning = append(reasoning, body...)
		}
	}
	if body, ok := jsonwalk.String(s.content); ok {
		return bytes.Clone(body), reasoning, sealed
	}
	e = jsonwalk.Elements(s.content)
	for raw, ok := e.Next(); ok; raw, ok = e.Next() {
		switch p := readPart(raw); p.kind {
		case turn.Prose:
			prose = append(prose, p.body...)
		case turn.Reasoning:
			reasoning = append(reasoning, p.body...)
			in := jsonwalk.Elements(p.list)
			for inner, ok := in.Next(); ok; inner, ok = in.Next() {
				reasoning = append(reasoning, readPart(inner).body...)
			}
		}
	}
	return prose, reasoning, sealed
}

// appendText renders a string member whose text is now body.
func appendText(dst, val []byte, same bool, body []byte) []byte {
	if old, ok := jsonwalk.String(val); same || !ok || len(old) == 0 {
		return append(dst, val...)
	}
	return appendQuoted(dst, body)
}

// appendParts renders a list of content parts anew (Mistral).
func appendParts(dst []byte, l *left) []byte {
	dst = append(dst, '[')
	if len(l.reasoning) > 0 {
		dst = append(dst, `{"type":"thinking","thinking":[{"type":"text","text":`...)
		dst = append(appendQuoted(dst, l.reasoning), "}]}"...)
	}
	if len(l.prose) > 0 {
		if len(l.reasoning) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"type":"text","text":`...)
		dst = append(appendQuoted(dst, l.prose), '}')
	}
	return append(dst, ']')
}

func appendDetails(dst, body []byte) []byte {
	if len(body) == 0 {
		return append(dst, "[]"...)
	}
	dst = append(dst, `[{"type":"reasoning.text","text":`...)
	return append(appendQuoted(dst, body), "}]"...)
}
