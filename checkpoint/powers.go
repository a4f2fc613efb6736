package checkpoint

import (
	"context"
	"time"
)

// Follower is a [Store] that shows a turn while another holds it, at a cost that
// does not grow with what was seen before.
type Follower interface {
	// Follow returns the record with only that part of the log that begins at
	// offset, in bytes, and whether an owner that lives holds the turn: when not,
	// Claim takes it. ErrNotFound, ErrCorrupt, ErrVersion; ErrGap when the log
	// ends before offset, which means that it began anew.
	Follow(ctx context.Context, key TurnKey, offset int64) (r *Record, alive bool, err error)
}

// Index is a [Store] that finds a turn by what was asked, for callers that name
// no run (DESIGN §8, Resume).
type Index interface {
	// Offer notes that the turn f holds may be adopted by whoever asks the same.
	// Offering again is no error, nor is offering what is gone by now.
	Offer(ctx context.Context, ask AskKey, f Fence) error
	// Adopt claims for owner an offered turn that lost its process: it is Live,
	// was written within the given time, and its owner, another one, is dead or
	// released it, as a draining process does. A turn is adopted at most once,
	// whoever asks and however many ask at the same time. ErrOwned: there is one
	// whose owner, another process, still counts as alive; a caller whose
	// process died a moment ago asks again. ErrNotFound: there is none.
	Adopt(ctx context.Context, ask AskKey, owner Owner, within time.Duration) (Fence, *Record, error)
}

// Secrets is a [Store] that keeps what all processes sharing it must agree on.
type Secrets interface {
	// Secret returns the value kept under name, which is fresh if there was
	// none; ErrNotFound if there is no fresh one either. Names are constants of
	// the program.
	Secret(ctx context.Context, name string, fresh []byte) ([]byte, error)
}

// MaxOffers bounds the turns offered under one key; the oldest makes room.
const MaxOffers = 64

// Orphan reports whether r, whose owner lives or not, may be adopted by another.
func Orphan(r *Record, by Owner, alive bool) bool {
	return r.State.Phase == Live && (r.Owner == "" || r.Owner != by && !alive)
}
