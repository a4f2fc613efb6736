package gemini

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Rewrite implements dialect.Writer. What a chunk says is rendered from its deltas;
// everything else in it is passed as it came:
//
//	responseId, modelVersion, createTime   the head's, and none that it did not have
//	text                                   what is left of it
//	thoughtSignature                       with the part it came in, as long as that is left
//	functionCall and other parts           whole, or not at all
//	finishReason, finishMessage            only with a finish that is left
//	usageMetadata                          the whole turn's numbers
//	grounding, citations, logprobs         only with an extra that is left
//	continuationToken                      dropped: it belongs to another request
//	error that is null                     dropped
func (Dialect) Rewrite(dst []byte, _ *dialect.Request, e sse.Event, ds []turn.Delta, said *turn.Snapshot) []byte {
	data := bytes.TrimSpace(e.Data)
	if len(data) == 0 || data[0] == ':' {
		return dst
	}
	if said.Head == nil { // the event is the message's first
		first := *said
		first.Head = headOf(data, e.Raw)
		said = &first
	}
	w := rewriter{ds: ds, said: said, id: identify(said.Head)}
	c, err := readChunk(data)
	if err != nil || data[0] != '{' {
		if !w.left(turn.Opaque) {
			return dst
		}
		return frame(dst, said, e.Name, data)
	}
	if !w.speaks(&c) {
		return dst
	}
	return frame(dst, said, e.Name, w.chunk(data))
}

type rewriter struct {
	ds   []turn.Delta
	said *turn.Snapshot
	id   identity
}

// left reports whether a delta of that kind is left.
func (w *rewriter) left(kind turn.Kind) bool {
	for i := range w.ds {
		if w.ds[i].Kind == kind {
			return true
		}
	}
	return false
}

// speaks reports whether anything of the event is left for the client. A running
// total alone is worth an event only if that is what the event was.
func (w *rewriter) speaks(c *chunk) bool {
	pulses := true
	for i := range w.ds {
		switch d := &w.ds[i]; d.Kind {
		case turn.Pulse:
			continue
		case turn.Skip, turn.Close, turn.Head:
		case turn.Count:
			if c.candidates == nil && c.feedback == nil {
				return true
			}
		case turn.Open:
			if d.Of != turn.Prose && d.Of != turn.Reasoning || d.Raw != nil {
				return true
			}
		default:
			return true
		}
		pulses = false
	}
	if pulses {
		// It said nothing to begin with: a sign of life, unless the turn is over.
		return len(w.ds) > 0 && !w.said.Finished()
	}
	return w.sealed()
}

// sealed reports whether a close is left of a signature whose opening went into the
// block that the client already has.
func (w *rewriter) sealed() bool {
	for i := 1; i < len(w.ds); i++ {
		if w.ds[i].Kind == turn.Close && w.ds[i-1].Kind == turn.Skip && w.ds[i-1].Raw != nil {
			return true
		}
	}
	return false
}

func (w *rewriter) chunk(data []byte) []byte {
	return object(nil, data, func(dst, key, val []byte) ([]byte, bool) {
		if i := identityIndex(key); i >= 0 {
			return append(dst, w.id[i]...), w.id[i] != nil
		}
		switch string(key) {
		case "candidates":
			g := groups{w.ds}
			return array(dst, val, func(dst, raw []byte) []byte { return w.candidate(dst, raw, &g) }), true
		case "usageMetadata":
			return w.usage(dst, val), true
		case "error":
			return append(dst, val...), !jsonwalk.IsNull(val)
		}
		return append(dst, val...), true
	})
}

func (w *rewriter) usage(dst, val []byte) []byte {
	for i := len(w.ds) - 1; i >= 0; i-- {
		if d := &w.ds[i]; d.Kind == turn.Count {
			u := d.Usage
			u.Raw = val
			return appendUsage(dst, u)
		}
	}
	return append(dst, val...)
}

// groups are the deltas of an event by what they are about: one group for each part
// of a candidate and one for the candidate itself, in order, a pulse between two
// (see Decoder.Decode). Empty ones at the end are not there.
type groups struct{ rest []turn.Delta }

// next cuts off the next group; the usage of the event, which is in nobody's, may
// stand behind the last.
func (g *groups) next() []turn.Delta {
	group := g.rest
	g.rest = nil
	for i := range group {
		if group[i].Kind == turn.Pulse {
			group, g.rest = group[:i], group[i+1:]
			break
		}
	}
	for n := len(group); n > 0 && group[n-1].Kind == turn.Count; n-- {
		group = group[:n-1]
	}
	return group
}

func (w *rewriter) candidate(dst, raw []byte, g *groups) []byte {
	c, err := readCandidate(raw)
	if err != nil {
		return append(dst, raw...)
	}
	var parts []byte
	es := jsonwalk.Elements(c.parts)
	for p, ok := es.Next(); ok; p, ok = es.Next() {
		was := len(parts)
		if was > 0 {
			parts = append(parts, ',')
		}
		n := len(parts)
		if parts = appendPart(parts, p, g.next()); len(parts) == n {
			parts = parts[:was]
		}
	}
	if len(parts) == 0 {
		parts = textPart(nil) // a content without parts is none to some
	}
	extra, finish := w.behind(g.next(), c.index)
	var joint *turn.Joint
	if extra != nil {
		if joint = extra.Joint; joint != nil && extra.Keep {
			extra.Raw = object(nil, extra.Raw, func(dst, key, val []byte) ([]byte, bool) { return cited(dst, key, val, joint), true })
		}
	}
	return object(dst, raw, func(dst, key, val []byte) ([]byte, bool) {
		switch string(key) {
		case "content":
			if c.parts == nil {
				break
			}
			return object(dst, val, func(dst, key, val []byte) ([]byte, bool) {
				if string(key) == "parts" {
					return append(append(append(dst, '['), parts...), ']'), true
				}
				return append(dst, val...), true
			}), true
		case "finishReason":
			return append(dst, val...), finish || c.finish == nil && jsonwalk.IsNull(val)
		case "finishMessage":
			return append(dst, val...), finish || c.finish == nil
		case "continuationToken":
			return dst, false
		}
		if isExtra(key) && filled(val) {
			return cited(dst, key, val, joint), extra != nil
		}
		return append(dst, val...), true
	})
}

// behind reads what is left of the group that belongs to a candidate itself.
func (w *rewriter) behind(group []turn.Delta, choice int) (extra *turn.Delta, finish bool) {
	for i := range group {
		switch group[i].Kind {
		case turn.Extra:
			extra = &group[i]
		case turn.Finish:
			finish = choice >= len(w.said.Ends) || w.said.Ends[choice].Why == turn.Unfinished
		}
	}
	return extra, finish
}

// appendPart renders what is left of a part, nothing if that is nothing.
func appendPart(dst, raw []byte, group []turn.Delta) []byte {
	p, err := readPart(raw)
	if err != nil {
		return dst
	}
	switch p.kind {
	case inert:
		return append(dst, raw...)
	case answer, thought:
		return appendText(dst, raw, &p, group)
	}
	for i := range group {
		switch d := &group[i]; {
		case d.Kind == turn.Open && d.Of != turn.Prose && d.Of != turn.Reasoning,
			p.kind == calling && (d.Kind == turn.Extra || d.Kind == turn.Text || d.Kind == turn.Close && i == len(group)-1):
			return append(dst, raw...)
		}
	}
	return dst
}

func appendText(dst, raw []byte, p *part, group []turn.Delta) []byte {
	var text []byte
	signed := false
	for i := range group {
		switch d := &group[i]; {
		case d.Kind == turn.Text:
			text = append(text, d.Text...)
		case d.Kind == turn.Sign:
			signed = true
		case d.Kind == turn.Close && p.kind == answer:
			signed = signed || i == len(group)-1
		}
	}
	signed = signed && p.signature != nil
	if len(text) == 0 && !signed {
		return dst
	}
	if bytes.Equal(text, p.text) && (signed || p.signature == nil) {
		return append(dst, raw...)
	}
	return object(dst, raw, func(dst, key, val []byte) ([]byte, bool) {
		switch string(key) {
		case "text":
			return append(append(append(dst, '"'), text...), '"'), true
		case "thoughtSignature":
			return append(dst, val...), signed
		}
		return append(dst, val...), true
	})
}

// object copies the members of obj, each as edit renders its value; a member for
// which edit says false is left out. An unsound object is copied as it is.
func object(dst, obj []byte, edit func(dst, key, val []byte) ([]byte, bool)) []byte {
	start := len(dst)
	dst = append(dst, '{')
	m := jsonwalk.Members(obj)
	for key, val, ok := m.Next(); ok; key, val, ok = m.Next() {
		was := len(dst)
		if was > start+1 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), key...), `":`...)
		if dst, ok = edit(dst, key, val); !ok {
			dst = dst[:was]
		}
	}
	if m.Err() != nil {
		return append(dst[:start], obj...)
	}
	return append(dst, '}')
}

// array copies the elements of arr, each as edit renders it; one that edit renders as
// nothing is left out.
func array(dst, arr []byte, edit func(dst, val []byte) []byte) []byte {
	dst = append(dst, '[')
	e := jsonwalk.Elements(arr)
	start := len(dst)
	for val, ok := e.Next(); ok; val, ok = e.Next() {
		was := len(dst)
		if was > start {
			dst = append(dst, ',')
		}
		n := len(dst)
		if dst = edit(dst, val); len(dst) == n {
			dst = dst[:was] // left out
		}
	}
	return append(dst, ']')
}
