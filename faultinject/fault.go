package faultinject

import (
	"net/http"
	"time"
)

// A Fault decides what happens at each position of one response. It is a pure
// value: the same positions give the same actions, so one fault may serve many
// responses at once. docs/FAULTS.md says how to add one.
type Fault interface {
	// Next is asked at every position in order. chunk is the event about to be
	// sent, nil outside of PhaseEvent. The zero Action passes it on.
	Next(at Position, chunk []byte) Action
}

// A Needy fault can only happen on one version of HTTP. It is a declared
// capability: the server refuses the combination in words, rather than doing
// something else.
type Needy interface {
	Fault
	Needs() Transport
}

// A Particular fault can only happen to one framing. It is declared and refused
// like a Needy one.
type Particular interface {
	Fault
	NeedsFraming() Framing
}

// A Transport is a version of HTTP.
type Transport string

// The transports.
const (
	HTTP1 Transport = "HTTP/1.1"
	HTTP2 Transport = "HTTP/2"
)

// A Phase is a stage of a response.
type Phase uint8

// The phases, in order.
const (
	PhaseOpen  Phase = iota // the request was read, nothing was sent
	PhaseHead               // the headers were sent
	PhaseEvent              // an event is about to be sent
	PhaseDone               // every event was sent, a polite end is next
)

// A Position is where a response stands.
type Position struct {
	Phase   Phase
	Dialect Dialect
	Framing Framing
	Model   string
	ID      string  // of the response
	Options Options // how it is rendered; zero with a target

	Event int   // number of this event, from 1
	Kind  Kind  // of this event
	Nth   int   // how many events of this kind there were, this one included
	Byte  int64 // body bytes before this event
	Total int   // events of the whole response, 0 if unknown (with a target)
	Seed  uint64
}

// An Action is what a fault does at a position. Reply and Setup count only in
// PhaseOpen.
type Action struct {
	Steps []Step // performed in place of sending the chunk; nil passes it on
	Reply *Reply // answer this in place of the stream
	Setup Setup  // how the stream is sent
}

// A Step is one thing done to the client. The fields are performed in the
// order they are listed.
type Step struct {
	Write []byte
	Wait  time.Duration
	Every time.Duration      // if set, Write is sent again and again until the client leaves
	Beat  func(n int) []byte // with Every, in place of Write: what the n-th time sends, from 0
	End   End
	Code  uint32 // HTTP/2 error code, with EndStream and EndGoAway
	Cover bool   // EndGoAway: the last stream id includes this stream
}

// An End is how a response stops.
type End uint8

// The ends. Nothing is sent after one.
const (
	EndNone   End = iota // go on
	EndPolite            // the last chunk, END_STREAM
	EndFIN               // the connection closes without a last chunk
	EndReset             // TCP RST
	EndHang              // silence until the client leaves
	EndStream            // HTTP/2 RST_STREAM with Code
	EndGoAway            // HTTP/2 GOAWAY with Code; with Cover the stream goes on
)

// A Reply is a whole response in place of the stream.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
	// RetryAt, if set, adds a Retry-After header with the date this far ahead.
	RetryAt time.Duration
}

// A Setup changes how a stream is sent. Those of several faults are merged.
type Setup struct {
	ContentType    string
	Encoding       string // gzip or br, flushed per event
	CloseDelimited bool   // HTTP/1.1: neither length nor chunks, the close is the end
	Length         bool   // a Content-Length of the whole answer
	Piece          int    // at most this many bytes per write
	Pause          time.Duration
}

func (s Setup) merge(t Setup) Setup {
	if t.ContentType != "" {
		s.ContentType = t.ContentType
	}
	if t.Encoding != "" {
		s.Encoding = t.Encoding
	}
	s.CloseDelimited = s.CloseDelimited || t.CloseDelimited
	s.Length = s.Length || t.Length
	if t.Piece > 0 {
		s.Piece, s.Pause = t.Piece, t.Pause
	}
	return s
}

// do is the action of the given steps.
func do(steps ...Step) Action { return Action{Steps: steps} }
