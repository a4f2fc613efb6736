package redisstore

import (
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/unbroken-llm/unbroken/ledger"
)

// Config configures a [Store]. Zero values mean the defaults.
type Config struct {
	// Server says where Redis is and who we are there; see [ParseURL]. Its
	// timeouts, retries and pool are ours to set.
	Server *redis.UniversalOptions
	// Log hears of changes of state only. nil: nobody does.
	Log *slog.Logger
	// Prefix begins every key; default "unbroken:".
	Prefix string

	// Timeout bounds every command, a pipeline being one; default 100 ms.
	Timeout time.Duration
	// Flush is how long, and FlushBytes how much, what may wait is gathered;
	// defaults 50 ms and 32 KiB. A shorter one was tried (10 ms): Redis' work comes in
	// smaller pieces then, but there are more of them, and 5,000 streams cost a tenth more.
	Flush      time.Duration
	FlushBytes int
	// Memory bounds the logs kept in this process, in bytes: those that Redis
	// has not acknowledged, and, as long as there is room, the rest of every live
	// turn, from which a record that Redis lost is restored. Default 128 MiB.
	Memory int64
	// MaxTurn bounds the log of one turn, in bytes; default 64 MiB.
	MaxTurn int64

	// TTL is how long a turn is kept after its last write, or a sixteenth less; default 1 h.
	// FinishedTTL is that of a finished one; default 60 s.
	TTL, FinishedTTL time.Duration
	// FenceTTL is how much longer than the record its last fence is known;
	// default 10 min.
	FenceTTL time.Duration

	// RunTTL is how long a run of the ledger is kept after its last write; default
	// [ledger.TTL].
	RunTTL time.Duration
	// Confirm is how many replicas must have a run's write before it counts as
	// done (WAIT); default 1 behind Sentinel and else none, negative none.
	Confirm int
	// Seal encrypts runs; nil: they are kept as they are. Turns are encrypted by
	// who wraps the store (package sealed).
	Seal ledger.Sealer

	// LiveTTL is how long a process counts as alive that does not renew;
	// default 3 s. Renew is how often it does; default 1 s.
	LiveTTL, Renew time.Duration
	// Grace is how long this process must have reached Redis without a break
	// before it believes that another one is dead: after an outage the living
	// need time to renew. Default LiveTTL, negative none.
	Grace time.Duration
	// Check is how often a silent turn is written to, which renews its time to
	// live and shows whether another process took it; default 10 s.
	Check time.Duration
	// Retry is how often Redis is asked whether it is back; default 250 ms.
	Retry time.Duration
	// Failures is how many commands in a row must fail until Redis counts as
	// away; default 3.
	Failures uint32
}

func (c Config) withDefaults() (Config, error) {
	if c.Server == nil || len(c.Server.Addrs) == 0 {
		return c, errors.New("redisstore: no server")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	set(&c.Prefix, "unbroken:")
	set(&c.Timeout, 100*time.Millisecond)
	set(&c.Flush, 50*time.Millisecond)
	set(&c.FlushBytes, 32<<10)
	set(&c.Memory, 128<<20)
	set(&c.MaxTurn, 64<<20)
	set(&c.TTL, time.Hour)
	set(&c.FinishedTTL, time.Minute)
	set(&c.FenceTTL, 10*time.Minute)
	set(&c.RunTTL, ledger.TTL)
	if c.Confirm == 0 && c.Server.MasterName != "" {
		c.Confirm = 1
	}
	set(&c.LiveTTL, 3*time.Second)
	set(&c.Renew, time.Second)
	set(&c.Grace, c.LiveTTL)
	set(&c.Check, 10*time.Second)
	set(&c.Retry, 250*time.Millisecond)
	set(&c.Failures, 3)
	if c.Renew >= c.LiveTTL {
		return c, errors.New("redisstore: a process must renew more often than its life lasts")
	}
	return c, nil
}

func set[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
