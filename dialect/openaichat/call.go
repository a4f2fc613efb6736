package openaichat

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// call is a tool call of a lane.
type call struct {
	index  int
	id     []byte // owned, escaped
	block  int
	said   int // bytes of arguments so far
	args   jsonwalk.Prefix
	custom bool
	closed bool
}

// left reports whether nothing can be to come once the choice goes on to something else.
// Half an object cannot be left for good: parallel calls may be told by turns. Nor can
// one without arguments: some hosts open all calls before they fill the first, in an
// order of their own, and closed too early it would be runnable with {} (DESIGN §3).
func (c *call) left() bool {
	return c.said > 0 && (c.custom || c.args.State() == jsonwalk.Complete)
}

// empty reports whether the arguments are {}, which some hosts send as a placeholder.
func (c *call) empty() bool { return !c.custom && c.args.Empty() }

// fragment is one element of delta.tool_calls.
type fragment struct {
	index    int
	hasIndex bool
	custom   bool
	id, name []byte // bodies
	args     []byte // raw value of arguments or input
}

func readFragment(raw []byte) (fragment, error) {
	var f fragment
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "index":
			n, ok := jsonwalk.Int(val)
			f.index, f.hasIndex = int(n), ok && n >= 0 && n < maxIndex
		case "id":
			f.id, _ = jsonwalk.String(val)
		case "type":
			f.custom = f.custom || string(val) == `"custom"`
		case "function", "custom":
			if !jsonwalk.IsNull(val) {
				f.custom = f.custom || string(key) == "custom"
				f.readFunction(val)
			}
		}
	}
	if w.Err() != nil {
		return f, ErrMalformed
	}
	return f, nil
}

// maxIndex bounds tool_calls[].index so that arithmetic on it cannot overflow; a
// value beyond it (or -1, which some hosts send) counts as none.
const maxIndex = 1 << 20

func (f *fragment) readFunction(raw []byte) {
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "name":
			f.name, _ = jsonwalk.String(val)
		case "arguments", "input":
			if f.args = val; jsonwalk.IsNull(val) {
				f.args = nil
			}
		}
	}
}

// words returns the arguments as the body of a string. Some hosts send the object
// itself (FIELD-REPORTS C13); only for them is anything allocated.
func (f *fragment) words() []byte {
	if body, ok := jsonwalk.String(f.args); ok || f.args == nil {
		return body
	}
	return jsonwalk.Escape(nil, f.args)
}

// find returns the call that f belongs to, nil for a new one. The identity of a
// call is choice, index and id: a new id at a used index is another call
// (FIELD-REPORTS D18), a repeated id or name is not (D17). A host that gives no
// ids names each call; a name after complete arguments is the next call.
func (l *lane) find(f *fragment) *call {
	for i := len(l.calls) - 1; i >= 0; i-- {
		c := &l.calls[i]
		switch {
		case f.hasIndex && c.index != f.index:
			continue
		case !f.hasIndex && len(f.id) > 0 && !bytes.Equal(c.id, f.id):
			continue
		case len(f.id) > 0 && len(c.id) > 0:
			if !bytes.Equal(c.id, f.id) {
				return nil
			}
		case len(f.name) > 0 && c.args.State() == jsonwalk.Complete:
			return nil
		}
		return c
	}
	return nil
}

// nextIndex is the index of a call whose host gave it none.
func (l *lane) nextIndex() int {
	n := 0
	for i := range l.calls {
		n = max(n, l.calls[i].index+1)
	}
	return n
}

// ring reads one element of tool_calls.
func (d *Decoder) ring(l *lane, raw []byte) error {
	f, err := readFragment(raw)
	if err != nil {
		return err
	}
	words := f.words()
	c := l.find(&f)
	switch {
	case c == nil && len(f.id)+len(f.name)+len(words) == 0:
		return nil
	case c == nil:
		c = d.dial(l, &f)
	}
	if len(words) == 0 {
		return nil
	}
	if c.said == 0 {
		d.leave(l, func(other *call) bool { return other.block < c.block && other.left() })
	}
	d.args = true
	c.said += len(words)
	if !c.custom {
		c.args.PushBody(words)
	}
	d.put(turn.Delta{Kind: turn.Text, Choice: l.index, Block: c.block, Text: words})
	return nil
}

// dial opens a new call and closes those that it leaves, but for a placeholder, and the
// one whose index it takes, which nothing can reach any more. The others close when the
// arguments of a later one begin, when text follows, or at the finish.
func (d *Decoder) dial(l *lane, f *fragment) *call {
	d.still(l)
	if !f.hasIndex {
		f.index = l.nextIndex()
	}
	d.leave(l, func(c *call) bool { return c.left() && !c.empty() || c.index == f.index })
	kind := turn.Call
	if f.custom {
		kind = turn.CustomCall
	}
	l.calls = append(l.calls, call{index: f.index, id: bytes.Clone(f.id), block: d.blocks, custom: f.custom})
	d.blocks++
	c := &l.calls[len(l.calls)-1]
	d.put(turn.Delta{Kind: turn.Open, Of: kind, Choice: l.index, Block: c.block, Index: c.index, ID: f.id, Name: f.name})
	return c
}
