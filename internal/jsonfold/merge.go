package jsonfold

import "github.com/unbroken-llm/unbroken/internal/jsonwalk"

// Merge adds a piece of a value of which nothing is known but that it comes in pieces: strings and lists grow, members
// are merged, anything else is told anew. Elements that carry an index are pieces of the element with that index.
func (v *Value) Merge(val []byte) {
	switch jsonwalk.KindOf(val) {
	case jsonwalk.KindString:
		body, _ := jsonwalk.String(val)
		v.Text(body)
	case jsonwalk.KindArray:
		v.Join(val)
	case jsonwalk.KindObject:
		v.open(object)
		w := jsonwalk.Members(val)
		for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
			if flag(key) {
				v.Named(key).Renew(val)
			} else {
				v.Named(key).Merge(val)
			}
		}
	default:
		v.Renew(val)
	}
}

// flag reports members whose strings name something, wherever they stand: they are told again, not in pieces.
func flag(key []byte) bool {
	switch string(key) {
	case "id", "type", "role", "name", "index", "format", "channel", "status", "object":
		return true
	}
	return false
}

// Join adds the elements of an array.
func (v *Value) Join(val []byte) {
	v.open(list)
	e := jsonwalk.Elements(val)
	for el, ok := e.Next(); ok; el, ok = e.Next() {
		if old := v.indexed(el); old != nil {
			old.Merge(el)
		} else {
			v.Push().Set(el)
		}
	}
}

// Extend adds the elements of an array, whatever they are.
func (v *Value) Extend(arr []byte) {
	v.open(list)
	e := jsonwalk.Elements(arr)
	for el, ok := e.Next(); ok; el, ok = e.Next() {
		v.Push().Set(el)
	}
}

// indexed is the element that el is a piece of.
func (v *Value) indexed(el []byte) *Value {
	if jsonwalk.KindOf(el) != jsonwalk.KindObject {
		return nil
	}
	at := jsonwalk.Get(el, "index")
	if jsonwalk.KindOf(at) != jsonwalk.KindNumber {
		return nil
	}
	for _, kid := range v.kids {
		if has := kid.peek("index"); string(has) == string(at) && string(kid.peek("type")) == string(jsonwalk.Get(el, "type")) {
			return kid
		}
	}
	return nil
}

// peek is the raw form of a member, of an object that may never have been opened; nil if there is none.
func (v *Value) peek(key string) []byte {
	switch v.kind {
	case raw:
		if jsonwalk.KindOf(v.bytes) == jsonwalk.KindObject {
			return jsonwalk.Get(v.bytes, key)
		}
	case object:
		for i := range v.keys {
			if jsonwalk.KeyIs(v.keys[i], key) && v.kids[i].kind != absent {
				return v.kids[i].Append(nil)
			}
		}
	}
	return nil
}

// Update renews the members of an object one by one: a record that is told in parts, each part anew.
func (v *Value) Update(obj []byte) {
	if jsonwalk.KindOf(obj) != jsonwalk.KindObject {
		v.Renew(obj)
		return
	}
	v.open(object)
	w := jsonwalk.Members(obj)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		v.Named(key).Renew(val)
	}
}
