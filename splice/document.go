package splice

import "github.com/unbroken-llm/unbroken/internal/jsonwalk"

// Shape says what a structured answer must be.
type Shape uint8

// The shapes.
const (
	AnyJSON    Shape = iota // one JSON value: a schema says more (OpenAI json_schema)
	JSONObject              // one JSON object (OpenAI json_object)
)

// Document follows a structured answer over the seam. The provider's grammar engine starts anew with every request, so
// the continuation is asked for without it (WIRE 2.3) and this is what guards the shape instead. It keeps no
// text.
type Document struct {
	shape Shape
	json  jsonwalk.Prefix
	state jsonwalk.State
}

// NewDocument returns the document that begins with prefix, the text the client has. Its state may be Invalid or
// Complete at once: then a continuation makes no sense.
func NewDocument(prefix []byte, shape Shape) *Document {
	d := &Document{shape: shape}
	d.Push(prefix)
	return d
}

// State tells how far the document has come.
func (d *Document) State() jsonwalk.State { return d.state }

// Push takes the next text for the client. keep counts the bytes of p that belong to the document: with Incomplete all
// of them, with Complete those up to its last one (what a model says behind it is not for the client, and the turn is
// over), with Invalid those before the one that breaks it (the attempt has failed, and none of p should be
// shown).
func (d *Document) Push(p []byte) (keep int, state jsonwalk.State) {
	if d.state != jsonwalk.Incomplete {
		return 0, d.state
	}
	keep, d.state = d.json.Push(p)
	if top := d.json.Top(); d.shape == JSONObject && top != jsonwalk.KindNone && top != jsonwalk.KindObject {
		keep, d.state = 0, jsonwalk.Invalid
	}
	return keep, d.state
}

// End says that the continuation is over. A top-level number is complete only now; what is still Incomplete was cut.
func (d *Document) End() jsonwalk.State {
	if d.state == jsonwalk.Incomplete {
		d.state = d.json.End()
	}
	return d.state
}
