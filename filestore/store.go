package filestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// ErrInUse: another process owns the directory.
var ErrInUse = errors.New("the checkpoint directory is in use")

// Store is a [checkpoint.Store] in a directory.
type Store struct {
	// immutable
	c    Config
	lock *os.File
	stop chan struct{}
	work sync.WaitGroup

	total    atomic.Int64 // bytes of all logs
	failures atomic.Int64
	full     atomic.Int64
	cut      int // torn logs cut at Open

	// Locks are taken in this order: mu, a turn's, ids. Nobody waits for a turn's,
	// which is held while the disk works, with mu in hand.
	mu     sync.Mutex
	closed bool
	turns  map[checkpoint.TurnKey]*held
	swept  time.Time

	ids ids

	memos memos
	runs  *Runs
}

// ids is who is alive, what is offered, and the largest fence ever given.
type ids struct {
	mu     sync.Mutex
	owners map[checkpoint.Owner]bool // those that claimed here
	offers map[checkpoint.AskKey][]checkpoint.TurnKey
	last   uint64
}

var (
	_ checkpoint.Store    = (*Store)(nil)
	_ checkpoint.Follower = (*Store)(nil)
	_ checkpoint.Index    = (*Store)(nil)
	_ checkpoint.Secrets  = (*Store)(nil)
	_ checkpoint.Memos    = (*Store)(nil)
)

// Stats is how the store is doing.
type Stats struct {
	Turns int
	Bytes int64 // of all logs
	// Failures counts calls that the disk failed, Full those of them for which
	// there was no room; both since the start.
	Failures, Full int64
	// Cut is how many logs had a torn end when the directory was opened.
	Cut int
}

// Open makes this process the owner of a directory and reads what is in it.
// [ErrInUse] when another one is.
func Open(c Config) (*Store, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{c.Dir, filepath.Join(c.Dir, "turns"), filepath.Join(c.Dir, "secrets"), filepath.Join(c.Dir, "memos"), filepath.Join(c.Dir, "runs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("open checkpoint directory: %w", err)
		}
	}
	l, err := lock(filepath.Join(c.Dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("open checkpoint directory %s: %w", c.Dir, err)
	}
	s := &Store{
		c: c, lock: l, stop: make(chan struct{}),
		turns: map[checkpoint.TurnKey]*held{},
		ids:   ids{owners: map[checkpoint.Owner]bool{}, offers: map[checkpoint.AskKey][]checkpoint.TurnKey{}},
	}
	err = s.load()
	if err == nil {
		err = s.loadMemos()
	}
	if err == nil {
		err = s.loadRuns()
	}
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("read checkpoint directory %s: %w", c.Dir, err)
	}
	s.work.Add(1)
	go s.sync()
	return s, nil
}

// Close syncs what was written and gives the directory up.
func (s *Store) Close() {
	s.mu.Lock()
	done := s.closed
	s.closed = true
	s.mu.Unlock()
	if done {
		return
	}
	close(s.stop)
	s.work.Wait()
	for _, h := range s.all() {
		h.mu.Lock()
		if err := h.sync(); err != nil {
			_ = s.failed(err)
		}
		h.shut()
		h.gone = true
		h.mu.Unlock()
	}
	_ = s.lock.Close()
}

// Stats returns how the store is doing now.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Turns: len(s.turns), Bytes: s.total.Load(), Failures: s.failures.Load(), Full: s.full.Load(), Cut: s.cut}
}

// sync forces logs to disk behind the streams' backs.
func (s *Store) sync() {
	defer s.work.Done()
	t := time.NewTicker(s.c.Sync)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.syncAll()
		case <-s.stop:
			return
		}
	}
}

func (s *Store) all() []*held {
	s.mu.Lock()
	defer s.mu.Unlock()
	turns := make([]*held, 0, len(s.turns))
	for _, h := range s.turns {
		turns = append(turns, h)
	}
	return turns
}

func (s *Store) syncAll() {
	for _, h := range s.all() {
		h.mu.Lock()
		if err := h.sync(); err != nil {
			_ = s.failed(err)
		}
		h.mu.Unlock()
	}
}

// failed translates and counts an error of the file system.
func (s *Store) failed(err error) error {
	s.failures.Add(1)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		s.full.Add(1)
	}
	return fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, err)
}

// now is the time as records keep it.
func (s *Store) now() time.Time { return s.c.Clock().Truncate(time.Microsecond).UTC() }

// sweepEvery is how often a claim looks for what has expired.
const sweepEvery = 10 * time.Second

// sweep drops what has expired, now and then. A turn that is busy has not.
func (s *Store) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) < sweepEvery {
		return
	}
	s.swept = now
	for key, h := range s.turns {
		if !h.mu.TryLock() {
			continue
		}
		if !h.fresh && h.expired(now, &s.c) {
			s.discard(h)
			delete(s.turns, key)
		}
		h.mu.Unlock()
	}
}
