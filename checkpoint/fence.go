package checkpoint

import "time"

// Owner names a process, not a connection: within one, the newest claim wins.
type Owner string

// Fence is the right to write one turn. The zero Fence is none.
type Fence struct {
	Key TurnKey
	N   uint64
}

// NextFence returns the number of a new claim: larger than previous, the largest
// one known, and not below the store's time in microseconds, so that a store that
// forgot (eviction, fail-over) still hands out a larger one than before.
func NextFence(previous uint64, now time.Time) uint64 {
	return max(previous+1, uint64(max(0, now.UnixMicro())))
}
