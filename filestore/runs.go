package filestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
)

// A run file:
//
//	version(1) scope(32) written at, µs(8) run crc32c(4)
//
// big endian. A write is on the disk, with its name, before it counts.
const (
	runVersion = 1
	runHead    = 1 + len(checkpoint.Scope{}) + 8
)

// Runs is the [ledger.Store] of the same directory. What it holds is known in
// memory, where one owner is the only writer.
type Runs struct {
	s *Store

	mu     sync.Mutex // one write at a time; reads do not take it
	memory *ledger.Memory
	// unread are runs of which the file is whole and says nothing to us: a newer
	// release wrote it, or it is sealed with another key. Immutable.
	unread map[ledger.RunKey]error
	now    time.Time // while the directory is read: when a run was written
}

var _ ledger.Store = (*Runs)(nil)

// Runs returns the store's ledger.
func (s *Store) Runs() *Runs { return s.runs }

func (r *Runs) path(key ledger.RunKey) string {
	return filepath.Join(r.s.c.Dir, "runs", key.String())
}

// Load implements [ledger.Store].
func (r *Runs) Load(ctx context.Context, key ledger.RunKey) (ledger.Stored, error) {
	if err := r.unread[key]; err != nil {
		return ledger.Stored{}, err
	}
	return r.memory.Load(ctx, key)
}

// Find implements [ledger.Store].
func (r *Runs) Find(ctx context.Context, scope checkpoint.Scope, lineage string) ([]ledger.RunKey, error) {
	return r.memory.Find(ctx, scope, lineage)
}

// Recent implements [ledger.Store].
func (r *Runs) Recent(ctx context.Context, most int) ([]ledger.RunKey, error) {
	return r.memory.Recent(ctx, most)
}

// Save implements [ledger.Store]. The file comes first: what memory shows is on the
// disk, so that a crash takes nothing back. A write that failed may be on the disk
// all the same, and is then found after a restart.
func (r *Runs) Save(ctx context.Context, key ledger.RunKey, scope checkpoint.Scope, run *ledger.Run, expect uint64) error {
	if err := r.unread[key]; err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch was, err := r.memory.Load(ctx, key); {
	case errors.Is(err, ledger.ErrNotFound) && expect == 0:
	case errors.Is(err, ledger.ErrNotFound):
		return fmt.Errorf("%w: it is gone", ledger.ErrChanged)
	case err != nil:
		return err
	case was.Run.Version != expect:
		return fmt.Errorf("%w: version %d, expected %d", ledger.ErrChanged, was.Run.Version, expect)
	}
	b := append([]byte{runVersion}, scope[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(r.s.now().UnixMicro()))
	b = append(b, ledger.Seal(r.s.c.Seal, key, run)...)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	if err := replace(r.path(key), b); err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrUnavailable, r.s.failed(err))
	}
	return r.memory.Save(context.WithoutCancel(ctx), key, scope, run, expect)
}

// forget removes the file of a run that is too old, or made room.
func (r *Runs) forget(key ledger.RunKey) {
	if err := os.Remove(r.path(key)); err != nil && !errors.Is(err, os.ErrNotExist) {
		_ = r.s.failed(err) // it is tried again when the directory is opened
	}
}

func (r *Runs) clock() time.Time {
	if !r.now.IsZero() {
		return r.now
	}
	return r.s.now()
}

// loadRuns reads what an earlier process wrote. Leftovers of an interrupted write
// go; what is damaged is set aside, since it is somebody's only record, and what is
// whole but not for us stays where it is.
func (s *Store) loadRuns() error {
	r := &Runs{s: s, unread: map[ledger.RunKey]error{}}
	r.memory = ledger.NewMemory(ledger.MemoryConfig{Clock: r.clock, TTL: s.c.RunTTL, MaxTotal: s.c.MaxRuns, Forgot: r.forget})
	s.runs = r
	var found []runFile
	err := eachKeyed(filepath.Join(s.c.Dir, "runs"), func(key [keySize]byte, path string, b []byte) error {
		one, whole, err := decodeRun(b, key, s.c.Seal)
		switch {
		case err == nil:
			found = append(found, one)
		case whole && !one.at.IsZero() && s.now().Sub(one.at) >= s.c.RunTTL:
			return os.Remove(path)
		case whole:
			r.unread[one.key] = err
		default:
			return os.Rename(path, path+".corrupt")
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b runFile) int { return a.at.Compare(b.at) })
	for _, f := range found {
		r.now = f.at
		if err := r.memory.Save(context.Background(), f.key, f.scope, f.run, 0); err != nil {
			return err
		}
	}
	r.now = time.Time{}
	return nil
}

type runFile struct {
	key   ledger.RunKey
	scope checkpoint.Scope
	at    time.Time
	run   *ledger.Run
}

// decodeRun reads a run's file. whole tells, with an error, that the file is as it was
// written.
func decodeRun(b []byte, key ledger.RunKey, seal ledger.Sealer) (f runFile, whole bool, err error) {
	f.key = key
	n := len(b) - 4
	switch {
	case len(b) > 0 && b[0] > runVersion:
		return f, true, fmt.Errorf("%w: run file %d, this is %d", ledger.ErrNewer, b[0], runVersion)
	case n < runHead || b[0] == 0 || binary.BigEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli):
		return f, false, fmt.Errorf("%w: run file of %d bytes", ledger.ErrCorrupt, len(b))
	}
	copy(f.scope[:], b[1:])
	f.at = time.UnixMicro(int64(binary.BigEndian.Uint64(b[runHead-8:]))).UTC()
	f.run, err = ledger.Unseal(seal, key, b[runHead:n])
	return f, true, err
}
