package openairesponses

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// apply returns a copy of src with the patches applied in the order of their places.
func apply(src []byte, patches []jsonwalk.Patch) []byte {
	slices.SortStableFunc(patches, func(a, b jsonwalk.Patch) int { return cmp.Compare(a.At, b.At) })
	return jsonwalk.Apply(nil, src, patches)
}

func patch(data, value, with []byte) jsonwalk.Patch {
	at := jsonwalk.Offset(data, value)
	return jsonwalk.Patch{At: at, End: at + len(value), With: with}
}

// cut returns the patches of body that take the dropped elements out of an array, each run with the comma in front of
// it, or behind it where nothing is kept in front. elements were cut from body, in order.
func cut(body []byte, elements [][]byte, drop func(int) bool) (patches []jsonwalk.Patch) {
	start := func(i int) int { return jsonwalk.Offset(body, elements[i]) }
	end := func(i int) int { return start(i) + len(elements[i]) }
	for i := 0; i < len(elements); i++ {
		if !drop(i) {
			continue
		}
		first := i
		for i+1 < len(elements) && drop(i+1) {
			i++
		}
		from, to := start(first), end(i)
		if first > 0 {
			from = end(first - 1)
		} else if i+1 < len(elements) {
			to = start(i + 1)
		}
		patches = append(patches, jsonwalk.Patch{At: from, End: to})
	}
	return patches
}

func elements(arr []byte) (out [][]byte) {
	es := jsonwalk.Elements(arr)
	for v, ok := es.Next(); ok; v, ok = es.Next() {
		out = append(out, v)
	}
	return out
}

// plainKey decodes a member's key. Keys of this protocol are ASCII; one with escapes is legal JSON, and rare enough to
// allocate for.
func plainKey(k []byte) []byte {
	if bytes.IndexByte(k, '\\') < 0 {
		return k
	}
	return jsonwalk.Unescape(nil, k)
}

func plain(body []byte) string { return string(jsonwalk.Unescape(nil, body)) }

// text decodes a raw string value; "" for anything else.
func text(raw []byte) string {
	body, _ := jsonwalk.String(raw)
	return plain(body)
}

// quoted makes a string value of an escaped body.
func quoted(body []byte) []byte { return append(append([]byte{'"'}, body...), '"') }

// quote makes a string value of plain text.
func quote(s string) []byte { return append(jsonwalk.Escape([]byte{'"'}, []byte(s)), '"') }

// list makes an array of raw values.
func list(values [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(values, []byte{','})...), ']')
}
