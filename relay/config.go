package relay

import (
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
)

// Config is the policy of a stream. The zero value means the documented
// defaults of DESIGN §2, §5, §7. What every event asks for comes first, see [Stream].
type Config struct {
	// Heartbeat is the longest silence towards the client (10 s).
	Heartbeat time.Duration
	// Flush bounds how long text may run ahead of its checkpoint (50 ms), or
	// FlushBytes of it (32 KiB).
	Flush      time.Duration
	FlushBytes int
	// MaxTurn bounds what one turn may say, in bytes of blocks and held
	// events (64 MiB); MaxBlocks their number (10,000). Beyond them the turn
	// is given up, so that memory stays bounded.
	MaxTurn, MaxBlocks int
	// Events: the caller understands retractions (X-Stream-Recovery: events).
	Events bool

	// Watch holds the deadlines of silence.
	Watch interrupt.Config
	// Hold is how long the response head waits for the first visible content
	// after a 2xx (10 s).
	Hold time.Duration
	// Grace is how long late usage and the terminator are awaited after the
	// semantic end (2 s).
	Grace time.Duration
	// Recoveries per request (3); one that delivers new content earns one
	// back, MaxEarned at most (10). Negative Recoveries: none.
	Recoveries, MaxEarned int
	// WaitBudget bounds the sum of all back-off (120 s).
	WaitBudget time.Duration
	// MaxEvent bounds one event of a provider (64 MiB).
	MaxEvent int
	// MaxWhole bounds a buffered non-streaming answer (64 MiB); a larger one
	// is streamed through.
	MaxWhole int
	// Anchor is how many bytes of tail an asked continuation must repeat (40).
	Anchor int
	// Sentinel is what it answers when nothing is missing.
	Sentinel string
	// Targets in order; at least one.
	Targets []Target
	// Seed makes jitter reproducible.
	Seed uint64
}

// Target is where attempts go.
type Target struct {
	Name    string
	Model   string // overrides the request's model; "" keeps it
	Ability dialect.Ability
	// Larger: it is kept for prompts that are too long for the others.
	Larger bool
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	num := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	def(&c.Hold, 10*time.Second)
	def(&c.Heartbeat, 10*time.Second)
	def(&c.Grace, 2*time.Second)
	def(&c.Flush, 50*time.Millisecond)
	def(&c.WaitBudget, 120*time.Second)
	num(&c.FlushBytes, 32<<10)
	num(&c.Recoveries, 3)
	num(&c.MaxEarned, 10)
	num(&c.MaxEvent, 64<<20)
	num(&c.MaxWhole, 64<<20)
	num(&c.MaxTurn, 64<<20)
	num(&c.MaxBlocks, 10_000)
	num(&c.Anchor, 40)
	if c.Sentinel == "" {
		c.Sentinel = "[[COMPLETE]]"
	}
	if len(c.Targets) == 0 {
		c.Targets = []Target{{Ability: dialect.Ability{}}}
	}
	return c
}
