package checkpoint

import "time"

// Phase is where a turn is.
type Phase uint8

const (
	// Live: it is being streamed, or was when its owner died.
	Live Phase = iota
	// Broken: recovery was given up; a caller's retry goes on with a fresh budget.
	Broken
	// Abandoned: its client left. It is resumed only by name.
	Abandoned
	// Finished: the client has its end. It is replayed for a short time.
	Finished
)

var phaseNames = [...]string{"live", "broken", "abandoned", "finished"}

func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return "phase?"
}

// State is what changes about a turn besides its log; [Store].Mark replaces it.
type State struct {
	Phase Phase
	// Seen is how much of the log, in bytes, describes what the client was sent.
	Seen int64
	// Attempt counts the upstream attempts so far, Recoveries those that the
	// budget was charged for.
	Attempt, Recoveries int
	// Causes are the short names of the interruptions, oldest first; see AddCause.
	Causes []string
}

// MaxCauses bounds [State].Causes.
const MaxCauses = 32

// AddCause notes an interruption. Beyond [MaxCauses] the first is kept, which is
// what a client is told in the end, and the oldest of the others makes room.
func (s *State) AddCause(name string) {
	if len(s.Causes) == MaxCauses {
		s.Causes = append(s.Causes[:1:1], s.Causes[2:]...)
	}
	s.Causes = append(s.Causes, name)
}

// Record is one checkpoint.
type Record struct {
	// Who: fixed when the turn begins.
	Run         RunID
	Thread      string // the conversation, if the application told
	Step        int64  // the run's step, if known
	Fingerprint Fingerprint
	Dialect     string
	Route       string
	Model       string

	// Set by the store. Times have microsecond precision.
	Owner            Owner // empty: released
	Created, Updated time.Time

	State State
	// Log is the turn log so far, as turn.Replay reads it.
	Log []byte
}

// Clone returns a deep copy.
func (r *Record) Clone() *Record {
	c := *r
	c.State.Causes = append([]string(nil), r.State.Causes...)
	c.Log = append([]byte(nil), r.Log...)
	return &c
}
