package runs

import "time"

// Header fields of the API.
const (
	// FenceHeader is the caller's claim, a decimal number.
	FenceHeader = "X-Run-Fence"
	// KeyHeader makes a repetition recognisable.
	KeyHeader = "Idempotency-Key"
	// VersionHeader is the version that the caller saw, quoted as an entity tag;
	// the run has moved on if it is another (RFC 9110 §13.1.1).
	VersionHeader = "If-Match"
)

// Advice is what may be done now; see the constants of package ledger.
type Advice string

// The advices for a run, and those for a call.
const (
	Unknown      Advice = "unknown"
	RedeliverEnd Advice = "redeliver_end"
	NextStep     Advice = "next_step"
	SettleBatch  Advice = "settle_batch"
	AwaitTicket  Advice = "await_ticket"
	StandDown    Advice = "stand_down"

	Keep      Advice = "keep"
	Execute   Advice = "execute"
	Replay    Advice = "replay"
	Reconnect Advice = "reconnect"
	InFlight  Advice = "in_flight"
	GiveUp    Advice = "indeterminate"
)

// Recovery is the answer to GET /runs/{id}/recovery.
type Recovery struct {
	Advice Advice `json:"advice"`
	Reason string `json:"reason"`
	// Claim: the run must be claimed before anything is done.
	Claim bool `json:"claim,omitempty"`
	Step  int  `json:"step,omitempty"`
	// Ticket that alone lets the run go on.
	Ticket *Ticket `json:"ticket,omitempty"`
	Calls  []Call  `json:"calls,omitempty"`
	// Run as it is; nil if nothing is known of it.
	Run *Run `json:"run,omitempty"`
}

// Call is one call of a batch, and in a Recovery what may be done with it.
type Call struct {
	Op     string `json:"op"`
	ID     string `json:"id"`
	Name   string `json:"name"`
	State  string `json:"state"`
	Policy string `json:"policy"`
	// Attempts that were announced.
	Attempts int `json:"attempts,omitempty"`
	// Advice, Reason and the number of the Attempt to announce, in a Recovery.
	Advice  Advice `json:"advice,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Ticket  string `json:"ticket,omitempty"`
	// Result, of a finalized batch.
	Result *Result `json:"result,omitempty"`
	Why    string  `json:"why,omitempty"` // it is indeterminate
}

// Result of a call.
type Result struct {
	Digest string `json:"digest"` // SHA-256, hex
	// Content as the application told it; absent if only the digest is known, or
	// if the next step has been committed, whose request carried it.
	Content []byte    `json:"content,omitempty"`
	Error   bool      `json:"error,omitempty"`
	Wire    bool      `json:"wire,omitempty"` // seen in a later request
	Attempt int       `json:"attempt,omitempty"`
	At      time.Time `json:"at"`
}

// Ticket that something waits for.
type Ticket struct {
	ID      string     `json:"id"`
	Kind    string     `json:"kind"`
	Call    string     `json:"call,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
}

// Step is one inference and its batch.
type Step struct {
	N         int       `json:"n"`
	Message   string    `json:"message"` // SHA-256 of the assistant's message, hex
	Model     string    `json:"model,omitempty"`
	Finish    string    `json:"finish,omitempty"`
	At        time.Time `json:"at"`
	Finalized bool      `json:"finalized"`
	Calls     []Call    `json:"calls,omitempty"`
}

// Run is what is known of a run.
type Run struct {
	ID      string    `json:"id"`
	Thread  string    `json:"thread,omitempty"`
	Parent  string    `json:"parent,omitempty"`
	Dialect string    `json:"dialect,omitempty"`
	Model   string    `json:"model,omitempty"`
	State   string    `json:"state"`
	Cause   string    `json:"cause,omitempty"`
	Failed  string    `json:"failed,omitempty"`
	Reports bool      `json:"reports"`
	Version uint64    `json:"version"`
	Fence   uint64    `json:"fence,omitempty"`
	Holder  string    `json:"holder,omitempty"`
	Began   time.Time `json:"began"`
	Updated time.Time `json:"updated"`
	// Count of steps, and whether the batch of the last one is Open; in lists only.
	Count int  `json:"count,omitempty"`
	Open  bool `json:"open,omitempty"`
	// Key is what the operator asks for the run by; in lists only.
	Key string `json:"key,omitempty"`
	// Dropped steps are the oldest, of which no detail is kept.
	Dropped int      `json:"dropped,omitempty"`
	Steps   []Step   `json:"steps,omitempty"`
	Tickets []Ticket `json:"tickets,omitempty"` // awaited
	Flags   []string `json:"flags,omitempty"`
	// Pending counts the inferences that were asked for and whose turns are not
	// recorded: they are under way, or were lost.
	Pending int `json:"pending,omitempty"`
	// Doubt says why this may not be the last word.
	Doubt string `json:"doubt,omitempty"`
}

// Policy is the recovery policy of a tool.
type Policy struct {
	// Recovery is never_replay (the default), replay or reconnect.
	Recovery string `json:"recovery"`
	// Attempts, the first included, 3 at most; 0: 3.
	Attempts int `json:"attempts,omitempty"`
}

// Declaration tells how an application handles calls.
type Declaration struct {
	// Reports: every attempt is announced, and acknowledged, before its effect.
	Reports  bool              `json:"reports"`
	Policies map[string]Policy `json:"policies,omitempty"`
}

// Turn is a turn of the model that the application tells of itself, see
// [Claimed.Step]. A call's arguments are JSON, as the model wrote them.
type Turn struct {
	Message       []byte // the assistant's message, in whatever form the application keeps it
	Model, Finish string
	Calls         []Asked
	Ticket        *Ticket // nothing of the batch is begun before it is redeemed
	Paused        bool    // the provider broke off and expects to be asked again
}

// Asked is a call as the model asked for it. Its id is the provider's; where the wire
// has none, one that is the turn's own.
type Asked struct {
	ID, Name string
	Args     []byte
}

// beginning is the body of PUT /runs/{id}.
type beginning struct {
	Thread string `json:"thread,omitempty"`
	Parent string `json:"parent,omitempty"`
}

// claiming is that of POST /runs/{id}/claim.
type claiming struct {
	Holder string `json:"holder,omitempty"`
}

// committing is that of POST /runs/{id}/steps, for applications whose inference does
// not go through the sidecar.
type committing struct {
	Message string  `json:"message"`
	Model   string  `json:"model,omitempty"`
	Finish  string  `json:"finish,omitempty"`
	Calls   []asked `json:"calls,omitempty"`
	Ticket  *Ticket `json:"ticket,omitempty"`
	Paused  bool    `json:"paused,omitempty"`
}

type asked struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args,omitempty"` // SHA-256, hex
}

// starting is that of POST /runs/{id}/calls/{call}/start.
type starting struct {
	Attempt int `json:"attempt"`
}

// waiting is that of POST …/calls/{call}/wait and /runs/{id}/wait.
type waiting struct {
	Ticket Ticket `json:"ticket"`
}

// resuming is that of POST /runs/{id}/resume.
type resuming struct {
	Ticket string `json:"ticket"`
	Kind   string `json:"kind"`
}

// resulting is that of POST …/calls/{call}/result.
type resulting struct {
	Attempt int    `json:"attempt,omitempty"`
	Content []byte `json:"content,omitempty"`
	Digest  string `json:"digest,omitempty"`
	Error   bool   `json:"error,omitempty"`
}

// losing is that of POST …/calls/{call}/lose.
type losing struct {
	Why string `json:"why"`
}

// ending is that of POST /runs/{id}/end.
type ending struct {
	Cause string `json:"cause"`
	Type  string `json:"type,omitempty"`
}

// told is the answer to an entry.
type told struct {
	Effect string `json:"effect"` // new or replayed
	Run    *Run   `json:"run"`
}

// listed is the answer to GET /runs.
type listed struct {
	Runs []*Run `json:"runs"`
}

// failed is the body of an error.
type failed struct {
	Error struct {
		Code    string   `json:"code"`
		Message string   `json:"message"`
		Legal   []string `json:"legal,omitempty"`
	} `json:"error"`
}
