package proxy

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/unbroken-llm/unbroken/interrupt"
)

// BreakerConfig says when an upstream is left alone, per model. The zero value of
// each field means the default named beside it.
type BreakerConfig struct {
	// Failures is how many within Window open a breaker (5), if they are four
	// fifths of what happened there; four times as many without a success
	// between them always do. Negative: no breakers.
	Failures int
	Window   time.Duration // rolling; 30 s
	// Open is how long nobody is let through then; after it one request at a
	// time is, as a probe. 15 s.
	Open time.Duration
}

const (
	// buckets a window consists of: what happened leaves it in steps.
	buckets = 6
	// probeWait is when to ask again while a probe is under way.
	probeWait = time.Second
)

// breaker is one upstream and model as seen by its failures: a two-step gobreaker,
// of which a stream's first success and its failures are told when they happen. An
// open or half-open breaker hears nothing of streams that began before it opened.
type breaker struct {
	mu    sync.Mutex // around every call of cb
	cb    *gobreaker.TwoStepCircuitBreaker[struct{}]
	era   uint64    // counts state changes
	until time.Time // end of the open state
	since time.Time // of the state
	opens int64     // how often it was opened
	// counts are those of the window; those that opened it, while it is not closed.
	counts gobreaker.Counts

	news func(from, to gobreaker.State, k gobreaker.Counts)
	told []func() // to be called when mu is free
}

// verdict is what an attempt says about its target.
type verdict uint8

const (
	neutral verdict = iota // nothing: not the target's doing
	good
	bad
	limited // that it may not be asked so fast: nothing of its health
)

var (
	errNeutral = errors.New("neutral")
	errBad     = errors.New("bad")
)

func newBreaker(c BreakerConfig, news func(from, to gobreaker.State, k gobreaker.Counts)) *breaker {
	b := &breaker{news: news, since: time.Now()}
	n := uint32(c.Failures)
	b.cb = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1, Interval: c.Window, BucketPeriod: c.Window / buckets, Timeout: c.Open,
		ReadyToTrip: func(k gobreaker.Counts) bool {
			b.counts = k
			return k.TotalFailures >= n && k.TotalFailures*5 >= (k.TotalFailures+k.TotalSuccesses)*4 || k.ConsecutiveFailures >= 4*n
		},
		IsSuccessful: func(err error) bool { return err == nil },
		IsExcluded:   func(err error) bool { return err == errNeutral },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			b.era++
			b.since = time.Now()
			if to == gobreaker.StateOpen {
				b.until = b.since.Add(c.Open)
				b.opens++
			}
			k := b.counts
			b.told = append(b.told, func() { b.news(from, to, k) })
		},
	})
	return b
}

// do calls f, then tells the news.
func (b *breaker) do(f func()) {
	b.mu.Lock()
	f()
	told := b.told
	b.told = nil
	b.mu.Unlock()
	for _, tell := range told {
		tell()
	}
}

// permit is leave to make one attempt; the zero value is none. Its owner settles it
// whatever happens, since a probe that is never settled would keep its breaker from
// closing for ever.
type permit struct {
	b     *breaker // nil: there is nobody to tell
	era   uint64
	probe func(error) // of a half-open breaker; nil: it was closed
	good  bool        // a success was reported
	over  bool
}

// allow gives leave, or says after what time to ask again.
func (b *breaker) allow() (p permit, after time.Duration) {
	if b == nil {
		return permit{}, 0
	}
	b.do(func() {
		switch b.cb.State() {
		case gobreaker.StateClosed:
			p = permit{b: b, era: b.era}
		case gobreaker.StateHalfOpen:
			if probe, err := b.cb.Allow(); err == nil {
				p = permit{b: b, era: b.era, probe: probe}
			} else {
				after = probeWait
			}
		case gobreaker.StateOpen:
			after = max(time.Until(b.until), time.Millisecond)
		}
	})
	return p, after
}

// barred reports whether leave would be refused now, and after what time to ask
// again. It takes no probe.
func (b *breaker) barred() (after time.Duration) {
	if b == nil {
		return 0
	}
	b.do(func() {
		if b.cb.State() == gobreaker.StateOpen {
			after = max(time.Until(b.until), time.Millisecond)
		}
	})
	return after
}

// report says what happened, when it happens. A success counts once per attempt; a
// failure or nothing ends the permit.
func (p *permit) report(v verdict) {
	if v == limited {
		v = neutral
	}
	if p.b == nil || p.over || v == good && p.good {
		return
	}
	p.over = v != good
	p.good = p.good || v == good
	if v == neutral && p.probe == nil {
		return
	}
	p.b.do(func() {
		if probe := p.probe; probe != nil {
			p.probe = nil
			probe(outcome(v))
			if v == good {
				p.era = p.b.era // what it meets from now on is news of the closed state
			}
			return
		}
		if p.b.cb.State() != gobreaker.StateClosed || p.b.era != p.era {
			return
		}
		// Into the current bucket: that of the attempt's beginning may have
		// left the window long ago.
		if done, err := p.b.cb.Allow(); err == nil {
			done(outcome(v))
		}
	})
}

// state is what there is to tell of it; worth is false while all of it has been well.
func (b *breaker) state() (s BreakerState, worth bool) {
	b.do(func() {
		st, k := b.cb.State(), b.counts
		if st == gobreaker.StateClosed {
			k = b.cb.Counts()
		} else {
			s.Until = b.until
		}
		s.State, s.Since, s.Opened = st.String(), b.since, b.opens
		s.Failures, s.Successes = int(k.TotalFailures), int(k.TotalSuccesses)
	})
	return s, s.Opened > 0 || s.Failures > 0
}

func outcome(v verdict) error {
	switch v {
	case good:
		return nil
	case bad:
		return errBad
	}
	return errNeutral
}

// verdictOn is what a failure says about its target.
func verdictOn(c interrupt.Cause) verdict {
	switch {
	case c.Damning():
		return bad
	case c.Status == http.StatusTooManyRequests && c.Blame() == interrupt.Provider:
		return limited
	}
	return neutral
}
