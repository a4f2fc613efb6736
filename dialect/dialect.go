package dialect

import (
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Dialect is one provider protocol. Implementations hold no state and may be
// used by any number of streams at once.
type Dialect interface {
	// Name is the dialect's short name: "chat", "messages".
	Name() string
	// Traits are the protocol's facts.
	Traits() Traits
	// Parse understands a request body. It never alters it. An error says, in
	// one line, why the request cannot be understood; such a request is relayed
	// unprotected.
	Parse(body []byte) (*Request, error)
	// Repair returns the body of a request with what earlier recoveries left in
	// its history taken out again (marked reasoning, DESIGN §3, §6), or body
	// itself, same slice, when nothing is to be repaired.
	Repair(body []byte) []byte
	// NewDecoder returns a decoder for one attempt's events.
	NewDecoder(*Request) Decoder
	// Continue builds the request body that asks for the rest of the turn.
	Continue(*Request, *turn.Snapshot, Continuation) ([]byte, error)
	Writer
}

// Decoder turns one attempt's events into deltas. It holds only what is needed
// to number blocks; the fold is elsewhere.
type Decoder interface {
	// Decode appends the deltas of e to dst. An error means that e is not
	// valid for the dialect and that skipping it would lose content; a valid
	// event of unknown meaning is an [turn.Opaque] delta, not an error. It
	// does not allocate for the events of ordinary text.
	Decode(dst []turn.Delta, e sse.Event) ([]turn.Delta, error)
}

// Repeater is a Decoder that knows an event again which says the same as the one before
// but for its text, without reading it: nearly all of a stream is such events.
type Repeater interface {
	Decoder
	// More returns what e says if it is such an event. Decode of it would then append
	// this and nothing else, in as many words, and neither changes the decoder. ok is
	// false for every other event, which is left to Decode.
	More(e sse.Event) (m turn.More, ok bool)
}

// Writer renders events of the client's message. Every method appends whole
// events to dst. said is the message as the client will have it once everything
// rendered before has been read.
type Writer interface {
	// Rewrite renders event e of a later attempt as part of the client's
	// message. ds are e's deltas as decoded, in order, after relay's editing:
	// dropped ones are [turn.Skip], blocks are ordinals of said, wire indices
	// (Open) are the client's, texts are cut. Rewrite runs before ds are folded
	// into said. Ids, model and other identity come from said.Head; unknown
	// fields of e survive. An event all of whose content was dropped renders
	// as nothing. In dialects that number or stage their events it may set Seq,
	// Index, ID, Stage and Raw of ds[i], so that the fold keeps the count; the
	// other writers advance said.Seq and said.Blocks[n].Stage themselves.
	Rewrite(dst []byte, req *Request, e sse.Event, ds []turn.Delta, said *turn.Snapshot) []byte
	// Emit renders block n of said, whole and closed: a complete tool call
	// that was held back when its turn broke.
	Emit(dst []byte, req *Request, said *turn.Snapshot, n int) []byte
	// Replay renders said from its start as a client that has nothing of it
	// gets it: the head and every live block, in few events. What is closed is
	// closed, open text stays open; a call that the provider itself ended cut
	// is rendered as it is. What an interruption cut must have been taken out
	// of said: unfinished calls, reasoning that cannot go on. It may
	// set said.Seq to the number of its last event.
	Replay(dst []byte, req *Request, said *turn.Snapshot) []byte
	// CloseBlock renders the close of block n of said, which is open on the
	// client's wire and holds nothing unfinished, so that another block can
	// open. Dialects whose blocks are not closed on the wire (chat) render
	// nothing.
	CloseBlock(dst []byte, said *turn.Snapshot, n int) []byte
	// Finish renders an honest end of said: closes open blocks, the finish,
	// one usage record if the client is owed one, and the terminator.
	Finish(dst []byte, req *Request, said *turn.Snapshot, e Ending) []byte
	// Fail renders the dialect's error form, the one the most SDKs raise on
	// (WIRE 5.6). The connection is aborted after it. No terminator.
	Fail(dst []byte, said *turn.Snapshot, f Failure) []byte
	// Heartbeat renders a sign of life that every SDK tolerates (WIRE 3.5).
	// It is legal only between whole events.
	Heartbeat(dst []byte, req *Request, said *turn.Snapshot) []byte
	// Retract renders the announcements of mode "events": `tool_call_cancel`
	// for call n of said, or, with n < 0, `stream_reset` for the whole stream.
	// Only for dialects with Traits.EventsMode.
	Retract(dst []byte, said *turn.Snapshot, n int, reason string) []byte
	// DropReasoning closes the open reasoning block n of said, which a
	// restart made worthless, marked (turn.DropMark as its signature) so that
	// Repair recognises it in a later request. Dialects with unsigned reasoning render nothing.
	DropReasoning(dst []byte, said *turn.Snapshot, n int) []byte
	// ErrorBody is a response body in the dialect's error shape, for an
	// answer before the first event, and the HTTP status that goes with it.
	ErrorBody(f Failure) (status int, body []byte)
}

// Traits are facts of a protocol, as data.
type Traits struct {
	// IndexCallsOnly: wire indices count tool calls only (chat), not all blocks.
	IndexCallsOnly bool
	// SignedReasoning: reasoning blocks carry signatures; unfinished ones can
	// neither be sent upstream nor simply go on after a restart.
	SignedReasoning bool
	// BoundReasoning: a reasoning block belongs to its id, so that an open one
	// cannot be taken over by another attempt even when nothing of it was shown.
	BoundReasoning bool
	// LateUsage: usage may follow the finish in an event of its own.
	LateUsage bool
	// Marker: the end has a marker event after the finish ([DONE],
	// message_stop); missing alone, it is no interruption (WIRE 1.7).
	Marker bool
	// Appends: a request is a text that the model goes on with, so that its
	// continuation ends with what was said, to the byte: a prefill that every
	// host takes, and there is no other manner (legacy completions).
	Appends bool
	// EventsMode: the dialect can announce retractions (DESIGN §5).
	EventsMode bool
}

// Continuation says how a turn is to be continued.
type Continuation struct {
	Manner turn.Manner
	Flags  Flags
	// Anchor is how many bytes of the tail an asked continuation must repeat
	// verbatim; Sentinel is the word it answers when nothing is missing.
	Anchor   int
	Sentinel string
	// MaxTokens is what is left of the caller's output limit; 0: no limit was set.
	MaxTokens int64
	// Model overrides the model name, for a target that names another.
	Model string
}

// Ending is an end that Unbroken renders itself.
type Ending struct {
	Why turn.Why
	// Reason is the wire's finish reason where the provider gave one.
	Reason string
	// Stop is the stop sequence that was hit, for dialects that name it.
	Stop string
	// FinishSent, UsageSent: the client already has the finish (the usage
	// record); only what is missing is rendered.
	FinishSent, UsageSent bool
	// Usage is the record to send; Known false if nothing is known.
	Usage turn.Usage
}

// Failure is the end of a turn that could not be completed.
type Failure struct {
	// Cause is the first interruption's short name, Reason the planner's
	// token for why it was not healed.
	Cause, Reason string
	// Status is the HTTP status the provider's fault stands for; 0: 502.
	Status  int
	Type    string // the provider's own error type, if it named one
	Code    string
	Message string
	// Raw is the provider's own error event data, relayed verbatim when set.
	Raw []byte
}
