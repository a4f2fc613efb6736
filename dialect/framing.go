package dialect

import (
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Scanner finds the events of one attempt's body, which arrives in pieces, split
// anywhere. [sse.Scanner] is the one of event streams; other framings obey its laws:
// the Raw bytes of all units are the input, so that what nobody edits passes
// unchanged, a unit is handed out as soon as it is whole, and the work is linear in
// the input.
type Scanner interface {
	// Push hands over the next bytes. It invalidates the events handed out
	// before; p may be used again once Next has returned false.
	Push(p []byte)
	// Next returns the next whole unit: an event, or with neither Name nor Data
	// set what may stand between events and says nothing.
	Next() (sse.Event, bool)
	// Rest reads, at the end of input, the unfinished bytes as a unit; false when
	// there are none, or when they are worth nothing. It consumes nothing.
	Rest() (sse.Event, bool)
	// Err is why no unit will follow: one exceeded the size limit, or broke the
	// framing. It is final.
	Err() error
}

// Framed is a Dialect whose streams are no event streams. Event.Raw is the exact
// frame, Event.Data its payload, which is what the Decoder reads. Its Writer renders
// whole frames, and its Heartbeat may be nothing where the framing has no room for
// one. A body in the framing does not begin with a brace: that is a document, told
// instead of a stream.
type Framed interface {
	Dialect
	// NewScanner returns the scanner of one attempt's body. limit bounds a unit,
	// in bytes.
	NewScanner(limit int) Scanner
	// ContentType is the media type of such a body.
	ContentType() string
}

// NewScanner returns a scanner of d's framing.
func NewScanner(d Dialect, limit int) Scanner {
	if f, ok := d.(Framed); ok {
		return f.NewScanner(limit)
	}
	return &sse.Scanner{Limit: limit}
}

// Dripper is a Dialect with a sign of life smaller than an event: the beginning of the
// next one (DESIGN §5). Behind a drip the client's stream stands inside an event, and
// whatever is written next goes through Undrip. said is the message as the client has
// it.
type Dripper interface {
	Dialect
	// Drip appends one. open says that the last thing written was one, too.
	Drip(dst []byte, said *turn.Snapshot, open bool) []byte
	// Undrip appends b, whole units or nothing, as they continue behind drips.
	Undrip(dst, b []byte, said *turn.Snapshot) []byte
}
