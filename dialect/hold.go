package dialect

import (
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Holder is a [Dialect] whose provider may hold a generation, so that whoever lost
// the connection can attach to it again and misses nothing (WIRE 2.1). Whether it
// does is no fact about a host: the request asks for it and the stream announces it,
// which the attempt's [Tracker] tells.
type Holder interface {
	// Attach is the request for the events behind the grip's cursor.
	Attach(Grip) Errand
	// Cancel is the request that ends a generation that nobody will read; ok is
	// false for one that ends by itself.
	Cancel(*Request, Grip) (e Errand, ok bool)
}

// Grip is how a held generation is reached. The zero value: it is not held.
type Grip struct {
	// ID is the provider's name for the generation, safe in a path.
	ID string
	// At is the cursor: the last event that was decoded, as the provider names
	// it. Empty: attach at the start.
	At string
}

// Held reports whether there is a generation to attach to.
func (g Grip) Held() bool { return g.ID != "" }

// Errand is a request about a generation, told relative to the request that began
// it: same host, same credential.
type Errand struct {
	Method string
	// Below is put behind the path: "/resp_1/cancel".
	Below string
	// Query is added to the query: "stream=true".
	Query string
}

// Tracker is the [Decoder] of a [Holder]. It outlives the connection: when the
// attempt attaches again, it decodes what comes as if nothing had happened.
type Tracker interface {
	Decoder
	// Grip reaches the generation behind what was decoded so far.
	Grip() Grip
	// Attached says that what comes is from another connection.
	Attached()
	// Repeated reports whether e, an event of that connection, was decoded before:
	// some providers answer a cursor with what lies at it, or with everything from
	// the start. It is asked about each event, once, before Decode.
	Repeated(e sse.Event) bool
}

// Veiler is a [Decoder] that shows the client other events than the provider sent,
// because the request that went up was not quite the client's (Request.Veiled).
type Veiler interface {
	// Veil returns the event that the client is to see, raw bytes included; ok is
	// false if it is to see none. It is valid as long as e is. It is asked before Decode,
	// which gets the result.
	Veil(e sse.Event) (seen sse.Event, ok bool)
}

// Backgrounder is a [Holder] whose provider holds only what it was asked to.
type Backgrounder interface {
	// Background is body with the wish to have its generation held, or nil if the
	// request does not permit that.
	Background(r *Request, body []byte) []byte
	// Foreground is body without that wish.
	Foreground(body []byte) []byte
}

// Checkpointer is a [Dialect] whose provider marks points in the stream from which
// the same request goes on (manner Provider of Continue).
type Checkpointer interface {
	// Behind is the decoded text that was said behind the newest of those points,
	// which the provider will say again; ok is false if there is no point, or if
	// what was said behind it cannot be said twice.
	Behind(said *turn.Snapshot) (text []byte, ok bool)
}

// Resumer is the [Decoder] of a [Checkpointer].
type Resumer interface {
	// Resumed says that what comes goes on from a point of said's first attempt.
	Resumed(said *turn.Snapshot)
}

// maxName bounds an id that a provider gives; those known are under 100
// characters.
const maxName = 512

// SafeName reports whether a provider's name for something can stand in a path as it
// is. One that cannot would let a provider choose what is asked of whom.
func SafeName(s string) bool {
	if s == "" || len(s) > maxName || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.', c == '~':
		default:
			return false
		}
	}
	return true
}
