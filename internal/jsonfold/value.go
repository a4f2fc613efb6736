package jsonfold

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

type kind uint8

const (
	absent kind = iota
	raw         // a value as the wire spelled it
	text        // a string that may grow
	object
	list
)

// Value is a JSON value that grows. It begins as nothing, and while it is nothing it is not written. Get one from
// [New].
type Value struct {
	kind  kind
	bytes []byte   // raw: the value; text: its escaped body
	keys  [][]byte // object: escaped
	kids  []*Value // object, list
	size  *int     // of the document
}

// New returns a document of nothing.
func New() *Value { return &Value{size: new(int)} }

// Size is how much the document holds, in bytes of strings, keys and copied values.
func (v *Value) Size() int { return *v.size }

// Empty reports whether the value says nothing: it is absent, null or an empty string.
func (v *Value) Empty() bool {
	switch v.kind {
	case absent:
		return true
	case raw:
		return jsonwalk.IsNull(v.bytes)
	case text:
		return len(v.bytes) == 0
	}
	return false
}

// IsText reports whether the value is a string.
func (v *Value) IsText() bool { return v.kind == text }

// Set makes the value a copy of val.
func (v *Value) Set(val []byte) {
	*v.size -= len(v.bytes)
	v.keys, v.kids, v.bytes = nil, nil, v.bytes[:0]
	if body, ok := jsonwalk.String(val); ok {
		v.kind, v.bytes = text, append(v.bytes, body...)
	} else {
		v.kind, v.bytes = raw, append(v.bytes, val...)
	}
	*v.size += len(v.bytes)
}

// Drop makes the value nothing again. It keeps its place.
func (v *Value) Drop() {
	v.Set(nil)
	v.kind = absent
}

// Offer is Set for a value that says nothing yet.
func (v *Value) Offer(val []byte) {
	if v.Empty() {
		v.Set(val)
	}
}

// Renew is Set for what is told again and again, its newest form: null changes nothing that was said.
func (v *Value) Renew(val []byte) {
	if !jsonwalk.IsNull(val) {
		v.Set(val)
		return
	}
	v.Offer(val)
}

// Text lets a string grow by an escaped body. What was no string becomes one.
func (v *Value) Text(body []byte) {
	if v.kind != text {
		v.Set([]byte(`""`))
	}
	v.bytes = append(v.bytes, body...)
	*v.size += len(body)
}

// Body is the escaped body of a string, or the bytes of a value that never grew. It is valid until the value changes.
func (v *Value) Body() []byte { return v.bytes }

// At is the member of an object, which is nothing yet if it was not named before. What was no object becomes one.
func (v *Value) At(key string) *Value {
	v.open(object)
	for i := range v.keys {
		if jsonwalk.KeyIs(v.keys[i], key) {
			return v.kids[i]
		}
	}
	return v.add(jsonwalk.Escape(nil, []byte(key)))
}

// Named is At for a key as the wire spells it.
func (v *Value) Named(key []byte) *Value {
	v.open(object)
	for i := range v.keys {
		if bytes.Equal(v.keys[i], key) {
			return v.kids[i]
		}
	}
	return v.add(bytes.Clone(key))
}

// Push adds an element to a list. What was no list becomes one.
func (v *Value) Push() *Value {
	v.open(list)
	return v.add(nil)
}

// Elements are those of a list.
func (v *Value) Elements() []*Value {
	if v.kind == raw && jsonwalk.KindOf(v.bytes) == jsonwalk.KindArray {
		v.open(list)
	}
	if v.kind != list {
		return nil
	}
	return v.kids
}

// Last is the last element of a list, nil if there is none.
func (v *Value) Last() *Value {
	all := v.Elements()
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

func (v *Value) add(key []byte) *Value {
	kid := &Value{size: v.size}
	if v.kind == object {
		v.keys = append(v.keys, key)
		*v.size += len(key)
	}
	v.kids = append(v.kids, kid)
	return kid
}

// open makes the value an object or a list, of what it held if that was one.
func (v *Value) open(as kind) {
	if v.kind == as {
		return
	}
	was := v.bytes
	*v.size -= len(was)
	isRaw := v.kind == raw
	v.kind, v.bytes, v.keys, v.kids = as, nil, nil, nil
	switch {
	case !isRaw:
	case as == object:
		w := jsonwalk.Members(was)
		for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
			v.Named(key).Set(val)
		}
	default:
		e := jsonwalk.Elements(was)
		for val, ok := e.Next(); ok; val, ok = e.Next() {
			v.Push().Set(val)
		}
	}
}

// Append appends the document.
func (v *Value) Append(dst []byte) []byte {
	switch v.kind {
	case text:
		return append(append(append(dst, '"'), v.bytes...), '"')
	case object:
		return v.appendKids(append(dst, '{'), '}')
	case list:
		return v.appendKids(append(dst, '['), ']')
	case raw:
		return append(dst, v.bytes...)
	}
	return append(dst, "null"...)
}

func (v *Value) appendKids(dst []byte, end byte) []byte {
	empty := true
	for i, kid := range v.kids {
		if kid.kind == absent {
			continue
		}
		if !empty {
			dst = append(dst, ',')
		}
		if empty = false; v.kind == object {
			dst = append(append(append(dst, '"'), v.keys[i]...), '"', ':')
		}
		dst = kid.Append(dst)
	}
	return append(dst, end)
}
