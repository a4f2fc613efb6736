package checkpoint

import "context"

// Behind is a [Store] that writes behind its callers' backs: it gathers the
// writes of all turns, keeps them while it cannot be reached, and restores a turn
// that it lost. A store that does not block needs none of this.
type Behind interface {
	Store
	// Hold opens the writer of a turn that owner has just claimed. r is the
	// record as it is now: what Claim was given for a new turn, what it returned
	// for a known one. lost is called at most once, from another goroutine, when
	// the turn can be written no more: ErrFenced, or the reason why its
	// checkpoint was given up. It must not block.
	Hold(f Fence, owner Owner, r Record, lost func(error)) Writer
}

// Writer writes one turn. Only Sync blocks. Its methods may be called from any
// goroutine; the order of the log is the caller's. A writer is ended by Settle or
// Forget; what comes after that, or after lost, is ignored.
type Writer interface {
	// Append queues p, copied, for the log at offset, where the log ends. One
	// that leaves a hole loses the turn with ErrGap.
	Append(offset int64, p []byte)
	// Mark queues a state; of several only the last is written.
	Mark(s State)
	// Sync has everything written at once and waits until all that was appended
	// is acknowledged. ErrUnavailable: it is not yet, and stays queued. Otherwise the error is
	// the one that lost was called with.
	Sync(ctx context.Context) error
	// Settle writes what is queued, then s, and releases the turn.
	Settle(s State)
	// Forget deletes the turn.
	Forget()
}
