package planner

import (
	"time"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/turn"
)

// Kind is one of the plans of DESIGN §3.
type Kind uint8

const (
	// Refuse ends the turn with the dialect's error and the first cause.
	Refuse Kind = iota
	// Finish renders the missing terminator locally.
	Finish
	// Resume re-attaches to a generation that the provider still holds.
	Resume
	// SynthesizeToolUse (R2) ends the turn as tool use with every complete call.
	SynthesizeToolUse
	// TruncateBeforeTool (R3) drops unfinished calls and continues from the text.
	TruncateBeforeTool
	// ContinueText (R1) continues from the text.
	ContinueText
	// WholeRestart (R4) sends the identical request again.
	WholeRestart
)

var kindNames = [...]string{"refuse", "finish", "resume", "r2_synthesize_tool_use", "r3_truncate_before_tool", "r1_continue_text", "r4_whole_restart"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "plan?"
}

// Upstream reports whether the plan needs another request to a provider.
func (k Kind) Upstream() bool {
	switch k {
	case Resume, TruncateBeforeTool, ContinueText, WholeRestart:
		return true
	}
	return false
}

// Where says which target a plan asks.
type Where uint8

const (
	// Here: the current one again.
	Here Where = iota
	// Next: the next one of the route.
	Next
	// Larger: the next one that the route keeps for prompts that are too long.
	Larger
)

var whereNames = [...]string{"here", "next", "larger"}

func (w Where) String() string {
	if int(w) < len(whereNames) {
		return whereNames[w]
	}
	return "where?"
}

// Plan is what to do, and why.
type Plan struct {
	Kind Kind
	// To is which target is asked.
	To Where
	// Free: it costs no recovery, since the last attempt reached nobody.
	Free bool
	// Reason is a short token, never empty.
	Reason string
	// Wait is how long to wait before the next request.
	Wait time.Duration
	// Manner says how to continue (R1, R3, Resume).
	Manner turn.Manner
	// End is the meaning of the finish to render (Finish): Unfinished means
	// "the one the provider gave".
	End turn.Why
	// Withdraw: what the client saw must be announced as retracted first (mode
	// "events").
	Withdraw bool
}

// Option is another target of the route.
type Option struct {
	Exists bool
	Manner turn.Manner // its best manner; never Provider, since it holds nothing of ours
}

// Facts is everything that a decision may depend on.
type Facts struct {
	Cause interrupt.Cause

	// What the provider said.

	Finished   bool   // the semantic end of every choice was seen
	Words      bool   // answer text other than whitespace
	Complete   int    // complete client-side calls
	Unfinished int    // calls that were cut
	HostedOpen string // name of a provider-side tool cut in flight
	HostedSeen bool   // any provider-side tool item, finished or not
	Carried    bool   // finished items the dialect can carry in a continuation (hosted results)
	Blocked    string // name of a block that nothing can carry or rebuild
	// DocumentDone: a structured answer is one whole JSON document already.
	DocumentDone bool

	// What the client has.

	Visible   bool // any content beyond replayable head events
	Arguments bool // part of an unfinished call (mode events)
	Thinking  bool // the client saw reasoning of this turn
	Events    bool // the caller understands retractions
	Unsent    bool // nothing: what was said can be taken back unseen
	Kept      bool // the name by which later requests will ask the provider for this very generation

	// What was asked.

	Choices     int
	Logprobs    bool
	HostedTools bool   // provider-side tools are declared
	Unsplicable string // a feature no continuation can carry
	// Committed: what is said joins a history that the provider keeps for the
	// caller, under a name of the caller's.
	Committed bool

	// What is possible.

	Manner     turn.Manner // best manner left on the target
	MannerOnce bool        // the last attempt died of its manner: ask in the next one at no cost
	TokensLeft int64       // of the caller's output limit; negative: no limit
	Tries      int         // requests made of the target since it last brought something
	Probe      bool        // the last of them was a breaker's probe
	Fallback   bool        // it is not the first of its route
	Next       Option      // the target behind it
	Larger     Option      // the one for prompts that are too long

	// What is left.

	Recoveries int           // recoveries left
	Retries    int           // recoveries already made in this request
	WaitLeft   time.Duration // of the waiting budget
	Jitter     float64       // [0,1)
	MidStream  bool          // the response head is out
}
