package checkpoint

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"
)

// MemoryConfig configures a [Memory]. Zero values mean the defaults.
type MemoryConfig struct {
	// Clock tells the time. Required.
	Clock func() time.Time
	// Alive reports whether an owner still lives. nil: a process that shares this
	// memory is alive.
	Alive func(Owner) bool
	// TTL is how long a turn is kept after its last write; default 1 h.
	// FinishedTTL is that of a finished one; default 60 s.
	TTL, FinishedTTL time.Duration
	// MaxTurn bounds one log, MaxTotal all of them, in bytes; defaults 64 MiB
	// and 1 GiB. When MaxTotal is reached, turns that nobody holds make room,
	// those longest unwritten first.
	MaxTurn, MaxTotal int64
	// MaxMemos bounds what is remembered, in bytes; default 64 MiB. The oldest
	// makes room.
	MaxMemos int64
}

// Memory is a [Store] in memory.
type Memory struct {
	c MemoryConfig

	mu    sync.Mutex
	turns map[TurnKey]*held
	// offers and secrets: see memory_powers.go; memos: memory_memos.go.
	offers  map[AskKey][]offer
	secrets map[string][]byte
	memos   memos
	total   int64  // bytes of all logs
	last    uint64 // largest fence ever given
	swept   time.Time
}

// held is a record and the fence that may write it. Record.Owner is empty when
// nobody may.
type held struct {
	Record
	fence uint64
}

// sweepEvery is how often a write looks for what has expired.
const sweepEvery = 10 * time.Second

// NewMemory returns an empty store.
func NewMemory(c MemoryConfig) *Memory {
	if c.Clock == nil {
		panic("BUG: checkpoint: a memory store without a clock")
	}
	if c.TTL == 0 {
		c.TTL = time.Hour
	}
	if c.FinishedTTL == 0 {
		c.FinishedTTL = time.Minute
	}
	if c.MaxTurn == 0 {
		c.MaxTurn = 64 << 20
	}
	if c.MaxTotal == 0 {
		c.MaxTotal = 1 << 30
	}
	if c.MaxMemos == 0 {
		c.MaxMemos = 64 << 20
	}
	return &Memory{c: c, turns: map[TurnKey]*held{}, offers: map[AskKey][]offer{}, secrets: map[string][]byte{}}
}

// Claim implements [Store].
func (m *Memory) Claim(ctx context.Context, key TurnKey, owner Owner, head Record) (Fence, *Record, error) {
	now, unlock, err := m.enter(ctx)
	if err != nil {
		return Fence{}, nil, err
	}
	defer unlock()
	m.sweep(now)
	h := m.find(key, now)
	var before *Record
	switch {
	case h == nil:
		h = &held{Record: *head.Clone()}
		h.Owner, h.Log, h.State, h.Created = "", nil, State{}, now
		m.turns[key] = h
	case h.Owner != "" && h.Owner != owner && m.alive(h.Owner):
		return Fence{}, h.Clone(), ErrOwned
	default:
		before = h.Clone()
	}
	m.last = NextFence(m.last, now)
	h.fence, h.Owner = m.last, owner
	h.touch(now)
	return Fence{Key: key, N: h.fence}, before, nil
}

// Append implements [Store].
func (m *Memory) Append(ctx context.Context, f Fence, offset int64, p []byte) error {
	h, now, unlock, err := m.write(ctx, f)
	if err != nil {
		return err
	}
	defer unlock()
	size := int64(len(h.Log))
	if offset < 0 || offset > size {
		return fmt.Errorf("%w: offset %d of %d", ErrGap, offset, size)
	}
	known := min(int64(len(p)), size-offset)
	if !bytes.Equal(h.Log[offset:offset+known], p[:known]) {
		return fmt.Errorf("%w: offset %d", ErrConflict, offset)
	}
	p = p[known:]
	if size+int64(len(p)) > m.c.MaxTurn {
		return fmt.Errorf("%w: turn of %d bytes, at most %d", ErrTooLarge, size+int64(len(p)), m.c.MaxTurn)
	}
	if !m.room(int64(len(p)), now) {
		return fmt.Errorf("%w: the store holds %d bytes, at most %d", ErrTooLarge, m.total, m.c.MaxTotal)
	}
	h.Log = append(h.Log, p...)
	m.total += int64(len(p))
	h.touch(now)
	return nil
}

// Mark implements [Store].
func (m *Memory) Mark(ctx context.Context, f Fence, s State) error {
	h, now, unlock, err := m.write(ctx, f)
	if err != nil {
		return err
	}
	defer unlock()
	if h.State.Phase != Finished {
		s.Causes = append([]string(nil), s.Causes...)
		h.State, h.Updated = s, now
	}
	return nil
}

// Release implements [Store].
func (m *Memory) Release(ctx context.Context, f Fence) error {
	now, unlock, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	switch h := m.find(f.Key, now); {
	case h == nil:
		return ErrNotFound
	case h.fence != f.N:
		return ErrFenced
	case h.Owner != "":
		h.Owner = ""
		h.touch(now)
	}
	return nil
}

// Get implements [Store].
func (m *Memory) Get(ctx context.Context, key TurnKey) (*Record, error) {
	now, unlock, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if h := m.find(key, now); h != nil {
		return h.Clone(), nil
	}
	return nil, ErrNotFound
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, f Fence) error {
	now, unlock, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	switch h := m.find(f.Key, now); {
	case h == nil:
	case h.fence != f.N:
		return ErrFenced
	default:
		m.drop(f.Key, h)
	}
	return nil
}

// enter locks the store, which the caller unlocks, and reads the clock.
func (m *Memory) enter(ctx context.Context) (now time.Time, unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return now, nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	m.mu.Lock()
	return m.c.Clock().Truncate(time.Microsecond).UTC(), m.mu.Unlock, nil
}

// write enters and finds the turn that f may write.
func (m *Memory) write(ctx context.Context, f Fence) (*held, time.Time, func(), error) {
	now, unlock, err := m.enter(ctx)
	if err != nil {
		return nil, now, nil, err
	}
	h := m.find(f.Key, now)
	switch {
	case h == nil:
		err = ErrNotFound
	case h.fence != f.N || h.Owner == "":
		err = ErrFenced
	default:
		return h, now, unlock, nil
	}
	unlock()
	return nil, now, nil, err
}

func (m *Memory) alive(o Owner) bool { return m.c.Alive == nil || m.c.Alive(o) }

// find returns the turn unless it has expired.
func (m *Memory) find(key TurnKey, now time.Time) *held {
	h := m.turns[key]
	if h != nil && m.expired(h, now) {
		m.drop(key, h)
		return nil
	}
	return h
}

// touch renews the time to live.
func (h *held) touch(now time.Time) {
	if h.State.Phase != Finished {
		h.Updated = now
	}
}

func (m *Memory) expired(h *held, now time.Time) bool {
	ttl := m.c.TTL
	if h.State.Phase == Finished {
		ttl = m.c.FinishedTTL
	}
	return now.Sub(h.Updated) >= ttl
}

func (m *Memory) drop(key TurnKey, h *held) {
	m.total -= int64(len(h.Log))
	delete(m.turns, key)
}

// sweep drops what has expired, now and then.
func (m *Memory) sweep(now time.Time) {
	if now.Sub(m.swept) < sweepEvery {
		return
	}
	m.swept = now
	for key, h := range m.turns {
		if m.expired(h, now) {
			m.drop(key, h)
		}
	}
	m.sweepOffers()
}

// room makes room for n more bytes and reports whether there is.
func (m *Memory) room(n int64, now time.Time) bool {
	if m.total+n <= m.c.MaxTotal {
		return true
	}
	m.swept = time.Time{}
	m.sweep(now)
	for m.total+n > m.c.MaxTotal {
		var oldest *held
		var at TurnKey
		for key, h := range m.turns {
			if h.Owner != "" || len(h.Log) == 0 {
				continue
			}
			if oldest == nil || h.Updated.Before(oldest.Updated) || h.Updated.Equal(oldest.Updated) && h.fence < oldest.fence {
				oldest, at = h, key
			}
		}
		if oldest == nil {
			return false
		}
		m.drop(at, oldest)
	}
	return true
}
