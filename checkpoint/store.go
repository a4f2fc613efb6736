package checkpoint

import (
	"context"
	"errors"
)

// What a store answers with. Adapters translate into these at their edge.
var (
	// ErrFenced: a newer claim exists, or the fence was released. Whoever gets
	// this stops its upstream call and writes no more.
	ErrFenced = errors.New("checkpoint: fenced")
	// ErrOwned: the turn is in the hands of another owner that is alive.
	ErrOwned = errors.New("checkpoint: owned by another process")
	// ErrNotFound: there is no such turn: never was, deleted, expired or evicted.
	ErrNotFound = errors.New("checkpoint: not found")
	// ErrGap: an append would leave a hole in the log. The writer starts again
	// from what [Store].Get shows.
	ErrGap = errors.New("checkpoint: gap in the log")
	// ErrConflict: other bytes are stored at that offset.
	ErrConflict = errors.New("checkpoint: other bytes at that offset")
	// ErrTooLarge: the turn, or the store, is full. What was stored stays.
	ErrTooLarge = errors.New("checkpoint: too large")
	// ErrCorrupt: what is stored cannot be understood. It is not "absent".
	ErrCorrupt = errors.New("checkpoint: corrupt")
	// ErrVersion: what is stored was written by a newer release. Leave it alone.
	ErrVersion = errors.New("checkpoint: newer version")
	// ErrUnavailable: the store did not answer (in time). Whether the effect
	// took place is unknown; every method may be called again.
	ErrUnavailable = errors.New("checkpoint: store unavailable")
)

// Store keeps checkpoints. Its methods may be called from many goroutines, honour
// the deadline of ctx, and answer with the errors above, wrapped. Every write
// renews the time to live, but for a finished turn's: to be replayed makes it no older
// and no younger. What is passed in is copied, what is handed out is
// the caller's.
type Store interface {
	// Claim takes the turn for owner with a new fence, larger than any before.
	// An unknown turn begins with the identity in head; the record is then nil.
	// A known one keeps its own, head is ignored, and the record is what was
	// there. A turn may be claimed when it is unknown, was released, is the
	// owner's own already (the newest connection wins) or its owner is dead;
	// otherwise the answer is the record and ErrOwned.
	Claim(ctx context.Context, key TurnKey, owner Owner, head Record) (Fence, *Record, error)
	// Append writes p to the log at offset, in bytes. Bytes that are there
	// already must be the same, so that a repeated or overlapping append is
	// harmless. All of p is written or none. ErrFenced, ErrNotFound, ErrGap,
	// ErrConflict, ErrTooLarge.
	Append(ctx context.Context, f Fence, offset int64, p []byte) error
	// Mark replaces the state, but a finished turn's, which is final. ErrFenced,
	// ErrNotFound.
	Mark(ctx context.Context, f Fence, s State) error
	// Release gives the turn up, for anyone to claim. Releasing again is no
	// error. ErrFenced, ErrNotFound.
	Release(ctx context.Context, f Fence) error
	// Get returns a copy of the record. ErrNotFound, ErrCorrupt, ErrVersion.
	Get(ctx context.Context, key TurnKey) (*Record, error)
	// Delete forgets the turn. Deleting what is gone is no error. ErrFenced.
	Delete(ctx context.Context, f Fence) error
}
