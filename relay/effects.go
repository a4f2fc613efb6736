package relay

import (
	"time"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/turn"
)

// Effects is what must be done after a step, in the order of the fields. A stream's, and
// all slices in them, are valid until its next Step.
type Effects struct {
	// Memo is to be remembered for later requests, BEFORE Persist.
	Memo *Memo
	// Persist is to be appended to the turn's checkpoint.
	Persist Persist
	// Turn is the message whose end is in Client: a fact from here on, to be told to
	// the ledger BEFORE Client. At most once in a stream.
	Turn *turn.Snapshot
	// Again goes with Turn: it had ended before this connection came to it. Whoever drove
	// it tells the ledger of it, unless he died first; and it may be long past.
	Again bool
	// Answer: what is in Client is the provider's ordinary answer, whole, to a call that
	// does not stream (or that it answered so all the same). It was not read here; what it
	// says is a fact as Turn is, to be told BEFORE Client.
	Answer bool
	// Head is the response head; at most once in a stream, BEFORE Client.
	Head *Head
	// Client is whole events (or a raw body) for the client; in dialects that drip
	// (dialect.Dripper) a sign of life is the beginning of one. When
	// Persist.Durable is set, it may leave only AFTER the checkpoint was
	// acknowledged or given up.
	Client []byte
	// Cancel: the current attempt must be closed, AFTER Client, BEFORE Open.
	Cancel bool
	// Settled goes with Cancel: the provider's turn is over, so that its
	// connection may be kept if the body ends at once.
	Settled bool
	// Open is the next attempt to start.
	Open *Attempt
	// Abandon is to be asked of the provider beside everything else, as well as it
	// goes: it ends a generation that the provider holds and nobody will read.
	Abandon *Attempt
	// End: how the client's response ends, AFTER everything else.
	End End
	// Notes are for observers; they decide nothing.
	Notes []Note
}

// Persist is one append to the checkpoint log.
type Persist struct {
	Offset int64
	Log    []byte
	// Durable: what is in Client would make the client act.
	Durable bool
}

// Head is a response head.
type Head struct {
	Status int
	// Upstream holds the provider's header fields to relay; nil when there
	// was no answer.
	Upstream Header
	// Stream: the body is an event stream of unknown length. Otherwise the
	// body follows in Client, whole, unless Raw.
	Stream bool
	// Raw: the provider's body is relayed as it comes.
	Raw bool
	// ContentType overrides the provider's when set. Of a Stream it is the media
	// type of its framing, to which the provider may have added parameters; empty:
	// text/event-stream.
	ContentType string
	// Final: Unbroken spent its own tries; tell the SDK not to multiply them.
	Final bool
	// RetryAfter: everybody is left alone for a while, this long at least; 0: for
	// another reason, or nobody knows. What the provider says goes before it.
	RetryAfter time.Duration
}

// Attempt is one request to a provider.
type Attempt struct {
	N int
	// Method is the request's; empty: the client's own. Then Below and Query are,
	// too: what is put behind the path of the client's request ("/resp_1/cancel"),
	// and what is added to its query ("stream=true"). Such a request has no body.
	Method, Below, Query string
	// Body is the request body; nil: the first attempt's again.
	Body []byte
	// Target indexes Config.Targets.
	Target int
	// Whole: the client's own request, which asks for no stream (a call that is
	// upgraded may ask for one).
	Whole bool
	// Derived: the body is not the client's own; a fresh Idempotency-Key is
	// needed.
	Derived bool
}

// End says how the client's response ends.
type End uint8

const (
	// Open: it goes on.
	Open End = iota
	// Clean: the body is complete.
	Clean
	// Abort: break the connection, so that nobody mistakes the end for a
	// good one.
	Abort
)

// NoteKind names a [Note].
type NoteKind uint8

const (
	// NoteAttempt: an attempt was opened.
	NoteAttempt NoteKind = iota + 1
	// NoteInterrupted: Cause and Plan of an interruption.
	NoteInterrupted
	// NoteSeam: a continuation was joined (or not).
	NoteSeam
	// NoteVisible: the attempt brought its first visible content.
	NoteVisible
	// NoteHealed: new content reached the client after an interruption; Gap
	// is how long the client saw nothing.
	NoteHealed
	// NoteDemoted: the target rejected Manner.
	NoteDemoted
	// NoteUnprotected: the stream is relayed as it is; Reason says why.
	NoteUnprotected
	// NoteEnd: the stream ended; Reason is the outcome.
	NoteEnd
)

// Note is one fact for metrics, traces and logs.
type Note struct {
	Kind    NoteKind
	At      time.Time
	Attempt int
	Target  int // index into Config.Targets
	Cause   interrupt.Cause
	Plan    planner.Plan
	Manner  turn.Manner
	Reason  string // seam kind, outcome token, …
	Joined  bool   // NoteSeam: it fits
	Held    int    // NoteSeam: bytes held while undecided
	Skipped int    // NoteSeam: bytes that repeated what was shown
	Gap     time.Duration
	Said    int64 // NoteInterrupted: output tokens of the turn so far, by estimate
	// NoteEnd only.
	End       End
	Summary   Summary
	Estimated bool // usage was estimated
}

// Summary is a stream in numbers.
type Summary struct {
	Attempts, Recoveries int
	Events               int64
	BytesIn, BytesOut    int64
	Heartbeats           int
	// Repaid counts prompt tokens sent again, by the providers' own usage
	// records where they came, else unknown (0).
	Repaid int64
	Usage  turn.Usage
	Status int
}
