package interactions

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Rewrite implements dialect.Writer. An event keeps its bytes but for its step's
// index, the text that was cut, the interaction's id and the usage. event_id and
// continuation tokens are dropped: they are cursors into another generation.
func (Dialect) Rewrite(dst []byte, _ *dialect.Request, e sse.Event, ds []turn.Delta, said *turn.Snapshot) []byte {
	data := bytes.TrimSpace(e.Data)
	w := rewriter{e: e, data: data, ds: ds, said: said}
	switch {
	case w.left(turn.Terminal):
		return append(dst, "event: done\ndata: [DONE]\n\n"...)
	case len(data) == 0 || data[0] == ':':
		return dst
	}
	f, err := readFrame(data)
	if err != nil {
		if w.left(turn.Opaque) {
			return sse.Append(dst, string(e.Name), data)
		}
		return dst
	}
	if f.typ == nil {
		f.typ = e.Name
	}
	w.f = f
	return w.event(dst)
}

type rewriter struct {
	e       sse.Event
	f       frame
	data    []byte
	ds      []turn.Delta
	said    *turn.Snapshot
	patches []jsonwalk.Patch
}

func (w *rewriter) left(kind turn.Kind) bool {
	return slices.ContainsFunc(w.ds, func(d turn.Delta) bool { return d.Kind == kind })
}

func (w *rewriter) event(dst []byte) []byte {
	for i := range w.ds {
		d := &w.ds[i]
		switch d.Kind {
		case turn.Open:
			w.reindex(d.Index)
			return w.render(dst)
		case turn.Text, turn.Sign:
			index, kind := w.place(d.Block)
			if string(w.f.typ) != "step.delta" { // of an opening whose block goes on in an older one
				return stepDelta(dst, index, d.Kind, kind, d.Text)
			}
			w.reindex(index)
			if p, err := readDelta(w.f.delta); err == nil && p.text != nil {
				w.patch(p.text, append(append([]byte{'"'}, d.Text...), '"'))
			}
			return w.render(dst)
		case turn.Extra, turn.Close:
			if d.Keep && !w.cite(d) {
				d.Kind = turn.Skip
				continue
			}
			index, _ := w.place(d.Block)
			w.reindex(index)
			return w.render(dst)
		case turn.Head:
			if w.said.Head == nil {
				return sse.Append(dst, string(w.e.Name), w.data)
			}
		case turn.Finish, turn.Opaque, turn.Fault:
			return w.render(dst)
		case turn.Pulse:
			if len(w.ds) == 1 && w.f.step == nil && w.f.delta == nil && w.f.interaction == nil && !w.said.Finished() {
				return w.render(dst)
			}
		case turn.Skip, turn.Count, turn.Terminal:
		}
	}
	if w.left(turn.Count) && string(w.f.typ) == "interaction.completed" && w.said.Finished() && !w.said.Terminated && !w.skipped() {
		return w.render(dst) // its finish came with a status before it
	}
	return dst
}

func (w *rewriter) skipped() bool { return w.left(turn.Skip) }

// place returns the client's index and the kind of a block.
func (w *rewriter) place(block int) (int, turn.BlockKind) {
	for i := range w.ds {
		if d := &w.ds[i]; d.Kind == turn.Open && d.Block == block {
			return d.Index, d.Of
		}
	}
	if block >= 0 && block < len(w.said.Blocks) {
		return w.said.Blocks[block].Index, w.said.Blocks[block].Kind
	}
	return max(block, 0), turn.Prose
}

func (w *rewriter) patch(old, with []byte) {
	at := jsonwalk.Offset(w.data, old)
	w.patches = append(w.patches, jsonwalk.Patch{At: at, End: at + len(old), With: with})
}

func (w *rewriter) reindex(index int) {
	if w.f.index != nil {
		w.patch(w.f.index, strconv.AppendInt(nil, int64(index), 10))
	}
}

func (w *rewriter) render(dst []byte) []byte {
	first := jsonwalk.Get(w.said.Head, "interaction")
	if id := jsonwalk.Get(first, "id"); id != nil {
		for _, old := range [...][]byte{jsonwalk.Get(w.f.interaction, "id"), jsonwalk.Get(w.data, "interaction_id")} {
			if old != nil {
				w.patch(old, id)
			}
		}
	}
	if old, model := jsonwalk.Get(w.f.interaction, "model"), jsonwalk.Get(first, "model"); old != nil && model != nil {
		w.patch(old, model)
	}
	if total := w.f.total(); total != nil {
		for i := range w.ds {
			if d := &w.ds[i]; d.Kind == turn.Count {
				u := d.Usage
				u.Raw = total
				w.patch(total, appendUsage(nil, u))
			}
		}
	}
	slices.SortStableFunc(w.patches, func(a, b jsonwalk.Patch) int { return cmp.Compare(a.At, b.At) })
	data := jsonwalk.Apply(nil, w.data, w.patches)
	for _, key := range [...]string{"event_id", "continuation_token"} {
		if jsonwalk.Get(data, key) != nil {
			data = jsonwalk.DeleteMember(nil, data, key)
		}
	}
	if i := jsonwalk.Get(data, "interaction"); jsonwalk.Get(i, "continuation_token") != nil {
		data = jsonwalk.SetMember(nil, data, "interaction", jsonwalk.DeleteMember(nil, i, "continuation_token"))
	}
	return sse.Append(dst, string(w.e.Name), data)
}
