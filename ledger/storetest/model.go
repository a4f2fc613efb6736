package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
)

// Model plays random programs: two processes of one application share a store
// that fails before and after its effects, crash between any two acts, take over
// from each other while the other still lives, and run tools whose effects are
// counted outside. Whatever happens:
//
//   - a tool under never_replay has its effect at most once, under replay at most as
//     often as its policy allows, and nothing is executed after an "unknown";
//   - no call is lost: at the end each is completed, given up, or open with advice;
//     completed means that it had its effect;
//   - nobody sees half a batch; no ticket lets two go on; versions only grow.
//
// open returns an empty store, as each of the two processes has it.
func Model(t *testing.T, programs int, open func(t *testing.T) [2]ledger.Store) {
	var sum tally
	for seed := range programs {
		w := newWorld(t, uint64(seed), open(t))
		w.play()
		sum.add(w.tally)
	}
	t.Logf("%d programs: %+v", programs, sum)
	for what, n := range map[string]int{
		"effects": sum.Effects, "crashes": sum.Crashes, "takeovers": sum.Takeovers, "lost answers": sum.LostAnswers,
		"lost writes": sum.LostWrites, "given up": sum.GivenUp, "fenced": sum.Fenced, "redeemed": sum.Redeemed, "replays": sum.Replays,
		"unknown": sum.Unknown, "ended": sum.Ended,
	} {
		if n == 0 {
			t.Errorf("no program had any: %s", what)
		}
	}
}

type tally struct {
	Effects, Crashes, Takeovers, LostAnswers, LostWrites, GivenUp, Fenced, Redeemed, Replays, Unknown, Ended int
}

func (a *tally) add(b tally) {
	a.Effects += b.Effects
	a.Crashes += b.Crashes
	a.Takeovers += b.Takeovers
	a.LostAnswers += b.LostAnswers
	a.LostWrites += b.LostWrites
	a.GivenUp += b.GivenUp
	a.Fenced += b.Fenced
	a.Redeemed += b.Redeemed
	a.Replays += b.Replays
	a.Unknown += b.Unknown
	a.Ended += b.Ended
}

// world is what the processes share, and what only the test sees.
type world struct {
	*testing.T
	tally
	seed    uint64
	rng     *rand.Rand
	now     time.Time
	stores  [2]*flaky
	key     ledger.RunKey
	scope   checkpoint.Scope
	reports bool
	steps   int            // inferences that were committed
	effects map[string]int // per operation, as the tools' own systems count them
	went    map[string]int // per ticket: how many were told to go on
	seen    uint64         // largest version
}

func newWorld(t *testing.T, seed uint64, stores [2]ledger.Store) *world {
	w := &world{T: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), now: noon, effects: map[string]int{}, went: map[string]int{}}
	w.scope = checkpoint.Scope{1}
	w.key = ledger.Key(w.scope, "run")
	w.reports = w.rng.IntN(5) != 0
	for i, s := range stores {
		w.stores[i] = &flaky{Store: s, w: w}
	}
	return w
}

// flaky fails a call before or after its effect.
type flaky struct {
	ledger.Store
	w *world
}

var errLost = fmt.Errorf("%w: as the seed wanted", ledger.ErrUnavailable)

func (f *flaky) Save(ctx context.Context, key ledger.RunKey, scope checkpoint.Scope, r *ledger.Run, expect uint64) error {
	n := f.w.rng.IntN(12)
	if n == 0 {
		f.w.LostWrites++
		return errLost
	}
	if err := f.Store.Save(ctx, key, scope, r, expect); err != nil {
		return err
	}
	if r.Version <= f.w.seen {
		f.w.Fatalf("seed %d: version %d after %d", f.w.seed, r.Version, f.w.seen)
	}
	f.w.seen = r.Version
	if n == 1 {
		f.w.LostAnswers++
		return errLost
	}
	return nil
}

func (w *world) play() {
	procs := []*proc{w.spawn("one"), w.spawn("two")}
	procs = procs[:1+w.rng.IntN(2)]
	for range 60 + w.rng.IntN(60) {
		w.now = w.now.Add(time.Duration(w.rng.IntN(2000)-300) * time.Millisecond) // clocks jump
		i := w.rng.IntN(len(procs))
		if w.rng.IntN(9) == 0 {
			w.Crashes++
			procs[i] = w.spawn(fmt.Sprintf("%s'", procs[i].name[:3]))
			continue
		}
		procs[i].act()
		w.check()
	}
	w.final()
}

func (w *world) spawn(name string) *proc {
	store := w.stores[0]
	if strings.HasPrefix(name, "two") {
		store = w.stores[1]
	}
	return &proc{w: w, store: store, name: name, key: fmt.Sprintf("claim-%s-%d", name, w.rng.Uint64())}
}

// check holds the stored run against the model, after every act.
func (w *world) check() *ledger.Run {
	got, err := w.stores[0].Load(context.Background(), w.key)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	if err != nil {
		w.Fatalf("seed %d: %v", w.seed, err)
	}
	r := got.Run
	w.steps = r.Dropped + len(r.Steps)
	for i := range r.Steps {
		s := &r.Steps[i]
		for _, o := range r.Results(s.N) {
			if o == nil && !s.Finalized {
				w.Fatalf("seed %d: half a batch of step %d is to be seen", w.seed, s.N)
			}
		}
		for j := range s.Calls {
			c := &s.Calls[j]
			if n := w.effects[c.Op]; n > attempts(c.Policy) || n > len(c.Attempts) {
				w.Fatalf("seed %d: %s had its effect %d times, %d attempts are announced, policy %s", w.seed, c.Op, n, len(c.Attempts), c.Policy.Recovery)
			}
			if c.State == ledger.Done && w.effects[c.Op] == 0 {
				w.Fatalf("seed %d: %s is completed and never ran", w.seed, c.Op)
			}
		}
	}
	for id, n := range w.went {
		if n > 1 {
			w.Fatalf("seed %d: ticket %s let %d go on", w.seed, id, n)
		}
	}
	return r
}

// final: one healthy process brings every run to a place where nothing is in doubt
// but what nobody can know.
func (w *world) final() {
	p := w.spawn("end")
	var r *ledger.Run
	for range 500 {
		p.act()
		if r = w.check(); r != nil && (r.State == ledger.Ended || w.steps >= 5 && r.Open() == nil) {
			break
		}
	}
	for i := range r.Steps {
		for j := range r.Steps[i].Calls {
			c := &r.Steps[i].Calls[j]
			switch {
			case c.State == ledger.Indeterminate:
				w.GivenUp++
				if r.Reports && len(c.Attempts) == 0 {
					w.Fatalf("seed %d: %s was given up and no attempt was announced", w.seed, c.Op)
				}
			case c.State != ledger.Done:
				w.Fatalf("seed %d: %s is %s in the end: %+v", w.seed, c.Op, c.State, ledger.Recover(r, ledger.Asker{Fence: p.fence}))
			}
		}
	}
	if r.State == ledger.Ended {
		w.Ended++
	}
}
