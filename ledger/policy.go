package ledger

// Recovery is what may become of a tool call whose execution was begun and whose
// result is not known.
type Recovery uint8

const (
	// NeverReplay: it is begun once; then nobody can know.
	NeverReplay Recovery = iota
	// Replay: it may be executed again: it has no effect, or the same once more.
	Replay
	// Reconnect: the operation may be asked, by its id, what became of it.
	Reconnect
)

var recoveries = [...]string{"never_replay", "replay", "reconnect"}

func (r Recovery) String() string { return spelled(recoveries[:], int(r)) }

// ParseRecovery reads what Recovery.String writes; "" is [NeverReplay].
func ParseRecovery(s string) (Recovery, bool) {
	if s == "" {
		return NeverReplay, true
	}
	n, ok := parse(recoveries[:], s)
	return Recovery(n), ok
}

// MaxAttempts bounds the executions of one call, the first included.
const MaxAttempts = 3

// Policy is the recovery policy of a tool.
type Policy struct {
	Recovery Recovery
	// Attempts, the first included; 0: [MaxAttempts]. [NeverReplay] has one.
	Attempts int
}

// attempts is how often a call may be started.
func (p Policy) attempts() int {
	switch {
	case p.Recovery == NeverReplay:
		return 1
	case p.Attempts == 0:
		return MaxAttempts
	}
	return p.Attempts
}

// ToolPolicy is the policy of the tool of that name.
type ToolPolicy struct {
	Tool string
	Policy
}

// policy returns the policy of a tool.
func (r *Run) policy(tool string) Policy {
	for _, p := range r.Policies {
		if p.Tool == tool {
			return p.Policy
		}
	}
	return Policy{}
}
