package anthropic

import (
	"cmp"
	"slices"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// apply returns a copy of src with the patches applied in the order of their places. Patches of absent values (nil) are
// the caller's to leave out.
func apply(src []byte, patches []jsonwalk.Patch) []byte {
	slices.SortStableFunc(patches, func(a, b jsonwalk.Patch) int { return cmp.Compare(a.At, b.At) })
	return jsonwalk.Apply(nil, src, patches)
}

// cut returns the patches of body that take the dropped elements out of an array, each run with the comma in front of
// it, or behind it where nothing is kept in front. elements were cut from body, in order.
func cut(patches []jsonwalk.Patch, body []byte, elements [][]byte, drop func(int) bool) []jsonwalk.Patch {
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
