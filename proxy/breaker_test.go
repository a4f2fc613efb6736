package proxy

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/unbroken-llm/unbroken/interrupt"
)

var testBreaker = BreakerConfig{Failures: 5, Window: 30 * time.Second, Open: 15 * time.Second}

// oracle is a breaker as one would write it on a napkin. Of the closed state it knows
// only when it must open and when it must not.
type oracle struct {
	state  gobreaker.State
	opened time.Time
	probe  *permit // under way
	fails  []time.Time
	goods  []time.Time
	run    int // failures since the last success
}

func (o *oracle) tick(now time.Time) {
	if o.state == gobreaker.StateOpen && now.Sub(o.opened) > testBreaker.Open {
		o.state, o.probe = gobreaker.StateHalfOpen, nil
	}
}

func (o *oracle) enter(s gobreaker.State, now time.Time) {
	*o = oracle{state: s, opened: now}
}

func lately(ts []time.Time, now time.Time, d time.Duration) (n int) {
	for _, t := range ts {
		if now.Sub(t) <= d {
			n++
		}
	}
	return n
}

// leave is what b gives, nil: none.
func leave(b *breaker) (*permit, time.Duration) {
	p, after := b.allow()
	if after > 0 {
		return nil, after
	}
	return &p, 0
}

// Whatever happens to the streams that hold them, permits never keep a breaker from
// closing again: clients that leave, our own cancels, refusals, panics, successes and
// failures, in any order and late, against a model.
func TestProbeSlotIsNeverLost(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) { sequence(t, seed) })
		if t.Failed() {
			return
		}
	}
}

func sequence(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	b := newBreaker(testBreaker, func(gobreaker.State, gobreaker.State, gobreaker.Counts) {})
	o := &oracle{}
	type held struct {
		p     *permit
		era   int  // of the breaker, when it was given
		said  bool // a success counts once
		ended bool
	}
	var flying []*held
	eras := 0
	trace := ""
	fail := func(format string, a ...any) {
		t.Helper()
		t.Fatalf("seed %d: %s\nafter%s", seed, fmt.Sprintf(format, a...), trace)
	}
	for range 200 {
		now := time.Now()
		o.tick(now)
		switch op := rng.IntN(10); {
		case op < 4:
			trace += " ask"
			p, after := leave(b)
			free := o.state == gobreaker.StateClosed || o.state == gobreaker.StateHalfOpen && o.probe == nil
			switch {
			case (p != nil) != free:
				fail("allowed %v, want %v in state %v", p != nil, free, o.state)
			case p == nil && after <= 0:
				fail("nobody says when to come back")
			case p != nil:
				if o.state == gobreaker.StateHalfOpen {
					o.probe = p
				}
				flying = append(flying, &held{p: p, era: eras})
			}
		case op < 8 && len(flying) > 0:
			h := flying[rng.IntN(len(flying))]
			v := []verdict{neutral, good, bad, bad}[rng.IntN(4)]
			if rng.IntN(8) == 0 { // a stream that panics gives back what it holds
				v = neutral
				func() {
					defer func() { _ = recover() }()
					defer h.p.report(neutral)
					panic("a stream")
				}()
			} else {
				h.p.report(v)
			}
			trace += fmt.Sprintf(" report(%d)", v)
			counts := !h.ended && (v != good || !h.said)
			h.ended, h.said = h.ended || v != good, h.said || v == good
			before := o.state
			switch {
			case !counts:
			case h.p == o.probe:
				o.probe = nil
				switch v {
				case good:
					o.enter(gobreaker.StateClosed, now)
					eras++
					h.era = eras
				case bad:
					o.enter(gobreaker.StateOpen, now)
					eras++
				case neutral:
				}
			case o.state == gobreaker.StateClosed && h.era == eras:
				switch v {
				case good:
					o.goods, o.run = append(o.goods, now), 0
				case bad:
					o.fails, o.run = append(o.fails, now), o.run+1
				case neutral:
				}
			}
			if before == gobreaker.StateClosed && o.state == gobreaker.StateClosed {
				real := b.cb.State()
				bucket := testBreaker.Window / buckets
				most, least := lately(o.fails, now, testBreaker.Window+bucket), lately(o.fails, now, testBreaker.Window-bucket)
				mostGood := lately(o.goods, now, testBreaker.Window+bucket)
				switch {
				case real == gobreaker.StateOpen && (v != bad || most < testBreaker.Failures):
					fail("opened with %d failures in the window", most)
				case real == gobreaker.StateClosed && least >= testBreaker.Failures && 5*least >= 4*(least+mostGood) && v == bad && counts:
					fail("still closed with %d failures and %d successes in the window", least, mostGood)
				}
				if real == gobreaker.StateOpen {
					o.enter(gobreaker.StateOpen, now)
					eras++
				}
			}
		default:
			d := time.Duration(rng.IntN(8000)) * time.Millisecond
			trace += " " + d.String()
			time.Sleep(d)
		}
	}
	// Everything ends, somehow; then the provider is well, and it shows.
	for _, h := range flying {
		h.p.report([]verdict{neutral, bad}[rng.IntN(2)])
	}
	time.Sleep(testBreaker.Open + time.Second)
	p, _ := leave(b)
	if p == nil {
		fail("the probe slot is lost: %v", b.cb.State())
	}
	p.report(good)
	if s := b.cb.State(); s != gobreaker.StateClosed {
		fail("a probe that succeeded left it %v", s)
	}
}

// Whose doing a failure is decides what the breaker hears of it.
func TestVerdicts(t *testing.T) {
	for k, want := range map[interrupt.Kind]verdict{
		interrupt.ConnectionReset: bad, interrupt.TruncatedEOF: bad, interrupt.IdleStall: bad, interrupt.GoAway: bad,
		interrupt.FirstTokenTimeout: bad, interrupt.Malformed: bad, interrupt.OpenFailed: bad, interrupt.EmptyAnswer: bad,
		interrupt.Permanent: neutral, interrupt.SeamFailed: neutral, interrupt.ClientGone: neutral, interrupt.Canceled: neutral,
		interrupt.BreakerOpen: neutral, interrupt.StormGuard: neutral,
	} {
		if got := verdictOn(interrupt.Cause{Kind: k}); got != want {
			t.Errorf("%v: %d, want %d", k, got, want)
		}
	}
	for status, want := range map[int]verdict{408: neutral, 409: neutral, 429: limited, 500: bad, 502: bad, 503: bad, 529: bad} {
		if got := verdictOn(interrupt.Cause{Kind: interrupt.BadStatus, Status: status}); got != want {
			t.Errorf("%d: %d, want %d", status, got, want)
		}
	}
}

// A stream that lasted longer than the window still tells of its end.
func TestFailureCountsWhenItHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(testBreaker, func(gobreaker.State, gobreaker.State, gobreaker.Counts) {})
		var ps []*permit
		for range 5 {
			p, _ := leave(b)
			p.report(good)
			ps = append(ps, p)
		}
		time.Sleep(10 * time.Minute)
		for _, p := range ps {
			p.report(bad)
			p.report(bad) // once
		}
		if b.barred() <= 0 {
			t.Error("five long streams broke and nobody noticed")
		}
	})
}
