package filestore

import (
	"errors"
	"time"

	"github.com/unbroken-llm/unbroken/ledger"
)

// Config configures a [Store]. Zero values mean the defaults.
type Config struct {
	// Dir is the directory; it is created, for this user only, if need be.
	Dir string
	// Clock tells the time; default time.Now.
	Clock func() time.Time
	// TTL is how long a turn is kept after its last write; default 1 h.
	// FinishedTTL is that of a finished one; default 60 s.
	TTL, FinishedTTL time.Duration
	// MaxTurn bounds one log, MaxTotal all of them, in bytes; defaults 64 MiB
	// and 8 GiB.
	MaxTurn, MaxTotal int64
	// MaxMemos bounds what is remembered of turns that are over, in bytes;
	// default 1 GiB. The oldest makes room.
	MaxMemos int64
	// RunTTL is how long a run of the ledger is kept after its last write, default
	// [ledger.TTL]; MaxRuns bounds all of them, in bytes, default 1 GiB.
	RunTTL  time.Duration
	MaxRuns int64
	// Seal encrypts runs; nil: they are kept as they are. Turns are encrypted by
	// who wraps the store (package sealed).
	Seal ledger.Sealer
	// Sync is how often appended text is forced to disk; default 1 s.
	Sync time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("filestore: no directory")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	set(&c.TTL, time.Hour)
	set(&c.FinishedTTL, time.Minute)
	set(&c.MaxTurn, 64<<20)
	set(&c.MaxTotal, 8<<30)
	set(&c.MaxMemos, 1<<30)
	set(&c.RunTTL, ledger.TTL)
	set(&c.MaxRuns, 1<<30)
	set(&c.Sync, time.Second)
	return c, nil
}

func set[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
