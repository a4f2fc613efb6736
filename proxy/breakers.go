package proxy

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// maxBreakers bounds what callers can make us remember by naming models.
const maxBreakers = 4096

// breakers are all of a server's, under one configuration.
type breakers struct {
	cfg BreakerConfig
	log *slog.Logger

	mu  sync.Mutex
	all map[breakerKey]*breaker
}

type breakerKey struct{ upstream, model string }

// BreakerState is one breaker as [Stats] tells it. One that nothing ever went wrong
// with is not told.
type BreakerState struct {
	Upstream string
	Model    string // "" for the models that are too many to have one each
	State    string // "closed", "half-open", "open"
	Since    time.Time
	Until    time.Time // end of the open state; zero while it is closed
	// Failures and Successes are those of the window; while it is not closed, those
	// that opened it.
	Failures, Successes int
	Opened              int64 // how often, since the start
}

// of returns the breaker of a model at an upstream; nil: there are none.
func (bs *breakers) of(upstream, model string) *breaker {
	if bs.cfg.Failures < 0 {
		return nil
	}
	k := breakerKey{upstream, clip(model)}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.all[k]
	if b == nil && len(bs.all) >= maxBreakers {
		k.model = "" // one for all that are too many
		b = bs.all[k]
	}
	if b == nil {
		b = newBreaker(bs.cfg, func(from, to gobreaker.State, c gobreaker.Counts) { bs.tell(k, from, to, c) })
		bs.all[k] = b
	}
	return b
}

// inherited are the breakers of other terms: those of the upstreams that stay, if what
// opens a breaker is what it was, and new ones else.
func (bs *breakers) inherited(c BreakerConfig, stays func(upstream string) bool) *breakers {
	next := &breakers{cfg: c, log: bs.log, all: map[breakerKey]*breaker{}}
	if c != bs.cfg {
		return next
	}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	for k, b := range bs.all {
		if stays(k.upstream) {
			next.all[k] = b
		}
	}
	return next
}

// tell logs a change: that an upstream is left alone and for how long, that it is
// tried, that it is well again.
func (bs *breakers) tell(k breakerKey, from, to gobreaker.State, c gobreaker.Counts) {
	attrs := []any{"upstream", k.upstream, "model", k.model, "from", from.String(), "to", to.String()}
	if from == gobreaker.StateClosed {
		attrs = append(attrs, "failures", c.TotalFailures, "successes", c.TotalSuccesses, "window", bs.cfg.Window)
	}
	if to == gobreaker.StateOpen {
		bs.log.Warn("breaker", append(attrs, "for", bs.cfg.Open)...)
		return
	}
	bs.log.Info("breaker", attrs...)
}

// states are those worth telling, in order.
func (bs *breakers) states() (all []BreakerState) {
	bs.mu.Lock()
	known := make(map[breakerKey]*breaker, len(bs.all))
	for k, b := range bs.all {
		known[k] = b
	}
	bs.mu.Unlock()
	for k, b := range known {
		if s, worth := b.state(); worth {
			s.Upstream, s.Model = k.upstream, k.model
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b BreakerState) int {
		return cmp.Or(cmp.Compare(a.Upstream, b.Upstream), cmp.Compare(a.Model, b.Model))
	})
	return all
}
