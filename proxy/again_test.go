package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
	"github.com/unbroken-llm/unbroken/turn"
)

// TestAServerIsKilledBetweenCheckpointAndLedger: the turn is replayed, and who replays it
// tells the ledger, so that the run has it once, with the calls that the client has. It
// was generated anew, and the first batch, which nobody could be given any more, was given
// up.
func TestAServerIsKilledBetweenCheckpointAndLedger(t *testing.T) {
	for _, store := range ledgers {
		for i, c := range dialogues {
			if i > 0 && store.name != "memory" {
				continue
			}
			for _, owner := range owners {
				for turn := range 3 {
					for _, when := range []string{"before the ledger has it", "when the ledger has it"} {
						for _, how := range []string{"taken over", "followed", "adopted"} {
							if how == "adopted" && owner.declare != nil {
								continue // the run has a name
							}
							k := killing{
								c: &c, owner: owner, turn: turn, before: when[0] == 'b', how: how,
								asks: []string{c.withTools(c.first), c.withTools(c.plain(c.second)), c.withTools(c.plain(c.last()))},
							}
							t.Run(fmt.Sprintf("%s, %s, %s, turn %d, %s, %s", store.name, c.name, owner.name, turn+1, when, how), func(t *testing.T) {
								t.Parallel()
								k.play(&agency{T: t, l: store.open(t), turns: newCommon()})
							})
						}
					}
				}
			}
		}
	}
}

// TestAHistoryThatWasCompacted is none of the run's, whose application owns it all the
// same: who replays its turn knows that the run lacks it by what was noted before.
func TestAHistoryThatWasCompacted(t *testing.T) {
	c := dialogues[0]
	for _, owner := range owners[1:] {
		t.Run(owner.name, func(t *testing.T) {
			k := killing{
				c: &c, owner: owner, turn: 1, before: true, how: "followed", settles: true,
				asks: []string{c.withTools(c.first), c.withTools(strings.Replace(c.first, "Go", "In short", 1))},
			}
			k.play(&agency{T: t, l: ledgers[0].open(t), turns: newCommon()})
		})
	}
}

// TestAReplayTellsWhatItsRequestAnswers: the server that died had heard of the results, and
// could tell nobody of them. Without them the batch before the turn stood open.
func TestAReplayTellsWhatItsRequestAnswers(t *testing.T) {
	c := dialogues[0]
	for _, owner := range owners {
		t.Run(owner.name, func(t *testing.T) {
			k := killing{
				c: &c, owner: owner, turn: 1, deaf: true,
				asks: []string{c.withTools(c.first), c.withTools(c.plain(c.second))},
			}
			k.play(&agency{T: t, l: ledgers[0].open(t), turns: newCommon()})
		})
	}
}

// ended reports whether a checkpoint has the end of its turn.
func ended(log []byte) bool {
	said, err := turn.Replay(log)
	return err == nil && said.Finished()
}

// killing is where a server is killed.
type killing struct {
	c       *dialogue
	owner   whose
	asks    []string
	settles bool   // the application tells the result of the call itself
	turn    int    // whose end is on its way
	before  bool   // the ledger has not got it
	deaf    bool   // the ledger takes nothing from the time when the turn is asked for
	how     string // "followed": its death is not known yet to who comes to the turn
}

func (k *killing) play(a *agency) {
	run, again := "X-Run-Id: job-7", "X-Run-Id: job-7"
	if k.how == "adopted" { // nothing but a retry's mark tells whose turn it is
		run, again = "X-None: 1", "X-Stainless-Retry-Count: 1"
	}
	p := k.c.provider(a.T)
	one, v, w := a.server(p)
	two, _, _ := a.server(p)
	a.tell("job-7", k.owner.declare...)
	for i, body := range k.asks[:k.turn] {
		k.c.ask(a.T, one, p, body, ann, run)
		if k.settles && i == 0 {
			a.tell("job-7", ledger.Result{Call: "c1", Digest: ledger.Sum([]byte("seen"))})
		}
	}
	had := a.steps()
	dead := make(chan struct{})
	if k.deaf {
		v.after = func(key checkpoint.TurnKey) {
			if rec, err := a.turns.Get(context.Background(), key); err == nil && ended(rec.Log) && w.cut.CompareAndSwap(false, true) {
				kill(one, v)
				close(dead)
			}
		}
	}
	w.around = func(r *ledger.Run, save func() error) error {
		if k.deaf {
			return ledger.ErrUnavailable
		}
		if last := r.Last(); w.cut.Load() || last == nil || slices.Contains(had, last.Lineage) {
			return save()
		}
		if !k.before {
			_ = save()
		}
		w.cut.Store(true)
		defer close(dead)
		if k.how == "followed" {
			v.cut.Store(true)
			one.dog.each(func(l *lifeline) { l.conn.Close() })
		} else {
			kill(one, v)
		}
		return ledger.ErrUnavailable
	}
	first := dial(a.T, one.addr).post(k.c.path, k.asks[k.turn], ann, run, "Connection: close")
	within(a.T, "the server is killed", dead)
	if b, _ := io.ReadAll(first.br); bytes.HasSuffix(b, []byte("\r\n0\r\n\r\n")) {
		a.Fatalf("the end was told before the ledger had it: %s", b)
	}
	said, err := allOf(dial(a.T, two.addr).post(k.c.path, k.asks[k.turn], ann, again, "Connection: close").response())
	if err != nil || k.turn == 0 && !strings.Contains(said, "look") || k.turn > 0 && !strings.Contains(said, "Fine.") {
		a.Fatalf("%s, %v", said, err)
	}
	if p.hits() != k.turn+1 {
		a.Errorf("the provider was asked %d times, want %d", p.hits(), k.turn+1)
	}
	k.judge(a)
}

// judge looks at what the ledger has in the end: each turn once. The first has a call, the
// second ends the run, and the third is of another that goes on from it.
func (k *killing) judge(a *agency) {
	all := a.runs()
	if n := 1 + k.turn/2; len(all) != n || len(a.steps()) != k.turn+1 {
		a.Fatalf("%d runs, want %d: %s", len(all), n, a.all())
	}
	for _, r := range all {
		if len(r.Flags)+len(r.Pending) != 0 {
			a.Errorf("the run has oddities: %s", ledger.Encode(r))
		}
	}
	r := all[len(all)-1]
	batch := r.Steps[0].Calls
	switch {
	case len(batch) != 1 || batch[0].ID != "c1":
		a.Errorf("the batch is %+v", batch)
	case k.turn == 0 && (r.Open() == nil || batch[0].State != ledger.Requested):
		a.Errorf("the batch is not to be executed: %s", ledger.Encode(r))
	case k.turn > 0 && (r.State != ledger.Ended || r.Cause != ledger.Completed || batch[0].State != ledger.Done):
		a.Errorf("the run has not ended: %s", ledger.Encode(r))
	case k.turn == 2 && (all[0].Parent != r.ID || all[0].State != ledger.Ended):
		a.Errorf("what goes on from it has not ended: %s", ledger.Encode(all[0]))
	}
}

// TestAnOldTurnIsReplayedInSilence: a client that asks once more for a turn behind which
// the run is long gone gets it, and the ledger stays as it is.
func TestAnOldTurnIsReplayedInSilence(t *testing.T) {
	c := dialogues[0]
	const run = "X-Run-Id: job-7"
	call := func(n int) []string {
		return []string{oc(""), chatCall(0, fmt.Sprint("c", n), "look", `{"at":1}`), fr("tool_calls"), done}
	}
	// ask is what is asked for behind n turns whose calls were answered.
	ask := func(n int) string {
		b := strings.TrimSuffix(c.first, "]}")
		for i := range n {
			b += fmt.Sprintf(`,{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]},{"role":"tool","tool_call_id":"c%d","content":"seen"}`, i+1, i+1)
		}
		return c.withTools(b + "]}")
	}
	for _, owner := range owners {
		for _, tt := range []struct {
			name          string
			settled, lost bool // the last batch; the end of the second turn, which never got there
		}{
			{"a batch is open", false, false}, {"no batch is open", true, false},
			{"a batch is open, the ledger lacks a turn", false, true}, {"no batch is open, the ledger lacks a turn", true, true},
		} {
			if tt.lost && owner.declare == nil {
				continue // what goes on from a turn that it lacks is another run
			}
			t.Run(owner.name+", "+tt.name, func(t *testing.T) {
				a := &agency{T: t, l: ledgers[0].open(t), turns: newCommon()}
				turns := make([]func(*asked), 4)
				for n := range turns {
					turns[n] = func(a *asked) { a.stream(); a.chunks(call(n + 1)...); a.end() }
				}
				p := newProvider(t, turns...)
				one, _, w := a.server(p)
				two, _, _ := a.server(p)
				a.tell("job-7", owner.declare...)
				var away atomic.Bool
				w.around = func(r *ledger.Run, save func() error) error {
					if away.Load() && len(r.Steps) == 2 {
						return ledger.ErrUnavailable
					}
					return save()
				}
				for n := range turns {
					away.Store(tt.lost && n == 1)
					c.ask(t, one, p, ask(n), ann, run)
				}
				if tt.settled {
					a.tell("job-7", ledger.Result{Call: "c4", Digest: ledger.Sum([]byte("seen"))})
				}
				eventually(t, "all turns are let go of, and none is missed", func() bool {
					one.missed.mu.Lock()
					defer one.missed.mu.Unlock()
					return one.Stats().Live == 0 && !one.missed.on
				})
				was := a.all()
				for n := range turns {
					for _, s := range []*proxied{one, two} {
						said, err := allOf(dial(t, s.addr).post(c.path, ask(n), ann, run, "Connection: close").response())
						if err != nil || !strings.Contains(said, fmt.Sprint(`"c`, n+1, `"`)) {
							t.Fatalf("turn %d: %s, %v", n+1, said, err)
						}
						if is := a.all(); is != was {
							t.Fatalf("the replay of turn %d changed the ledger from\n%sto\n%s", n+1, was, is)
						}
					}
				}
				if p.hits() != len(turns) {
					t.Errorf("the provider was asked %d times", p.hits())
				}
			})
		}
	}
}

// TestManyTellOfOneTurn: whoever drives it, and all who follow it, here and in another
// process, tell the ledger of its end at the same time. It is one step. What makes the
// client act stops all but the newest of them before its end.
func TestManyTellOfOneTurn(t *testing.T) {
	const connections = 5
	for _, store := range ledgers {
		for _, owner := range owners {
			for _, m := range []manyTell{
				{"with a call", []string{chatCall(0, "c1", "look", `{"at":1}`), fr("tool_calls"), done}, 2, ledger.Running},
				{"without calls", []string{fr("stop"), done}, connections, ledger.Ended},
			} {
				t.Run(fmt.Sprintf("%s, %s, %s", store.name, owner.name, m.name), func(t *testing.T) {
					t.Parallel()
					m.play(&agency{T: t, l: store.open(t), turns: newCommon()}, &owner, connections)
				})
			}
		}
	}
}

// manyTell is a turn that several connections end at once, and what its run is then.
type manyTell struct {
	name  string
	rest  []string
	tell  int
	state ledger.RunState
}

func (m *manyTell) play(a *agency, owner *whose, connections int) {
	c := dialogues[0]
	goOn := make(chan struct{})
	p := newProvider(a.T, func(a *asked) {
		a.stream()
		a.chunks(oc("Let me look. "))
		<-goOn
		a.chunks(m.rest...)
		a.end()
	})
	one, _, w1 := a.server(p)
	two, _, w2 := a.server(p)
	a.tell("job-7", owner.declare...)
	// No step is saved before all who tell of it want to: each of them has read the run as
	// it was before.
	var gather sync.WaitGroup
	gather.Add(m.tell)
	var came atomic.Int32
	w1.around = func(r *ledger.Run, save func() error) error {
		if r.Last() != nil && came.Add(1) <= int32(m.tell) {
			gather.Done()
			gather.Wait()
		}
		return save()
	}
	w2.around = w1.around
	var ends sync.WaitGroup
	var whole atomic.Int32
	for i := range connections {
		res := dial(a.T, []*proxied{one, two}[i%2].addr).post(c.path, c.withTools(c.first), ann, "X-Run-Id: job-7", "Connection: close").response()
		until(a.T, res.Body, "look. ")
		ends.Go(func() {
			if _, err := allOf(res); err == nil {
				whole.Add(1)
			}
		})
	}
	close(goOn)
	ends.Wait()
	if n := whole.Load(); n != 1 || p.hits() != 1 {
		a.Errorf("%d connections have the turn; the provider was asked %d times", n, p.hits())
	}
	r := a.run("job-7")
	if n := strings.Count(a.all(), "\n"); n != 1 || len(r.Steps) != 1 || r.State != m.state || len(r.Flags)+len(r.Pending) != 0 {
		a.Errorf("%d runs: %s", n, a.all())
	}
	if open := r.Open(); m.state == ledger.Running && (open == nil || open.Calls[0].State != ledger.Requested) {
		a.Errorf("the batch is not to be executed: %s", ledger.Encode(r))
	}
}

// TestTheCheckpointHasTheEndFirst, and a checkpoint store that hangs leaves the ledger half
// of the time.
func TestTheCheckpointHasTheEndFirst(t *testing.T) {
	c := dialogues[0]
	t.Run("in time", func(t *testing.T) {
		a := &agency{T: t, l: ledgers[0].open(t), turns: newCommon()}
		p := c.provider(t)
		s, v, _ := a.server(p)
		var ahead, had atomic.Int32
		v.after = func(key checkpoint.TurnKey) {
			if rec, err := a.turns.Get(context.Background(), key); err == nil && ended(rec.Log) {
				had.Add(1)
				if got, err := a.l.Load(context.Background(), ledger.Key(a.who, "job-7")); err == nil && got.Run.Last() != nil {
					ahead.Add(1)
				}
			}
		}
		c.ask(t, s, p, c.withTools(c.first), ann, "X-Run-Id: job-7")
		if had.Load() == 0 || ahead.Load() != 0 {
			t.Errorf("of %d writes of the end, %d came behind the ledger's", had.Load(), ahead.Load())
		}
	})
	t.Run("in no time", func(t *testing.T) {
		goOn := make(chan struct{})
		p := newProvider(t, func(a *asked) {
			a.stream()
			a.chunks(oc("Let me look. "))
			<-goOn
			a.chunks(fr("stop"), done)
			a.end()
		})
		b := &books{T: t, Memory: ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})}
		st, with := stored()
		defer st.Wake()
		s := start(t, p, with, patient(b))
		s.ackClock = func(most time.Duration) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			if most < time.Minute { // half of what patient allows
				cancel()
			}
			return ctx, cancel
		}
		res := dial(t, s.addr).post(c.path, c.withTools(c.first), ann, "X-Run-Id: job-7", "Connection: close").response()
		until(t, res.Body, "look. ")
		st.Sleep()
		close(goOn)
		eventually(t, "the ledger has the turn", func() bool { return len(b.runs()) == 1 && b.only().Last() != nil })
		st.Wake()
		if said, err := allOf(res); err != nil || !strings.Contains(said, "[DONE]") {
			t.Errorf("%s, %v", said, err)
		}
	})
}

// usurped is a store in which a turn is taken over when its end is written.
type usurped struct{ *view }

func (u usurped) Append(ctx context.Context, f checkpoint.Fence, at int64, p []byte) error {
	if rec, err := u.common.Get(ctx, f.Key); err == nil {
		if ended(append(rec.Log, p...)) {
			u.mu.Lock()
			u.dead[rec.Owner] = true
			u.mu.Unlock()
			if _, _, err := u.common.Claim(ctx, f.Key, "a newer owner", checkpoint.Record{}); err != nil {
				return err
			}
		}
	}
	return u.view.Append(ctx, f, at, p)
}

// TestTheEndOfATurnThatWasTakenOver is not the ledger's: its newer owner has another. It
// was committed, as a batch that nobody had.
func TestTheEndOfATurnThatWasTakenOver(t *testing.T) {
	c := dialogues[0]
	a := &agency{T: t, l: ledgers[0].open(t), turns: newCommon()}
	goOn, never := make(chan struct{}), make(chan struct{})
	defer close(never)
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(oc("Let me look. "))
		<-goOn
		a.chunks(c.broken[1], fr("tool_calls"))
		<-never // what follows the end of a turn is not waited for
	})
	s := start(t, p, func(cfg *Config) {
		cfg.Store, cfg.ScopeKey = usurped{&view{common: a.turns}}, []byte("shared by all")
		cfg.Ledger, cfg.AckWait = a.l, time.Minute
	})
	a.who, _ = s.ScopeOf(http.Header{"Authorization": {"Bearer ann"}})
	a.tell("job-7", owners[1].declare...)
	res := dial(t, s.addr).post(c.path, c.withTools(c.first), ann, "X-Run-Id: job-7", "Connection: close").response()
	until(t, res.Body, "look. ")
	close(goOn)
	if said, err := allOf(res); err == nil || !strings.Contains(said, "newer connection") {
		t.Fatalf("%s, %v", said, err)
	}
	_ = s.Shutdown(t.Context()) // all that was to be told was told
	if r := a.run("job-7"); len(r.Steps) != 0 || len(r.Pending) != 1 {
		t.Errorf("%s", ledger.Encode(r))
	}
}
