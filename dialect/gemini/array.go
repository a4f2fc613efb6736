package gemini

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Array is streamGenerateContent without alt=sse: the chunks are the elements of one
// JSON array, which arrive one by one (WIRE 1.4). It says the same as Dialect, in
// another framing:
//
//	[{chunk}          the first element brings the bracket
//	,\r\n{chunk}      every other one its comma
//	]                 the end; as an event it is a marker, since a body that was cut
//	                  and closed politely has none, and one that is given up gets none
//	white space       between elements, a sign of life
//
// Snapshot.Seq counts the elements that the client has: it tells whether the next
// one begins the array.
type Array struct{ grammar }

var (
	_ dialect.Framed  = Array{}
	_ dialect.Dripper = Array{}
)

// Traits implements dialect.Dialect.
func (Array) Traits() dialect.Traits {
	t := grammar{}.Traits()
	t.Marker = true
	return t
}

// Continue implements dialect.Dialect.
func (Array) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	return Dialect{}.Continue(r, said, c)
}

// NewScanner implements dialect.Framed.
func (Array) NewScanner(limit int) dialect.Scanner { return &elements{limit: limit} }

// ContentType implements dialect.Framed.
func (Array) ContentType() string { return "application/json" }

// NewDecoder implements dialect.Dialect.
func (Array) NewDecoder(r *dialect.Request) dialect.Decoder {
	return &arrayDecoder{Decoder: newDecoder(r)}
}

// arrayDecoder counts the elements.
type arrayDecoder struct {
	*Decoder
	seq int64
}

// Decode implements dialect.Decoder.
func (d *arrayDecoder) Decode(dst []turn.Delta, e sse.Event) ([]turn.Delta, error) {
	if string(e.Data) == closing {
		return append(dst, turn.Delta{Kind: turn.Terminal}), nil
	}
	had := len(dst)
	dst, err := d.Decoder.Decode(dst, e)
	if len(dst) > had {
		d.seq++
	}
	for i := had; i < len(dst); i++ {
		dst[i].Seq = d.seq
	}
	return dst, err
}

// closing is the data of the event that ends an array.
const closing = "]"

// Rewrite implements dialect.Writer.
func (a Array) Rewrite(dst []byte, r *dialect.Request, e sse.Event, ds []turn.Delta, said *turn.Snapshot) []byte {
	ends := false
	for i := range ds {
		ds[i].Seq = 0 // of the attempt's own array
		ends = ends || ds[i].Kind == turn.Terminal
	}
	if string(e.Data) == closing {
		if !ends {
			return dst
		}
		return a.close(dst, said)
	}
	return a.frame(dst, said, Dialect{}.Rewrite(nil, r, e, ds, said))
}

// Emit implements dialect.Writer.
func (a Array) Emit(dst []byte, r *dialect.Request, said *turn.Snapshot, n int) []byte {
	return a.frame(dst, said, Dialect{}.Emit(nil, r, said, n))
}

// Replay implements dialect.Writer.
func (a Array) Replay(dst []byte, r *dialect.Request, said *turn.Snapshot) []byte {
	return a.frame(dst, said, Dialect{}.Replay(nil, r, said))
}

// Finish implements dialect.Writer.
func (a Array) Finish(dst []byte, r *dialect.Request, said *turn.Snapshot, e dialect.Ending) []byte {
	return a.close(a.frame(dst, said, Dialect{}.Finish(nil, r, said, e)), said)
}

// Fail implements dialect.Writer: the error is an element, as Google sends it, and the
// array stays open.
func (a Array) Fail(dst []byte, said *turn.Snapshot, f dialect.Failure) []byte {
	return a.frame(dst, said, Dialect{}.Fail(nil, said, f))
}

// Heartbeat implements dialect.Writer.
func (Array) Heartbeat(dst []byte, _ *dialect.Request, _ *turn.Snapshot) []byte {
	return append(dst, '\n')
}

// Drip implements dialect.Dripper. In front of the first element stands the bracket:
// Google's own client takes white space there for no array at all (google-api-core,
// rest_streaming.py).
func (Array) Drip(dst []byte, said *turn.Snapshot, open bool) []byte {
	if said.Seq == 0 && !open {
		return append(dst, '[')
	}
	return append(dst, '\n')
}

// Undrip implements dialect.Dripper: the bracket stands there already.
func (Array) Undrip(dst, b []byte, _ *turn.Snapshot) []byte {
	if rest, ok := bytes.CutPrefix(bytes.TrimLeft(b, bom+blank), []byte("[")); ok {
		return append(dst, rest...)
	}
	return append(dst, b...)
}

// frame renders events of Dialect's as elements.
func (Array) frame(dst []byte, said *turn.Snapshot, events []byte) []byte {
	var scan sse.Scanner
	scan.Push(events)
	for e, ok := scan.Next(); ok; e, ok = scan.Next() {
		if e.Data == nil {
			continue
		}
		if said.Seq++; said.Seq == 1 {
			dst = append(dst, '[')
		} else {
			dst = append(dst, ",\r\n"...)
		}
		dst = append(dst, e.Data...)
	}
	return dst
}

// close renders the end of the array.
func (Array) close(dst []byte, said *turn.Snapshot) []byte {
	if said.Seq == 0 {
		dst = append(dst, '[')
	}
	return append(dst, "\r\n]\r\n"...)
}
