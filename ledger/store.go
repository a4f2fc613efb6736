package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// What a store answers with.
var (
	// ErrNotFound: there is no such run: never was, expired, or lost.
	ErrNotFound = errors.New("ledger: run not found")
	// ErrChanged: the run is not at the version that was expected.
	ErrChanged = errors.New("ledger: run was changed meanwhile")
	// ErrCorrupt: what is stored cannot be understood. It is not "absent".
	ErrCorrupt = errors.New("ledger: corrupt")
	// ErrNewer: what is stored was written by a newer release. Leave it alone.
	ErrNewer = errors.New("ledger: newer encoding")
	// ErrUnavailable: the store did not answer (in time). Whether the effect took
	// place is unknown; every method may be called again.
	ErrUnavailable = errors.New("ledger: store unavailable")
	// ErrUnconfirmed: it was written, but no copy was confirmed where the store
	// keeps copies; a fail-over may lose it. Whoever needs it durable repeats.
	ErrUnconfirmed = errors.New("ledger: write not confirmed by a replica")
)

// Stored is a run as a store has it.
type Stored struct {
	Run *Run
	// Doubt says why it may not be the newest; empty: it is.
	Doubt string
	// Unconfirmed: the store keeps copies, and none is known to have this version.
	Unconfirmed bool
}

// Store keeps runs. Its methods may be called from many goroutines, honour the
// deadline of ctx, and answer with the errors above, wrapped. What is passed in is
// not kept, what is handed out is the caller's. A run expires a fixed time after
// its last write.
type Store interface {
	// Load returns the run. ErrNotFound, ErrCorrupt, ErrNewer.
	Load(ctx context.Context, key RunKey) (Stored, error)
	// Save writes r if the run stored is at version expect, 0 meaning that there
	// is none; else ErrChanged. r may be that version: it is then written once more. It returns when the write is as durable as the
	// store makes anything. ErrUnconfirmed. It keeps the run findable by the
	// lineage of its last step (see Find) and in its scope's list.
	Save(ctx context.Context, key RunKey, scope checkpoint.Scope, r *Run, expect uint64) error
	// Find returns the runs of scope whose last step has that lineage, or that
	// alias, the newest first; a few at most.
	Find(ctx context.Context, scope checkpoint.Scope, lineage string) ([]RunKey, error)
	// Recent returns the runs last written, of all scopes, the newest first, for
	// the operator's eyes.
	Recent(ctx context.Context, max int) ([]RunKey, error)
}

// Defaults of stores.
const (
	TTL       = 7 * 24 * time.Hour // after the last write
	MaxFound  = 16                 // runs with one lineage; the oldest make room
	MaxRecent = 1024               // runs in the list; the oldest make room
)

// maxTries bounds how often Append reads a run again because another writer was
// faster.
const maxTries = 16

// Append applies e to the run stored under key and saves it. A run that does not
// exist takes only a [Begin]. What it returns is the run afterwards; on a
// [*Refusal] the run as it is. ErrUnconfirmed comes with the run as it was written.
func Append(ctx context.Context, s Store, key RunKey, scope checkpoint.Scope, e Entry) (*Run, Effect, error) {
	for range maxTries {
		var before *Run
		got, err := s.Load(ctx, key)
		switch {
		case err == nil:
			before = got.Run
		case !errors.Is(err, ErrNotFound):
			return nil, 0, err
		}
		after, effect, err := Apply(key, before, e)
		if err != nil || effect == Replayed && !got.Unconfirmed {
			return after, effect, err
		}
		// What is repeated because no copy was confirmed is not acknowledged before
		// one is.
		expect := uint64(0)
		if before != nil {
			expect = before.Version
		}
		err = s.Save(ctx, key, scope, after, expect)
		if errors.Is(err, ErrChanged) {
			continue
		}
		return after, effect, err
	}
	return nil, 0, fmt.Errorf("%w: %d times in a row", ErrChanged, maxTries)
}
