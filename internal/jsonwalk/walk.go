package jsonwalk

import "errors"

// What a walk can end with. Compare with errors.Is.
var (
	ErrKind   = errors.New("jsonwalk: value has another kind") // the bytes are not an object (Members) or array (Elements)
	ErrSyntax = errors.New("jsonwalk: malformed json")         // the walked level is malformed
)

// cursor is the part that walking objects and arrays have in common.
type cursor struct {
	b      []byte
	i      int // next byte to read
	strict bool
	begun  bool
	done   bool
	err    error
}

// advance moves to the start of the next member or element; false at the end or at the first error.
func (c *cursor) advance(open, shut byte) bool {
	if c.done {
		return false
	}
	i := space(c.b, c.i)
	switch {
	case !c.begun:
		if i == len(c.b) || c.b[i] != open {
			return c.fail(ErrKind)
		}
		c.begun = true
		if i = space(c.b, i+1); i < len(c.b) && c.b[i] == shut {
			return c.finish(i + 1)
		}
	case i < len(c.b) && c.b[i] == ',':
		i = space(c.b, i+1)
	case i < len(c.b) && c.b[i] == shut:
		return c.finish(i + 1)
	default:
		return c.fail(ErrSyntax)
	}
	c.i = i
	return true
}

// finish accepts nothing but white space behind the closing bracket.
func (c *cursor) finish(i int) bool {
	c.i, c.done = i, true
	if space(c.b, i) != len(c.b) {
		c.err = ErrSyntax
	}
	return false
}

func (c *cursor) fail(err error) bool {
	c.done, c.err = true, err
	return false
}

// value cuts the value at the cursor.
func (c *cursor) value() ([]byte, bool) {
	end := c.valueEnd()
	if end < 0 {
		return nil, c.fail(ErrSyntax)
	}
	val := c.b[c.i:end]
	c.i = end
	return val, true
}

func (c *cursor) valueEnd() int {
	if c.strict {
		return strictEnd(c.b, c.i, 1)
	}
	return valueEnd(c.b, c.i)
}

func (c *cursor) keyEnd() int {
	if c.strict {
		return textEnd(c.b, c.i)
	}
	return stringEnd(c.b, c.i)
}

// Walk is one pass over the members of an object. Copying it copies the position.
type Walk struct{ c cursor }

// Members starts a walk over the members of obj, which may have white space around it.
func Members(obj []byte) Walk { return Walk{cursor{b: obj}} }

// Checked is Members with a closer look: a walk that ends without an error has seen a document that is Valid.
func Checked(obj []byte) Walk { return Walk{cursor{b: obj, strict: true}} }

// Next returns the next member in written order: key is the still escaped body between the quotes, val the raw value
// without the white space around it. Both alias the object. Duplicate keys are all returned; by the custom of
// encoding/json the last one counts. ok is false at the end and at the first malformed byte; Err tells them apart.
func (w *Walk) Next() (key, val []byte, ok bool) {
	c := &w.c
	if !c.advance('{', '}') {
		return nil, nil, false
	}
	if c.i == len(c.b) || c.b[c.i] != '"' {
		return nil, nil, c.fail(ErrSyntax)
	}
	end := c.keyEnd()
	if end < 0 {
		return nil, nil, c.fail(ErrSyntax)
	}
	key = c.b[c.i+1 : end-1]
	i := space(c.b, end)
	if i == len(c.b) || c.b[i] != ':' {
		return nil, nil, c.fail(ErrSyntax)
	}
	c.i = space(c.b, i+1)
	val, ok = c.value()
	if !ok {
		return nil, nil, false
	}
	return key, val, true
}

// Err is nil while the walk goes on and after it saw the whole object, else ErrKind or ErrSyntax.
func (w *Walk) Err() error { return w.c.err }

// Elems is one pass over the elements of an array.
type Elems struct{ c cursor }

// Elements starts a walk over the elements of arr, which may have white space around it.
func Elements(arr []byte) Elems { return Elems{cursor{b: arr}} }

// Next returns the next element, raw, without the white space around it, aliasing the array. ok is false at the end and
// at the first malformed byte; Err tells them apart.
func (e *Elems) Next() (val []byte, ok bool) {
	if !e.c.advance('[', ']') {
		return nil, false
	}
	return e.c.value()
}

// Err is nil while the walk goes on and after it saw the whole array, else ErrKind or ErrSyntax.
func (e *Elems) Err() error { return e.c.err }
