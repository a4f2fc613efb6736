package openaichat

import (
	"bytes"
	"strconv"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// calls renders tool_calls. While each element that says something has its ring,
// elements are edited in place and keep their unknown members; when relay took
// calls out, those left are rendered anew.
func (w *rewriter) calls(dst, val []byte, rings []ring) []byte {
	speaking := 0
	e := jsonwalk.Elements(val)
	for raw, ok := e.Next(); ok; raw, ok = e.Next() {
		if f, err := readFragment(raw); err == nil && len(f.id)+len(f.name)+len(f.words()) > 0 {
			speaking++
		}
	}
	if speaking != len(rings) {
		dst = append(dst, '[')
		for i := range rings {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = rings[i].render(dst)
		}
		return append(dst, ']')
	}
	next := 0
	return array(dst, val, func(dst, raw []byte) []byte {
		f, err := readFragment(raw)
		if err != nil || len(f.id)+len(f.name)+len(f.words()) == 0 || next == len(rings) {
			return append(dst, raw...)
		}
		next++
		return rings[next-1].edit(dst, raw, &f)
	})
}

func (r *ring) edit(dst, raw []byte, f *fragment) []byte {
	indexed := false
	start := len(dst)
	dst = object(dst, raw, func(dst, key, val []byte) ([]byte, bool) {
		switch string(key) {
		case "index":
			indexed = true
			return strconv.AppendInt(dst, int64(r.index), 10), true
		case "id", "type":
			return append(dst, val...), r.open != nil
		case "function", "custom":
			return object(dst, val, func(dst, key, val []byte) ([]byte, bool) {
				switch string(key) {
				case "name":
					return append(dst, val...), r.open != nil
				case "arguments", "input":
					if !r.late && !bytes.Equal(f.words(), r.args) {
						return appendQuoted(dst, r.args), true
					}
				}
				return append(dst, val...), true
			}), true
		}
		return append(dst, val...), true
	})
	if indexed {
		return dst
	}
	body := bytes.Clone(dst[start+1:])
	dst = append(dst[:start], `{"index":`...)
	dst = strconv.AppendInt(dst, int64(r.index), 10)
	if len(body) > 1 {
		dst = append(dst, ',')
	}
	return append(dst, body...)
}

// render renders a ring without its element.
func (r *ring) render(dst []byte) []byte {
	typ, input := "function", "arguments"
	if r.kind == turn.CustomCall {
		typ, input = "custom", "input"
	}
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(r.index), 10)
	if r.open != nil {
		dst = append(dst, `,"id":`...)
		dst = appendQuoted(dst, r.open.ID)
		dst = append(dst, `,"type":"`+typ+`"`...)
	}
	dst = append(dst, `,"`+typ+`":{`...)
	if r.open != nil {
		dst = append(dst, `"name":`...)
		dst = append(appendQuoted(dst, r.open.Name), ',')
	}
	dst = append(dst, `"`+input+`":`...)
	dst = appendQuoted(dst, r.args)
	return append(dst, "}}"...)
}
