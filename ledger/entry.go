package ledger

import (
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Entry is one fact, or one command, on its way into a run.
type Entry struct {
	// At is the writer's clock.
	At time.Time
	// Fence is the writer's claim. 0: the sidecar, which writes what it saw, or a
	// caller without one.
	Fence uint64
	// Told: an application tells it, over the API. Without a claim it may tell of
	// steps and results only while nobody has one: a process that was succeeded gets
	// no further by leaving its fence away.
	Told bool
	// Key makes the entry's repetition recognisable where its content does not:
	// required for Start, Wait and Resume.
	Key string
	// Expect is the version that the writer saw; 0: any. Any other is ErrVersion.
	Expect uint64
	Do     Act
}

// Act is what an entry says.
type Act interface {
	// Name is the act's short name, as refusals list it.
	Name() string
}

// Begin opens a run. Beginning again is no error.
type Begin struct {
	ID      checkpoint.RunID
	Thread  string
	Parent  checkpoint.RunID
	Dialect string
	Model   string
}

// Claim makes the writer the run's process. The newest claim wins: what an older
// one writes from now on is ErrFenced. The number is Run.Fence afterwards.
type Claim struct{ Holder string }

// Declare tells how the application handles calls. Reports can be declared only
// before the first batch: what was not reported before cannot be known later.
type Declare struct {
	Reports  bool
	Policies []ToolPolicy
}

// Commit adds a step: the assistant's finished message with its whole batch. A
// message without calls completes the run, unless a ticket makes it wait.
type Commit struct {
	Message Digest
	Lineage string
	Alias   string
	Model   string
	Finish  string
	Calls   []Asked
	Ticket  *Ticket // the run waits for it, before anything of the batch is begun
	// Paused: the provider broke off a long turn and expects to be asked again,
	// so that a message without calls does not end the run.
	Paused bool
	// Supersede: a batch that is still open is given up. The sidecar sets it when the
	// same history was asked for again and answered otherwise, before anything of the
	// first answer was begun.
	Supersede bool
	// Since is how many steps the run had when the turn was asked for. One behind them
	// with that lineage and message is this turn, however far the run has come since:
	// two connections may tell of it.
	Since int
	// Again: the turn had ended before whoever tells of it came to it. It may have been
	// told by the one that asked for it, and may be long past: only a run that awaits it
	// takes it, which is one without steps, one that has its lineage pending, or one
	// whose last step is Prior. Any other has it, or has gone past it; nothing changes.
	Again bool
	// Prior is the lineage of the turn that the request goes on from; empty: none.
	Prior string
}

// Asked is a call as the model asked for it.
type Asked struct {
	ID, Name string
	Args     Digest
}

// Start announces attempt N of a call, before its effect.
type Start struct {
	Call string // operation id or provider's id
	N    int
}

// Wait makes a call, or with Call empty the run, wait for a ticket.
type Wait struct {
	Call   string
	Ticket Ticket // ID, Kind, Expires
}

// Resume redeems a ticket. A call goes on as the attempt that it waits in, or as
// its first when it had none: waiting is no ambiguity that a policy need cover.
type Resume struct{ Ticket, Kind string }

// Result ends a call with its outcome. The same outcome again is no error, another
// one is ErrConflict; but what the application tells and what the wire shows are two
// renderings of one result and not compared: the first of them stays.
type Result struct {
	Call    string
	Attempt int // 0: the current one
	Digest  Digest
	Content []byte // nil: only the digest is kept
	Error   bool
}

// Lose gives a call up: whether it ran cannot be known.
type Lose struct{ Call, Why string }

// End ends the run. Its open calls are given up.
type End struct {
	Cause EndCause
	Type  string // with Failed
}

// Flag notes an oddity.
type Flag struct{ What string }

// Infer notes, before the fact, that a turn of that lineage was asked for. Its end may
// reach an application, and never the ledger: a store that is away, a sidecar that dies.
type Infer struct {
	Lineage string
	// Again: the turn had ended before the writer came to it, and may be long past. A run
	// that has a step of that lineage does not lack it.
	Again bool
}

// Lapse takes that back: the inference ended, and nobody has a turn of it.
type Lapse struct{ Lineage string }

// Name implements Act.
func (Begin) Name() string   { return "begin" }
func (Claim) Name() string   { return "claim" }
func (Declare) Name() string { return "declare" }
func (Commit) Name() string  { return "commit" }
func (Start) Name() string   { return "start" }
func (Wait) Name() string    { return "wait" }
func (Resume) Name() string  { return "resume" }
func (Result) Name() string  { return "result" }
func (Lose) Name() string    { return "lose" }
func (End) Name() string     { return "end" }
func (Flag) Name() string    { return "flag" }
func (Infer) Name() string   { return "infer" }
func (Lapse) Name() string   { return "lapse" }
