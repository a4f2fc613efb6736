package jsonwalk

import (
	"cmp"
	"slices"
)

// ApplySorted is Apply of patches in any order; it sorts them by their places.
// Patches of absent values are the caller's to leave out.
func ApplySorted(src []byte, ps []Patch) []byte {
	slices.SortStableFunc(ps, func(a, b Patch) int { return cmp.Compare(a.At, b.At) })
	return Apply(nil, src, ps)
}

// All returns the elements of an array, aliasing it.
func All(arr []byte) (out [][]byte) {
	es := Elements(arr)
	for v, ok := es.Next(); ok; v, ok = es.Next() {
		out = append(out, v)
	}
	return out
}

// Last returns the last element of an array, aliasing it; nil if it has none or is malformed.
func Last(arr []byte) (last []byte) {
	es := Elements(arr)
	for v, ok := es.Next(); ok; v, ok = es.Next() {
		last = v
	}
	if es.Err() != nil {
		return nil
	}
	return last
}

// Cut appends the patches of body that take the dropped elements out of an array,
// each run with the comma in front of it, or behind it where nothing is kept in
// front. elements were cut from body, in order.
func Cut(ps []Patch, body []byte, elements [][]byte, drop func(int) bool) []Patch {
	start := func(i int) int { return Offset(body, elements[i]) }
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
		ps = append(ps, Patch{At: from, End: to})
	}
	return ps
}
