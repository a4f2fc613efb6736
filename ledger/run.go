package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// RunState is where a run is.
type RunState uint8

const (
	// Running: a step or a batch is under way, or the next inference is due.
	Running RunState = iota
	// Awaiting: nothing goes on until the ticket is redeemed.
	Awaiting
	// Ended absorbs: no entry changes an ended run.
	Ended
)

var runStates = [...]string{"running", "awaiting", "ended"}

func (s RunState) String() string { return spelled(runStates[:], int(s)) }

// EndCause is why a run ended.
type EndCause uint8

const (
	// Completed: its last turn asked for no tool.
	Completed EndCause = iota + 1
	// StepLimit: the application's own bound.
	StepLimit
	// Cancelled by its user.
	Cancelled
	// Stopped by its operator.
	Stopped
	// Failed: Run.FailType says of what.
	Failed
	// Unknowable: it cannot be known whether an effect took place, and the
	// application ended the run over it.
	Unknowable
)

var endCauses = [...]string{"", "completed", "step_limit", "cancelled", "stopped", "failed", "indeterminate"}

func (c EndCause) String() string { return spelled(endCauses[:], int(c)) }

// ParseEndCause reads what EndCause.String writes.
func ParseEndCause(s string) (EndCause, bool) {
	n, ok := parse(endCauses[:], s)
	return EndCause(n), ok && n != 0
}

// CallState is where a tool call is.
type CallState uint8

const (
	// Requested: the model asked for it in a turn that was finished.
	Requested CallState = iota
	// Executing: an attempt was announced, durably, before its effect.
	Executing
	// Waiting: it cannot go on until its ticket is redeemed.
	Waiting
	// Done: it has a result.
	Done
	// Indeterminate: whether it ran cannot be known, or no longer matters.
	Indeterminate
)

var callStates = [...]string{"requested", "executing", "awaiting", "completed", "indeterminate"}

func (s CallState) String() string { return spelled(callStates[:], int(s)) }

// Terminal reports whether a call can still change.
func (s CallState) Terminal() bool { return s == Done || s == Indeterminate }

// Digest is the SHA-256 of a message or a result.
type Digest [sha256.Size]byte

// Sum returns the digest of b.
func Sum(b []byte) Digest { return sha256.Sum256(b) }

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(b []byte) error {
	if len(b) != 2*len(d) {
		return hex.ErrLength
	}
	_, err := hex.Decode(d[:], b)
	return err
}

// Run is what is known about one run. It is never changed in place: Apply returns
// another.
type Run struct {
	// Who. Fixed when the run begins.
	ID      checkpoint.RunID
	Thread  string           // the conversation, if the application told
	Parent  checkpoint.RunID // the ended run, or the run it branched off, that this one goes on from
	Dialect string
	Model   string
	Began   time.Time

	// Version grows by one with every entry that changed the run.
	Version uint64
	Updated time.Time // never goes back, whatever clocks do
	// Fence is the newest claim of an application's process, 0: none yet.
	Fence    uint64
	Holder   string // as it named itself
	ClaimKey string

	State  RunState
	Cause  EndCause // of Ended
	Failed string   // type of failure, with Cause Failed

	// Reports: the application declared, before the first batch, that it
	// reports every attempt before its effect.
	Reports bool
	// Policies is the recovery policy per tool; a tool without one is [NeverReplay].
	Policies []ToolPolicy

	// Dropped counts the oldest steps, which are no longer in Steps; the number
	// of Steps[i] is Dropped+i+1.
	Dropped int
	Steps   []Step
	// Tickets holds what is awaited and the last that were redeemed.
	Tickets []Ticket
	// Flags are oddities of the run, oldest first, each once.
	Flags []string
	// Pending are the lineages of inferences that were asked for, and of whose turns
	// nothing is recorded: they are under way, or were lost. The next step, and the end
	// of the run, take all of them away.
	Pending []string `json:",omitempty"`
}

// Limits of a run. Beyond them an entry is refused with [ErrTooLarge], or the
// oldest finished detail makes room, as each says.
const (
	MaxSteps   = 64        // steps in detail; finalized older ones are dropped
	MaxBatch   = 128       // calls of one step
	MaxTickets = 64        // redeemed older ones are dropped
	MaxFlags   = 32        // further ones are not noted
	MaxPending = 16        // of further ones it is only known that there are some
	MaxResult  = 256 << 10 // bytes of one result that is kept in full
	MaxResults = 4 << 20   // bytes of the results of one batch
	MaxName    = 256       // bytes of a tool's name, a ticket, a key …
)

// Step is one inference and the batch it asked for.
type Step struct {
	N       int
	Message Digest // of the assistant's message
	// Lineage identifies the history up to and including that message, so that a
	// later request can be recognised as its continuation; empty: unknown.
	Lineage string
	// Alias is the same for requests that name the turn instead of carrying it.
	Alias string
	Model string
	// Finish is the provider's reason, as it was sent.
	Finish string
	At     time.Time
	// Calls is the batch, in the order of the message.
	Calls []Call
	// Finalized: all calls are terminal, and their results published.
	Finalized bool
}

// Call is one tool call.
type Call struct {
	// ID is the provider's. Some repeat across steps; Op does not.
	ID   string
	Op   string // operation id: stable, for reconciliation downstream
	Name string
	Args Digest
	// Policy as it was when the batch was committed.
	Policy Policy

	State CallState
	// Attempts that were started; the last is the current one.
	Attempts []Attempt
	Ticket   string // while Waiting
	Result   *Outcome
	// Why it is Indeterminate.
	Why string
}

// Attempt is one execution of a call.
type Attempt struct {
	N     int
	Fence uint64 // of the process that announced it
	Key   string
	At    time.Time
}

// Outcome is the result of a call.
type Outcome struct {
	Digest Digest
	// Content as the application told it, until the next step is committed, whose
	// request carried it; nil when it was seen on the wire.
	Content []byte
	Error   bool // the tool says that it failed: a result like any other
	Wire    bool // seen in a later request
	Attempt int  // 0: unknown
	At      time.Time
}

// Lines returns what later requests may find the step by.
func (s *Step) Lines() (out []string) {
	for _, l := range []string{s.Lineage, s.Alias} {
		if l != "" {
			out = append(out, l)
		}
	}
	return out
}

// Before reports whether a request that goes on from the turn prior goes on from s.
func (s *Step) Before(prior string) bool { return prior != "" && slices.Contains(s.Lines(), prior) }

// Open returns the step whose batch is not finalized; nil: there is none. It is
// always the last one.
func (r *Run) Open() *Step {
	if s := r.Last(); s != nil && !s.Finalized {
		return s
	}
	return nil
}

// Last returns the newest step, nil before the first.
func (r *Run) Last() *Step {
	if len(r.Steps) == 0 {
		return nil
	}
	return &r.Steps[len(r.Steps)-1]
}

// Results returns the published results of step n, in the order of its calls, nil
// unless its batch is finalized.
func (r *Run) Results(n int) []*Outcome {
	i := n - r.Dropped - 1
	if i < 0 || i >= len(r.Steps) || !r.Steps[i].Finalized {
		return nil
	}
	out := make([]*Outcome, len(r.Steps[i].Calls))
	for j := range out {
		out[j] = r.Steps[i].Calls[j].Result
	}
	return out
}

// find returns the call that ref names: an operation id, or a provider's id in the
// newest step that has it.
func (r *Run) find(ref string) (*Step, *Call) {
	for i := len(r.Steps) - 1; i >= 0; i-- {
		for j := range r.Steps[i].Calls {
			if c := &r.Steps[i].Calls[j]; c.Op == ref || c.ID == ref {
				return &r.Steps[i], c
			}
		}
	}
	return nil, nil
}

// Operation returns the operation id of call id in step n of a run.
func Operation(key RunKey, n int, id string) string {
	h := sha256.New()
	h.Write([]byte("unbroken operation 1\x00"))
	h.Write(key[:])
	h.Write([]byte(strconv.Itoa(n) + "\x00" + id))
	return "op_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// RunKey identifies a run of a caller in a store. It is a hash, so that nothing a
// client sends is ever a key or a path.
type RunKey [sha256.Size]byte

// Key returns the key of a run of scope.
func Key(scope checkpoint.Scope, id checkpoint.RunID) RunKey {
	h := sha256.New()
	h.Write([]byte("unbroken run 1\x00"))
	h.Write(scope[:])
	h.Write([]byte(id))
	return RunKey(h.Sum(nil))
}

func (k RunKey) String() string { return hex.EncodeToString(k[:]) }

func spelled(names []string, n int) string {
	if n < len(names) {
		return names[n]
	}
	return "?" + strconv.Itoa(n)
}

func parse(names []string, s string) (int, bool) {
	for i, n := range names {
		if n == s {
			return i, true
		}
	}
	return 0, false
}
