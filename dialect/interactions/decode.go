package interactions

import (
	"bytes"
	"slices"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Decoder decodes one attempt. The zero value is ready.
type Decoder struct {
	begun, finished bool
	called          bool
	steps           []wireStep
	kept            dialect.Keeping
	track
}

// wireStep is a step of this attempt; its ordinal is its place.
type wireStep struct {
	index int
	kind  turn.BlockKind
	open  bool
}

// Decode implements dialect.Decoder.
func (d *Decoder) Decode(dst []turn.Delta, e sse.Event) ([]turn.Delta, error) {
	data := bytes.TrimSpace(e.Data)
	switch {
	case string(data) == "[DONE]", string(e.Name) == "done":
		return append(dst, turn.Delta{Kind: turn.Terminal}), nil
	case len(data) == 0, data[0] == ':':
		return append(dst, turn.Delta{Kind: turn.Pulse}), nil
	case data[0] != '{':
		if !jsonwalk.Valid(data) {
			return dst, ErrNotJSON
		}
		return append(dst, turn.Delta{Kind: turn.Opaque, Block: -1, Raw: data}), nil
	}
	f, err := readFrame(data)
	if err != nil {
		return dst, err
	}
	if f.typ == nil {
		f.typ = e.Name
	}
	if d.strayed {
		return dst, ErrReplay
	}
	out, err := d.event(dst, &f, data)
	if err != nil {
		return dst, err
	}
	d.reached(&f, data)
	if u, ok := readUsage(f.total()); ok {
		out = append(out, turn.Delta{Kind: turn.Count, Usage: u})
	}
	if len(out) == len(dst) {
		out = append(out, turn.Delta{Kind: turn.Pulse})
	}
	return out, nil
}

func (d *Decoder) event(dst []turn.Delta, f *frame, data []byte) ([]turn.Delta, error) {
	switch string(f.typ) {
	case "step.delta":
		return d.delta(dst, f, data)
	case "step.start":
		return d.start(dst, f)
	case "step.stop":
		if n, ok := d.find(f.index); ok && d.steps[n].open {
			d.steps[n].open = false
			dst = append(dst, turn.Delta{Kind: turn.Close, Block: n})
		}
		return dst, nil
	case "interaction.created":
		if !d.begun {
			d.begun = true
			d.grasp(f.interaction)
			dst = append(dst, turn.Delta{Kind: turn.Head, Raw: data})
		}
		return dst, nil
	case "interaction.completed":
		status, _ := jsonwalk.String(jsonwalk.Get(f.interaction, "status"))
		return d.finish(dst, status), nil
	case "interaction.status_update":
		return d.finish(dst, f.status), nil
	case "error":
		return append(dst, turn.Delta{Kind: turn.Fault, Fault: readFault(f.fault), Raw: data}), nil
	}
	if f.fault != nil {
		return append(dst, turn.Delta{Kind: turn.Fault, Fault: readFault(f.fault), Raw: data}), nil
	}
	return append(dst, turn.Delta{Kind: turn.Opaque, Block: -1, Raw: data}), nil
}

// finish reads a status. One that is not the end of anything says nothing.
func (d *Decoder) finish(dst []turn.Delta, status []byte) []turn.Delta {
	why := whyOf(status, d.called)
	if why == turn.Unfinished || d.finished {
		return dst
	}
	if why == turn.Broken {
		d.id = "" // nothing more will come of it
	}
	d.finished = true
	return append(dst, turn.Delta{Kind: turn.Finish, Why: why, Text: status})
}

func (d *Decoder) find(raw []byte) (ordinal int, ok bool) {
	index, ok := wireIndex(raw)
	for n := len(d.steps) - 1; ok && n >= 0; n-- {
		if d.steps[n].index == index {
			return n, true
		}
	}
	return 0, false
}

func (d *Decoder) start(dst []turn.Delta, f *frame) ([]turn.Delta, error) {
	index, ok := wireIndex(f.index)
	if !ok {
		return dst, ErrIndex
	}
	if n, used := d.find(f.index); used && d.steps[n].open {
		return dst, ErrReopened
	}
	s := readStep(f.step)
	n := len(d.steps)
	d.steps = append(d.steps, wireStep{index: index, kind: s.kind, open: true})
	open := turn.Delta{Kind: turn.Open, Of: s.kind, Block: n, Index: index, ID: s.id, Name: s.name}
	if s.kind != turn.Prose && s.kind != turn.Reasoning {
		open.Raw = f.step
	}
	d.called = d.called || s.kind == turn.Call
	dst = append(dst, open)
	if s.kind == turn.Call && s.args != nil {
		dst = append(dst, turn.Delta{Kind: turn.Text, Block: n, Text: jsonwalk.Escape(nil, s.args)})
	}
	return dst, nil
}

func (d *Decoder) delta(dst []turn.Delta, f *frame, data []byte) ([]turn.Delta, error) {
	n, ok := d.find(f.index)
	if !ok {
		return dst, ErrNoStep
	}
	p, err := readDelta(f.delta)
	if err != nil {
		return dst, err
	}
	body, isText := jsonwalk.String(p.text)
	switch {
	case !p.fits(d.steps[n].kind) || !isText && p.text != nil || !d.steps[n].open:
		// An annotation, a picture, what a hosted tool answered.
		x := turn.Delta{Kind: turn.Extra, Block: n, Raw: data}
		if notes := jsonwalk.Get(f.delta, "annotations"); filled(notes) {
			d.kept.Keep(&x, bytes.TrimSpace(notes[1:len(notes)-1]))
		} else {
			d.kept.Keep(&x, slices.Concat([]byte{'['}, f.delta, []byte{']'})) // no annotation is an array
		}
		return append(dst, x), nil
	case len(body) == 0:
		return dst, nil
	case string(p.typ) == "thought_signature":
		return append(dst, turn.Delta{Kind: turn.Sign, Block: n, Text: body}), nil
	}
	return append(dst, turn.Delta{Kind: turn.Text, Block: n, Text: body}), nil
}
