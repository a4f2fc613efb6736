package dialect

import "github.com/unbroken-llm/unbroken/sse"

// Upgrader is a [Dialect] whose ordinary answer, the JSON that a request without a
// stream gets, can be told exactly from its stream. A call that does not stream can
// then be served from one, and what was generated outlives the connection (DESIGN §5).
type Upgrader interface {
	Dialect
	// Upgrade is body, which asks for no stream, as the request that asks for the same
	// answer as a stream, with everything in it that the ordinary answer holds. r is
	// body, parsed. why names what a stream would not tell exactly; the request is
	// then to be sent as it is.
	Upgrade(r *Request, body []byte) (stream []byte, why string)
	// StreamPath is where, in place of path (escaped, with its query), the stream is
	// asked for: path itself in dialects whose bodies say it.
	StreamPath(path string) string
	// NewFold returns a fold of one message.
	NewFold() Fold
}

// Fold makes the ordinary answer of one message's events. Members of unknown meaning
// are kept where the ordinary answer has them.
type Fold interface {
	// Add takes the next event of a client's message, comments too. It keeps no byte
	// of it.
	Add(e sse.Event)
	// Whole appends the answer. ok is false if the events were no whole message.
	Whole(dst []byte) (answer []byte, ok bool)
	// Size is how much is kept, in bytes.
	Size() int
}
