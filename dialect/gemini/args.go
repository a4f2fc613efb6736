package gemini

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// arguments are those of a streamed call, put together from values that each name
// their place by a JSON path (WIRE 1.4; RFC 9535, of which hosts use names and
// indices: "$.items[0].id", "$['a b']"). They are kept in the order of their first
// appearance and own their bytes.
type arguments struct {
	root    node
	pending bool // a string is being said
	lost    bool // something had no place: the arguments are not known
}

// node is one value. A scalar has raw; a string is kept as an escaped body.
type node struct {
	key   []byte // of a member; nil in a list
	list  bool
	kids  []node
	raw   []byte
	isStr bool
	set   bool
}

// maxIndex bounds an array index, maxDepth a path, so that a hostile path costs no
// memory.
const (
	maxIndex = 1 << 12
	maxDepth = 64
)

// add takes one element of partialArgs.
func (a *arguments) add(raw []byte) {
	var path, val []byte
	var isStr, goesOn bool
	w := jsonwalk.Members(raw)
	for key, v, ok := w.Next(); ok; key, v, ok = w.Next() {
		switch string(key) {
		case "jsonPath":
			path, _ = jsonwalk.String(v)
		case "stringValue":
			if body, ok := jsonwalk.String(v); ok {
				val, isStr = body, true
			}
		case "numberValue", "boolValue":
			if k := jsonwalk.KindOf(v); k == jsonwalk.KindNumber || k == jsonwalk.KindBool || k == jsonwalk.KindString {
				val = v
			}
		case "nullValue": // spelled "NULL_VALUE", or null itself
			val = []byte("null")
		case "willContinue":
			goesOn, _ = jsonwalk.Bool(v)
		}
	}
	n := a.root.find(jsonwalk.Unescape(nil, path))
	switch {
	case w.Err() != nil, n == nil, n.kids != nil, n.set && n.isStr != isStr:
		a.lost = true
		return
	case val == nil && n.set && n.isStr:
		// The end of a string that says nothing more.
	case val == nil:
		a.lost = true
		return
	case isStr:
		n.raw = append(n.raw, val...)
	default:
		n.raw = bytes.Clone(val)
	}
	n.set, n.isStr = true, n.isStr || isStr
	a.pending = goesOn
}

// find returns the value at a path, making room for it; nil when the path cannot
// be read or leads through a scalar.
func (n *node) find(path []byte) *node {
	path, ok := bytes.CutPrefix(path, []byte("$"))
	if !ok || len(path) == 0 {
		return nil
	}
	for depth := 0; len(path) > 0; depth++ {
		var key []byte
		var index int
		var named bool
		if key, index, named, path, ok = step(path); !ok || depth == maxDepth {
			return nil
		}
		if n = n.child(key, index, named); n == nil {
			return nil
		}
	}
	return n
}

// step cuts the first segment off a path.
func step(path []byte) (key []byte, index int, named bool, rest []byte, ok bool) {
	if path[0] == '.' {
		end := 1
		for end < len(path) && path[end] != '.' && path[end] != '[' {
			end++
		}
		return path[1:end], 0, true, path[end:], end > 1
	}
	if len(path) < 3 || path[0] != '[' {
		return nil, 0, false, nil, false
	}
	if q := path[1]; q == '\'' || q == '"' {
		for i := 2; i+1 < len(path); i++ {
			switch {
			case path[i] == '\\':
				i++
				key = append(key, path[i])
			case path[i] == q:
				return key, 0, true, path[i+2:], path[i+1] == ']'
			default:
				key = append(key, path[i])
			}
		}
		return nil, 0, false, nil, false
	}
	end := bytes.IndexByte(path, ']')
	if end < 0 {
		return nil, 0, false, nil, false
	}
	n, isInt := jsonwalk.Int(path[1:end])
	return nil, int(n), false, path[end+1:], isInt && n >= 0 && n < maxIndex
}

func (n *node) child(key []byte, index int, named bool) *node {
	if n.set || n.kids != nil && n.list == named {
		return nil
	}
	n.list = !named
	if !named {
		if index > len(n.kids) {
			return nil // a hole would have to be filled with something nobody said
		}
		if index == len(n.kids) {
			n.kids = append(n.kids, node{})
		}
		return &n.kids[index]
	}
	for i := range n.kids {
		if bytes.Equal(n.kids[i].key, key) {
			return &n.kids[i]
		}
	}
	n.kids = append(n.kids, node{key: bytes.Clone(key)})
	return &n.kids[len(n.kids)-1]
}

// whole renders the arguments as an object.
func (a *arguments) whole() []byte { return a.root.append(nil) }

// half renders what is there of arguments that were cut: it is never a whole
// document.
func (a *arguments) half() []byte {
	b := a.whole()
	return b[:len(b)-1]
}

func (n *node) append(dst []byte) []byte {
	switch {
	case n.set && n.isStr:
		dst = append(dst, '"')
		return append(append(dst, n.raw...), '"')
	case n.set:
		return append(dst, n.raw...)
	}
	open, shut := byte('{'), byte('}')
	if n.list {
		open, shut = '[', ']'
	}
	dst = append(dst, open)
	for i := range n.kids {
		if i > 0 {
			dst = append(dst, ',')
		}
		if !n.list {
			dst = append(jsonwalk.Escape(append(dst, '"'), n.kids[i].key), `":`...)
		}
		dst = n.kids[i].append(dst)
	}
	return append(dst, shut)
}
