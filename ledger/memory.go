package ledger

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// MemoryConfig configures a [Memory]. Zero values mean the defaults.
type MemoryConfig struct {
	// Clock tells the time. Required.
	Clock func() time.Time
	// TTL is how long a run is kept after its last write; default [TTL].
	TTL time.Duration
	// MaxTotal bounds the encoded runs, in bytes; default 256 MiB. When it is
	// reached, ended runs make room first, then those longest unwritten.
	MaxTotal int64
	// Forgot hears of each run that was dropped for its age or for room. The store
	// is locked meanwhile. nil: nobody does.
	Forgot func(RunKey)
}

// Memory is a [Store] in memory. It keeps runs encoded, so that what it hands out
// is the caller's and the encoding is always in use.
type Memory struct {
	c MemoryConfig

	mu       sync.Mutex
	runs     map[RunKey]*kept
	lineages map[lineage][]RunKey // newest last
	order    *list.List           // of RunKey, by last write, newest first
	total    int64
}

type kept struct {
	b       []byte
	version uint64
	ended   bool
	at      time.Time
	lines   []lineage
	place   *list.Element
}

type lineage struct {
	scope checkpoint.Scope
	hash  string
}

// NewMemory returns an empty store.
func NewMemory(c MemoryConfig) *Memory {
	if c.Clock == nil {
		panic("BUG: ledger: a memory store without a clock")
	}
	if c.TTL == 0 {
		c.TTL = TTL
	}
	if c.MaxTotal == 0 {
		c.MaxTotal = 256 << 20
	}
	return &Memory{c: c, runs: map[RunKey]*kept{}, lineages: map[lineage][]RunKey{}, order: list.New()}
}

// Load implements [Store].
func (m *Memory) Load(ctx context.Context, key RunKey) (Stored, error) {
	if err := ctx.Err(); err != nil {
		return Stored{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.find(key)
	if k == nil {
		return Stored{}, ErrNotFound
	}
	r, err := Decode(k.b)
	return Stored{Run: r}, err
}

// Save implements [Store].
func (m *Memory) Save(ctx context.Context, key RunKey, scope checkpoint.Scope, r *Run, expect uint64) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	b := Encode(r)
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.find(key)
	switch {
	case k == nil && expect != 0:
		return fmt.Errorf("%w: it is gone", ErrChanged)
	case k != nil && k.version != expect:
		return fmt.Errorf("%w: version %d, expected %d", ErrChanged, k.version, expect)
	}
	m.drop(key)
	k = &kept{b: b, version: r.Version, ended: r.State == Ended, at: m.c.Clock()}
	if s := r.Last(); s != nil {
		for _, hash := range s.Lines() {
			at := lineage{scope, hash}
			line := append(m.lineages[at], key)
			m.lineages[at] = line[max(0, len(line)-MaxFound):]
			k.lines = append(k.lines, at)
		}
	}
	m.runs[key] = k
	k.place = m.order.PushFront(key)
	m.total += int64(len(b))
	m.room(key)
	return nil
}

// Find implements [Store].
func (m *Memory) Find(ctx context.Context, scope checkpoint.Scope, hash string) ([]RunKey, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := slices.Clone(m.lineages[lineage{scope, hash}])
	out = slices.DeleteFunc(out, func(k RunKey) bool { return m.find(k) == nil })
	slices.Reverse(out)
	return out, nil
}

// Recent implements [Store].
func (m *Memory) Recent(ctx context.Context, most int) ([]RunKey, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []RunKey
	for e := m.order.Front(); e != nil && len(out) < min(most, MaxRecent); {
		key := e.Value.(RunKey)
		e = e.Next() // before find may drop it
		if m.find(key) != nil {
			out = append(out, key)
		}
	}
	return out, nil
}

// find returns a run unless it has expired.
func (m *Memory) find(key RunKey) *kept {
	k := m.runs[key]
	if k != nil && m.c.Clock().Sub(k.at) >= m.c.TTL {
		m.forget(key)
		return nil
	}
	return k
}

func (m *Memory) forget(key RunKey) {
	m.drop(key)
	if m.c.Forgot != nil {
		m.c.Forgot(key)
	}
}

func (m *Memory) drop(key RunKey) {
	k := m.runs[key]
	if k == nil {
		return
	}
	delete(m.runs, key)
	m.total -= int64(len(k.b))
	m.order.Remove(k.place)
	is := func(other RunKey) bool { return other == key }
	for _, at := range k.lines {
		if m.lineages[at] = slices.DeleteFunc(m.lineages[at], is); len(m.lineages[at]) == 0 {
			delete(m.lineages, at)
		}
	}
}

// room makes room, for which the run just written is the last to go.
func (m *Memory) room(last RunKey) {
	for _, ended := range []bool{true, false} {
		for e := m.order.Back(); e != nil && m.total > m.c.MaxTotal; {
			key := e.Value.(RunKey)
			e = e.Prev()
			if key != last && (m.runs[key].ended || !ended) {
				m.forget(key)
			}
		}
	}
}
