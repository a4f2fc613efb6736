package proxy

import (
	"context"
	"errors"
	"sync"

	"github.com/unbroken-llm/unbroken/ledger"
)

// maxMissed bounds the runs that are known to lack a turn.
const maxMissed = 16 << 10

// missed are the runs of which the ledger did not take a turn that the application
// has: whoever does not report its attempts may have executed calls that the record
// knows nothing of. Losing the ledger makes recovery answer unknown, never safe.
type missed struct {
	mu   sync.Mutex
	runs map[ledger.RunKey]bool
	all  bool // too many to know them apart
}

// note remembers whether the last turn of a run was taken.
func (m *missed) note(key ledger.RunKey, err error) {
	var no *ledger.Refusal
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		delete(m.runs, key)
	case errors.As(err, &no): // the ledger answered
	case len(m.runs) >= maxMissed:
		m.all = true
	default:
		if m.runs == nil {
			m.runs = map[ledger.RunKey]bool{}
		}
		m.runs[key] = true
	}
}

func (m *missed) has(key ledger.RunKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all || m.runs[key]
}

// doubting is the ledger as others may see it.
type doubting struct {
	ledger.Store
	missed *missed
}

// Load implements [ledger.Store]. A run that reports its attempts is not in doubt: of
// a turn that is not recorded no attempt can be announced.
func (d doubting) Load(ctx context.Context, key ledger.RunKey) (ledger.Stored, error) {
	got, err := d.Store.Load(ctx, key)
	if err == nil && got.Doubt == "" && !got.Run.Reports && d.missed.has(key) {
		got.Doubt = "a turn of this run could not be recorded"
	}
	return got, err
}
