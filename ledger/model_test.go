package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// TestModel plays random programs: two processes of one application share a store
// that fails before and after its effects, crash between any two acts, take over
// from each other while the other still lives, and run tools whose effects are
// counted outside. Whatever happens:
//
//   - a tool under never_replay has its effect at most once, under replay at most as
//     often as its policy allows, and nothing is executed after an "unknown";
//   - no call is lost: at the end each is completed, given up, or open with advice;
//     completed means that it had its effect;
//   - nobody sees half a batch; no ticket lets two go on; versions only grow.
func TestModel(t *testing.T) {
	programs := 150
	if testing.Short() {
		programs = 40
	}
	var sum tally
	for seed := range programs {
		w := newWorld(t, uint64(seed))
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
	store   *flaky
	key     RunKey
	scope   checkpoint.Scope
	reports bool
	steps   int            // inferences that were committed
	effects map[string]int // per operation, as the tools' own systems count them
	went    map[string]int // per ticket: how many were told to go on
	seen    uint64         // largest version
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{T: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), now: noon, effects: map[string]int{}, went: map[string]int{}}
	w.scope = checkpoint.Scope{1}
	w.key = Key(w.scope, "run")
	w.reports = w.rng.IntN(5) != 0
	w.store = &flaky{Store: NewMemory(MemoryConfig{Clock: func() time.Time { return w.now }}), w: w}
	return w
}

// flaky fails a call before or after its effect.
type flaky struct {
	Store
	w *world
}

var errLost = fmt.Errorf("%w: as the seed wanted", ErrUnavailable)

func (f *flaky) Save(ctx context.Context, key RunKey, scope checkpoint.Scope, r *Run, expect uint64) error {
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

// proc is a process of the application. It follows the advice, one act a turn, and
// keeps nothing but its claim, its keys and what it is about to do.
type proc struct {
	w     *world
	name  string
	fence uint64
	key   string // of its claim
	todo  []func() bool
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
	return &proc{w: w, name: name, key: fmt.Sprintf("claim-%s-%d", name, w.rng.Uint64())}
}

// tell appends an entry, again when the answer was lost, and reports whether it is
// acknowledged.
func (p *proc) tell(fence uint64, key string, a Act) (*Run, error) {
	for range 3 {
		r, _, err := Append(context.Background(), p.w.store, p.w.key, p.w.scope, Entry{At: p.w.now, Fence: fence, Key: key, Do: a})
		if errors.Is(err, ErrFenced) {
			p.w.Fenced++
		}
		if !errors.Is(err, ErrUnavailable) {
			return r, err
		}
	}
	return nil, ErrUnavailable
}

func (p *proc) act() {
	if len(p.todo) > 0 {
		next := p.todo[0]
		p.todo = p.todo[1:]
		if !next() {
			p.todo = nil
		}
		return
	}
	if p.fence == 0 {
		p.arrive()
		return
	}
	got, err := p.w.store.Load(context.Background(), p.w.key)
	if err != nil {
		p.w.Fatalf("seed %d: load: %v", p.w.seed, err)
	}
	p.follow(got.Run, Recover(got.Run, Asker{Fence: p.fence}))
}

// arrive begins the run, or takes it over.
func (p *proc) arrive() {
	if _, err := p.tell(0, "", Begin{ID: "run"}); err != nil {
		return
	}
	r, err := p.tell(0, p.key, Claim{Holder: p.name})
	if err != nil {
		return
	}
	p.fence = r.Fence
	p.w.Takeovers++
	if len(r.Steps) == 0 && p.w.reports {
		_, _ = p.tell(p.fence, "", Declare{Reports: true, Policies: []ToolPolicy{
			{Tool: "read", Policy: Policy{Recovery: Replay}}, {Tool: "job", Policy: Policy{Recovery: Reconnect, Attempts: 2}},
		}})
	}
}

func (p *proc) follow(r *Run, a Answer) {
	switch a.Advice {
	case StandDown:
		if p.w.rng.IntN(4) == 0 {
			*p = *p.w.spawn(p.name) // insists, as a restarted process does
		}
	case NextStep:
		p.infer(r)
	case SettleBatch, AwaitTicket, Unknown:
		if a.Advice == Unknown {
			p.w.Unknown++
		}
		if len(a.Calls) == 0 {
			p.redeem(r, a.Ticket.ID)
			return
		}
		p.settle(r, a)
	case Redeliver:
	default:
		p.w.Fatalf("seed %d: %s for a run", p.w.seed, a.Advice)
	}
}

// infer asks the model; the sidecar commits what it says.
func (p *proc) infer(r *Run) {
	n := r.Dropped + len(r.Steps) + 1
	if n > 5 {
		return
	}
	c := Commit{Message: Sum(fmt.Appendf(nil, "message %d", n)), Lineage: fmt.Sprintf("line %d", n)}
	if n < 5 || p.w.rng.IntN(2) == 0 {
		for i := range 1 + p.w.rng.IntN(3) {
			c.Calls = append(c.Calls, Asked{ID: fmt.Sprintf("call_%d", i), Name: []string{"pay", "read", "job"}[p.w.rng.IntN(3)]})
		}
	}
	_, _ = p.tell(0, "", c)
}

// settle takes up one open call.
func (p *proc) settle(r *Run, a Answer) {
	c := a.Calls[p.w.rng.IntN(len(a.Calls))]
	key := fmt.Sprintf("%s-%d", p.name, p.w.rng.Uint64())
	switch c.Advice {
	case Execute, ReplayCall, ReconnectCall:
		if c.Advice == Execute && p.w.rng.IntN(4) == 0 {
			_, _ = p.tell(p.fence, key, Wait{Call: c.Op, Ticket: Ticket{ID: "ticket-" + key, Kind: "approval"}})
			return
		}
		if c.Advice != Execute {
			p.w.Replays++
		}
		if _, err := p.tell(p.fence, key, Start{Call: c.Op, N: c.Attempt}); err != nil {
			return // not acknowledged: nothing was begun
		}
		p.run(c, c.Advice == ReconnectCall)
	case GiveUp:
		_, _ = p.tell(p.fence, "", Lose{Call: c.Op, Why: "its process is gone"})
	case AwaitTicket:
		p.redeem(r, c.Ticket)
	case Unknown:
		if r.Reports {
			p.w.Fatalf("seed %d: unknown in a run that reports: %s", p.w.seed, c.Reason)
		}
		if p.w.rng.IntN(6) == 0 {
			_, _ = p.tell(p.fence, "", Lose{Call: c.Op, Why: "a person says so"})
		}
	case Keep, InFlight:
	default:
		p.w.Fatalf("seed %d: %s for a call", p.w.seed, c.Advice)
	}
}

// run has the effect, and then tells of it; it may crash between the two. Asking
// what became of an operation has no effect of its own if it had it already.
func (p *proc) run(c CallAnswer, ask bool) {
	p.todo = []func() bool{
		func() bool {
			if !ask || p.w.effects[c.Op] == 0 {
				p.w.effects[c.Op]++
				p.w.Effects++
			}
			return true
		},
		func() bool {
			_, err := p.tell(p.fence, "", Result{Call: c.Op, Content: []byte("result of " + c.Op)})
			return err == nil
		},
	}
}

// redeem goes on with a ticket, which its issuer may do for anyone who asks.
func (p *proc) redeem(r *Run, id string) {
	t := r.ticket(id)
	key := fmt.Sprintf("%s-%d", p.name, p.w.rng.Uint64())
	after, err := p.tell(p.fence, key, Resume{Ticket: id, Kind: t.Kind})
	if err != nil {
		return
	}
	p.w.Redeemed++
	p.w.went[id]++
	_, c := after.find(t.Call)
	p.run(CallAnswer{Op: c.Op}, false)
}

// check holds the stored run against the model, after every act.
func (w *world) check() *Run {
	got, err := w.store.Load(context.Background(), w.key)
	if errors.Is(err, ErrNotFound) {
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
			if n := w.effects[c.Op]; n > c.Policy.attempts() || n > len(c.Attempts) {
				w.Fatalf("seed %d: %s had its effect %d times, %d attempts are announced, policy %s", w.seed, c.Op, n, len(c.Attempts), c.Policy)
			}
			if c.State == Done && w.effects[c.Op] == 0 {
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
	var r *Run
	for range 500 {
		p.act()
		if r = w.check(); r != nil && (r.State == Ended || w.steps >= 5 && r.Open() == nil) {
			break
		}
	}
	for i := range r.Steps {
		for j := range r.Steps[i].Calls {
			c := &r.Steps[i].Calls[j]
			switch {
			case c.State == Indeterminate:
				w.GivenUp++
				if r.Reports && len(c.Attempts) == 0 {
					w.Fatalf("seed %d: %s was given up and no attempt was announced", w.seed, c.Op)
				}
			case c.State != Done:
				w.Fatalf("seed %d: %s is %s in the end: %+v", w.seed, c.Op, c.State, Recover(r, Asker{Fence: p.fence}))
			}
		}
	}
	if r.State == Ended {
		w.Ended++
	}
}
