package openaichat

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Rewrite implements dialect.Writer. What a chunk says is rendered from its
// deltas; everything else in it is passed as it came:
//
//	id, object, created, model,
//	system_fingerprint, service_tier   the first head's
//	role                               dropped once the client has it
//	content, reasoning, refusal        the text that is left, if it changed
//	tool_calls                         client's index; id, type, name only when opening
//	finish_reason                      only with a finish that is left
//	usage                              only if the caller asked for it
//	logprobs, annotations, audio       only with an extra that is left
//	obfuscation, "error":null          dropped
func (h Wire) Rewrite(dst []byte, r *dialect.Request, e sse.Event, ds []turn.Delta, said *turn.Snapshot) []byte {
	w := rewriter{r: r, ds: ds, said: said, id: h.identify(said.Head), texts: h.Texts}
	if !w.speaks() {
		return dst
	}
	data := bytes.TrimSpace(e.Data)
	c, err := readChunk(data)
	if err != nil || c.choices == nil {
		if len(data) == 0 || data[0] == ':' {
			return dst // not for SDKs to see (FIELD-REPORTS B7)
		}
		return sse.Append(dst, string(e.Name), data)
	}
	return sse.Append(dst, string(e.Name), w.chunk(data))
}

type rewriter struct {
	r    *dialect.Request
	ds   []turn.Delta
	said *turn.Snapshot
	id   identity
	// texts: the wire has words in choices[].text.
	texts bool
}

// speaks reports whether anything of the event is left for the client.
func (w *rewriter) speaks() bool {
	for i := range w.ds {
		switch w.ds[i].Kind {
		case turn.Skip, turn.Close: // a close shows by what follows it
		case turn.Head:
			if w.said.Head == nil {
				return true
			}
		case turn.Count:
			if w.r.IncludeUsage {
				return true
			}
		case turn.Pulse:
			if !w.said.Finished() { // a null finish behind the finish would unsay it
				return true
			}
		case turn.Open:
			if k := w.ds[i].Of; k == turn.Call || k == turn.CustomCall || k == turn.Unknown {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// onlyCounts reports whether a usage record is all that is left of the event.
func (w *rewriter) onlyCounts() bool {
	counts := false
	for i := range w.ds {
		switch w.ds[i].Kind {
		case turn.Count:
			counts = true
		case turn.Skip, turn.Close, turn.Head:
		default:
			return false
		}
	}
	return counts
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
		dst = append(appendQuoted(dst, key), ':')
		if dst, ok = edit(dst, key, val); !ok {
			dst = dst[:was]
		}
	}
	if m.Err() != nil {
		return append(dst[:start], obj...)
	}
	return append(dst, '}')
}

// array copies the elements of arr, each as edit renders it.
func array(dst, arr []byte, edit func(dst, val []byte) []byte) []byte {
	dst = append(dst, '[')
	e := jsonwalk.Elements(arr)
	first := true
	for val, ok := e.Next(); ok; val, ok = e.Next() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = edit(dst, val)
	}
	return append(dst, ']')
}

func (w *rewriter) chunk(data []byte) []byte {
	var has [required]bool
	out := object(nil, data, func(dst, key, val []byte) ([]byte, bool) {
		if i := identityIndex(key); i >= 0 {
			if i < required {
				has[i] = true
			}
			if w.id.vals[i] != nil {
				val = w.id.vals[i]
			}
			return append(dst, val...), true
		}
		switch string(key) {
		case "choices":
			if w.onlyCounts() {
				// A host that repeats the finish on its usage chunk (OpenRouter)
				// would unsay it in accumulators that take the last.
				return append(dst, "[]"...), true
			}
			return array(dst, val, w.choice), true
		case "usage":
			return w.usage(dst, val)
		case "x_groq":
			return object(dst, val, func(dst, key, val []byte) ([]byte, bool) {
				if string(key) == "usage" {
					return w.usage(dst, val)
				}
				return append(dst, val...), true
			}), true
		case "obfuscation":
			return dst, false
		case "error":
			return append(dst, val...), truthy(val)
		}
		return append(dst, val...), true
	})
	if out[len(out)-1] != '}' {
		return out
	}
	for i, yes := range has {
		if v := w.id.value(i); !yes {
			out = appendMember(append(out[:len(out)-1], ','), identityKeys[i], v)
			out = append(out, '}')
		}
	}
	return out
}

// usage renders the record that is left. A caller who did not ask for usage gets
// none from a later attempt, where it was asked for on our account (WIRE 2.2); one
// who asked gets the null that stands in chunks without.
func (w *rewriter) usage(dst, val []byte) ([]byte, bool) {
	if !w.r.IncludeUsage {
		return dst, false
	}
	for i := len(w.ds) - 1; i >= 0; i-- {
		if d := &w.ds[i]; d.Kind == turn.Count {
			if jsonwalk.IsNull(val) {
				break
			}
			u := d.Usage
			u.Raw = val
			return appendUsage(dst, u), true
		}
	}
	return append(dst, "null"...), true
}

// mirrors reports whether body says once more what a delta says (Together).
func mirrors(body, delta []byte) bool {
	d, err := readDelta(delta)
	content, ok := jsonwalk.String(d.content)
	return err == nil && ok && bytes.Equal(body, content)
}

func (w *rewriter) choice(dst, raw []byte) []byte {
	c, err := readChoice(raw)
	if err != nil {
		return append(dst, raw...)
	}
	left := w.left(c.index)
	return object(dst, raw, func(dst, key, val []byte) ([]byte, bool) {
		switch string(key) {
		case "delta":
			return w.delta(dst, val, &left), true
		case "text":
			if body, ok := jsonwalk.String(val); ok && (w.texts || mirrors(body, c.delta)) {
				return appendText(dst, val, bytes.Equal(body, left.prose), left.prose), true
			}
		case "finish_reason":
			if left.finish != nil {
				return appendQuoted(dst, left.finish), true
			}
			return append(dst, "null"...), true
		case "native_finish_reason":
			if left.finish == nil {
				val = []byte("null")
			}
		case "logprobs":
			if !left.extra && hasLogprobs(val) {
				val = []byte("null")
			}
		case "usage":
			return w.usage(dst, val)
		case "error":
			return append(dst, val...), truthy(val)
		}
		return append(dst, val...), true
	})
}

func (w *rewriter) delta(dst, raw []byte, l *left) []byte {
	was, err := readDelta(raw)
	if err != nil {
		return append(dst, raw...)
	}
	prose, reasoning, sealed := words(&was)
	sameProse := bytes.Equal(prose, l.prose)
	sameReasoning := bytes.Equal(reasoning, l.reasoning)
	role := w.said.Head != nil && hasRole(w.said, l.choice)
	return object(dst, raw, func(dst, key, val []byte) ([]byte, bool) {
		if jsonwalk.IsNull(val) {
			return append(dst, val...), true
		}
		switch string(key) {
		case "role":
			return append(dst, val...), !role
		case "content":
			if jsonwalk.KindOf(val) == jsonwalk.KindArray && !(sameProse && sameReasoning) {
				return appendParts(dst, l), true
			}
			return appendText(dst, val, sameProse, l.prose), true
		case "reasoning_content", "reasoning":
			return appendText(dst, val, sameReasoning, l.reasoning), true
		case "reasoning_details":
			if sameReasoning && (l.extra || !sealed) {
				break
			}
			return appendDetails(dst, l.reasoning), true
		case "refusal":
			body, _ := jsonwalk.String(val)
			return appendText(dst, val, bytes.Equal(body, l.refusal), l.refusal), true
		case "tool_calls":
			if !filled(val) {
				break
			}
			return w.calls(dst, val, l.calls), len(l.calls) > 0
		case "function_call", "audio":
			return append(dst, val...), l.unknown
		case "annotations":
			if !filled(val) {
				break
			}
			return appendList(dst, l.notes), len(l.notes) > 0
		}
		return append(dst, val...), true
	})
}
