package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
)

// maxMissed bounds the runs that are known to lack a turn.
const maxMissed = 16 << 10

// missedEvery is how often the ledger is told again of what it missed.
const missedEvery = 250 * time.Millisecond

// missed are the runs of which the ledger did not take a turn that the application
// has: whoever does not report its attempts may have executed calls that the record
// knows nothing of. Losing the ledger makes recovery answer unknown, never safe.
//
// What is here dies with this process and is no other's to see. So it is here only
// until the run's own record can say it: that an inference was asked for whose turn it
// lacks.
type missed struct {
	mu   sync.Mutex
	runs map[ledger.RunKey]lostTurn
	all  bool // too many to know them apart
	on   bool // somebody tells the ledger
}

// lostTurn is the turn that a run lacks.
type lostTurn struct {
	who     checkpoint.Scope
	lineage string
	again   bool // it had ended before it was to be told, and may be long past
}

// note remembers whether the last turn of a run was taken.
func (m *missed) note(s *Server, key ledger.RunKey, turn lostTurn, err error) {
	var no *ledger.Refusal
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		delete(m.runs, key)
	case errors.As(err, &no): // the ledger answered
	case turn.again && m.lacks(key): // which is newer, and of which more is known
	case len(m.runs) >= maxMissed:
		m.all = true
	default:
		if m.runs == nil {
			m.runs = map[ledger.RunKey]lostTurn{}
		}
		m.runs[key] = turn
		if !m.on {
			m.on = true
			s.retry(missedEvery, func() bool { return m.record(s.ledger) })
		}
	}
}

// record tells the ledger what its runs lack, and stops at the first that it does not
// take. It reports whether nothing is left.
func (m *missed) record(l ledger.Store) (done bool) {
	for {
		key, turn, ok := m.next()
		if !ok {
			return true
		}
		ctx, cancel := context.WithTimeout(context.Background(), storeWait)
		err := m.tell(ctx, l, key, turn, ledger.Infer{Lineage: turn.lineage, Again: turn.again})
		if err == nil && !m.told(key, turn) {
			// A later turn of the run was taken meanwhile, and with it the application
			// has gone past this one.
			err = m.tell(ctx, l, key, turn, ledger.Lapse{Lineage: turn.lineage})
		}
		cancel()
		if err != nil {
			return false
		}
	}
}

// tell appends an entry. A run that refuses it has ended, or there is none: nobody is
// told to go on with it.
func (m *missed) tell(ctx context.Context, l ledger.Store, key ledger.RunKey, turn lostTurn, a ledger.Act) error {
	_, _, err := ledger.Append(ctx, l, key, turn.who, ledger.Entry{At: time.Now(), Do: a})
	var no *ledger.Refusal
	if errors.As(err, &no) {
		return nil
	}
	return err
}

// next returns a turn that is still to be told. If there is none, the next one begins
// anew.
func (m *missed) next() (key ledger.RunKey, turn lostTurn, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, turn := range m.runs {
		return key, turn, true
	}
	m.on = false
	return key, turn, false
}

// told takes a turn off the list. It returns false if it was not there any more.
func (m *missed) told(key ledger.RunKey, turn lostTurn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, was := m.runs[key]
	if now == turn {
		delete(m.runs, key)
	}
	return was
}

// lacks reports whether a run is known to lack a turn; m.mu is held.
func (m *missed) lacks(key ledger.RunKey) bool {
	_, has := m.runs[key]
	return has
}

func (m *missed) has(key ledger.RunKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all || m.lacks(key)
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
