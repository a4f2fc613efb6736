package proxy

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	fails "github.com/unbroken-llm/unbroken/checkpoint/storetest"
	"github.com/unbroken-llm/unbroken/ledger"
	"github.com/unbroken-llm/unbroken/ledger/storetest"
)

// declared are tools, as a request of each dialect declares them.
var declared = map[string]string{
	"chat":      `{"tools":[{"type":"function","function":{"name":"look"}}],`,
	"messages":  `{"tools":[{"name":"look","input_schema":{"type":"object"}}],`,
	"responses": `{"tools":[{"type":"function","name":"look"}],`,
	"gemini":    `{"tools":[{"functionDeclarations":[{"name":"look"}]}],`,
}

func (c *dialogue) withTools(body string) string { return declared[c.name] + body[1:] }

// books is the ledger of a proxy under test, with the scope of ann.
type books struct {
	*testing.T
	*ledger.Memory
	who checkpoint.Scope
}

func ledgered(t *testing.T, c *dialogue) (*provider, *proxied, *books) {
	p := c.provider(t)
	b := &books{T: t, Memory: ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})}
	s := start(t, p, withGemini(p), patient(b))
	b.who, _ = s.ScopeOf(http.Header{"Authorization": {"Bearer ann"}})
	return p, s, b
}

// patient lets the end of a turn wait for the ledger as long as a slow machine needs.
func patient(b *books) func(*Config) {
	return func(c *Config) { c.Ledger, c.AckWait = b.Memory, time.Minute }
}

// runs returns all runs, the last written first.
func (b *books) runs() (out []*ledger.Run) {
	b.Helper()
	keys, err := b.Recent(context.Background(), 100)
	if err != nil {
		b.Fatal(err)
	}
	for _, k := range keys {
		got, err := b.Load(context.Background(), k)
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, got.Run)
	}
	return out
}

func (b *books) only() *ledger.Run {
	b.Helper()
	all := b.runs()
	if len(all) != 1 {
		b.Fatalf("%d runs, want 1", len(all))
	}
	return all[0]
}

// TestRunsAreLearnedFromTheWire: an agent that knows nothing of the ledger has a run
// with its steps and batches, by its history alone, in every dialect.
func TestRunsAreLearnedFromTheWire(t *testing.T) {
	for _, c := range dialogues {
		t.Run(c.name, func(t *testing.T) {
			p, s, b := ledgered(t, &c)
			c.ask(t, s, p, c.withTools(c.first), ann)
			r := b.only()
			step := r.Open()
			if r.State != ledger.Running || step == nil || len(step.Calls) != 1 || step.Calls[0].Name != "look" || step.Calls[0].State != ledger.Requested {
				t.Fatalf("after the first turn: %s", ledger.Encode(r))
			}
			c.ask(t, s, p, c.withTools(c.plain(c.second)), ann)
			r = b.only()
			if r.State != ledger.Ended || r.Cause != ledger.Completed || len(r.Steps) != 2 || r.Steps[0].Calls[0].State != ledger.Done || !r.Steps[0].Finalized {
				t.Fatalf("after the second: %s", ledger.Encode(r))
			}
			first := r.ID
			c.ask(t, s, p, c.withTools(c.plain(c.last())), ann)
			all := b.runs()
			if len(all) != 2 || all[0].Parent != first || all[0].State != ledger.Ended {
				t.Fatalf("what goes on from an ended run is no run of its own: %s", ledger.Encode(all[0]))
			}
		})
	}
}

// TestResultsAreKnownBeforeTheAnswer: an agent that dies during the next inference
// must not be told to run again what it has answered for.
func TestResultsAreKnownBeforeTheAnswer(t *testing.T) {
	c := dialogues[0]
	asked2 := make(chan struct{})
	goOn := make(chan struct{})
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(c.broken...)
		a.rst()
	}, func(a *asked) {
		a.stream()
		a.chunks(c.whole[0])
		close(asked2)
		<-goOn
		a.chunks(c.whole[1:]...)
		a.end()
	})
	b := &books{T: t, Memory: ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})}
	s := start(t, p, patient(b))
	c.ask(t, s, p, c.withTools(c.first), ann)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = allOf(dial(t, s.addr).post(c.path, c.withTools(c.plain(c.second)), ann, "Connection: close").response())
	}()
	<-asked2
	var advice ledger.Answer
	eventually(t, "the batch is finalized while the next inference is under way", func() bool {
		r := b.only()
		advice = ledger.Recover(r, ledger.Asker{})
		return r.Open() == nil
	})
	close(goOn)
	<-done
	// Whoever asks meanwhile is not told that the next inference is due, either.
	if advice.Advice != ledger.Unknown || len(advice.Calls) != 0 {
		t.Errorf("%s: %s", advice.Advice, advice.Reason)
	}
}

// TestBranchesAreRunsOfTheirOwn: two requests that extend one history, and a request
// of another history under the same name, are runs beside the first.
func TestBranchesAreRunsOfTheirOwn(t *testing.T) {
	c := dialogues[0]
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(c.broken[0], strings.Replace(c.broken[1], `"c1"`, `"`+a.req.Header.Get("X-Call")+`"`, 1), fr("tool_calls"), done)
		a.end()
	})
	b := &books{T: t, Memory: ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})}
	s := start(t, p, patient(b))
	const run = "X-Run-Id: job-7"
	c.ask(t, s, p, c.withTools(c.first), ann, run, "X-Call: c1")
	first := b.only()
	if first.ID != "job-7" {
		t.Fatalf("the run is called %s", first.ID)
	}
	c.ask(t, s, p, c.withTools(c.plain(c.second)), ann, run, "X-Call: c2")
	if first = b.only(); len(first.Steps) != 2 {
		t.Fatalf("%s", ledger.Encode(first))
	}
	warmer := strings.Replace(c.plain(c.second), `"stream":true`, `"temperature":1,"stream":true`, 1) // else it is the same turn
	c.ask(t, s, p, c.withTools(warmer), ann, run, "X-Call: c3")
	all := b.runs()
	if len(all) != 2 || all[0].Parent != "job-7" || !strings.HasPrefix(string(all[0].ID), "job-7~") || all[0].Open().Calls[0].ID != "c3" {
		t.Fatalf("a second answer to the same results: %s", ledger.Encode(all[0]))
	}
	c.ask(t, s, p, c.withTools(strings.Replace(c.first, "Go", "Something else", 1)), ann, run, "X-Call: c4")
	if all = b.runs(); len(all) != 3 || all[0].Parent != "job-7" {
		t.Fatalf("another history under the same name: %s", ledger.Encode(all[0]))
	}
	if r := all[2]; r.ID != "job-7" || len(r.Steps) != 2 || r.Open().Calls[0].State != ledger.Requested {
		t.Fatalf("the first run was touched: %s", ledger.Encode(r))
	}
}

// TestAClaimedRunIsTheApplications, whatever it made of its history; an inference
// without the results of its open batch is forwarded and flagged.
func TestAClaimedRunIsTheApplications(t *testing.T) {
	c := dialogues[0]
	p, s, b := ledgered(t, &c)
	ctx, key := t.Context(), ledger.Key(b.who, "job-7")
	fence := b.tell("job-7", ledger.Begin{ID: "job-7"}, ledger.Claim{}, ledger.Declare{Reports: true}).Fence
	const run = "X-Run-Id: job-7"
	c.ask(t, s, p, c.withTools(c.first), ann, run)
	r := b.only()
	if !r.Reports || r.Open() == nil {
		t.Fatalf("%s", ledger.Encode(r))
	}
	if a := ledger.Recover(r, ledger.Asker{Fence: fence}); a.Advice != ledger.SettleBatch || a.Calls[0].Advice != ledger.Execute {
		t.Fatalf("%+v", a)
	}
	c.ask(t, s, p, c.withTools(strings.Replace(c.first, "Go", "Summary", 1)), ann, run)
	got, err := b.Load(ctx, key)
	if err != nil || len(got.Run.Flags) != 1 || got.Run.Flags[0] != FlagUnanswered || got.Run.Open() == nil {
		t.Fatalf("%s, %v", ledger.Encode(got.Run), err)
	}
}

// TestALedgerThatIsAwayIsNoReason to hold a stream up, or to fail one.
func TestALedgerThatIsAwayIsNoReason(t *testing.T) {
	c := dialogues[0]
	p := c.provider(t)
	s := start(t, p, func(cfg *Config) { cfg.Ledger = absent{} })
	if _, answer := c.ask(t, s, p, c.withTools(c.first), ann); !strings.Contains(answer, "look") {
		t.Fatalf("%s", answer)
	}
	eventually(t, "it is counted", func() bool { return s.Stats().Unledgered > 0 })
}

// absent is a store that hangs until the caller's time is over.
type absent struct{ ledger.Store }

func (absent) Load(ctx context.Context, _ ledger.RunKey) (ledger.Stored, error) {
	<-ctx.Done()
	return ledger.Stored{}, errors.Join(ledger.ErrUnavailable, ctx.Err())
}

func (absent) Find(ctx context.Context, _ checkpoint.Scope, _ string) ([]ledger.RunKey, error) {
	<-ctx.Done()
	return nil, errors.Join(ledger.ErrUnavailable, ctx.Err())
}

// TestNothingIsKeptWithoutAReason: turns in which no tool plays a part are no runs,
// nor are those of callers that nobody can tell apart.
func TestNothingIsKeptWithoutAReason(t *testing.T) {
	c := dialogues[0]
	p, s, b := ledgered(t, &c)
	c.ask(t, s, p, c.withTools(c.first))
	c.ask(t, s, p, c.first, ann)
	if n := len(b.runs()); n != 0 {
		t.Fatalf("%d runs", n)
	}
}

// TestALostTurnIsAskedForAgain: the process of a run died with a turn that it had not
// kept, and the model says another one now. That one takes its place, unless something
// of the first was begun.
func TestALostTurnIsAskedForAgain(t *testing.T) {
	for _, begun := range []bool{false, true} {
		c := dialogues[0]
		p := newProvider(t, func(a *asked) {
			a.stream()
			a.chunks(c.broken[0], strings.Replace(c.broken[1], `"c1"`, `"`+a.req.Header.Get("X-Call")+`"`, 1), fr("tool_calls"), done)
			a.end()
		})
		b := &books{T: t, Memory: ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})}
		s := start(t, p, patient(b))
		b.who, _ = s.ScopeOf(http.Header{"Authorization": {"Bearer ann"}})
		fence := b.tell("job-7", ledger.Begin{ID: "job-7"}, ledger.Claim{}, ledger.Declare{Reports: true}).Fence
		c.ask(t, s, p, c.withTools(c.first), ann, "X-Run-Id: job-7", "X-Call: c1")
		if begun {
			b.tell("job-7", ledger.Start{Call: "c1", N: 1})
		}
		warmer := strings.Replace(c.first, `"stream":true`, `"temperature":1,"stream":true`, 1) // else it is replayed
		c.ask(t, s, p, c.withTools(warmer), ann, "X-Run-Id: job-7", "X-Call: c2")
		all := b.runs()
		r := all[len(all)-1]
		if r.Fence != fence || len(r.Flags) != 0 {
			t.Fatalf("begun %t: %s", begun, ledger.Encode(r))
		}
		if begun && (len(all) != 2 || r.Open().Calls[0].State != ledger.Executing) {
			t.Fatalf("what was begun is given up: %s", ledger.Encode(r))
		}
		if !begun && (len(all) != 1 || len(r.Steps) != 2 || r.Steps[0].Calls[0].State != ledger.Indeterminate || r.Open().Calls[0].ID != "c2") {
			t.Fatalf("%s", ledger.Encode(r))
		}
	}
}

// TestResultsBesideOneThatWasGivenUp: what the application gave up does not keep the
// wire's other results from being seen, which left the batch open for good.
func TestResultsBesideOneThatWasGivenUp(t *testing.T) {
	c := dialogues[0]
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(oc(""), chatCall(0, "c1", "look", `{"at":1}`), chatCall(1, "c2", "look", `{"at":2}`), fr("tool_calls"), done)
		a.end()
	}, func(a *asked) {
		a.stream()
		a.chunks(c.whole...)
		a.end()
	})
	b := &books{T: t, Memory: ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})}
	s := start(t, p, patient(b))
	b.who, _ = s.ScopeOf(http.Header{"Authorization": {"Bearer ann"}})
	b.tell("job-7", ledger.Begin{ID: "job-7"}, ledger.Claim{}, ledger.Declare{Reports: true})
	c.ask(t, s, p, c.withTools(c.first), ann, "X-Run-Id: job-7")
	b.tell("job-7", ledger.Lose{Call: "c1", Why: "nobody knows"})
	both := `{"model":"gpt-x","stream":true,"messages":[{"role":"user","content":"Go"},{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}},{"id":"c2","type":"function","function":{"name":"look","arguments":"{\"at\":2}"}}]},` +
		`{"role":"tool","tool_call_id":"c1","content":"who knows"},{"role":"tool","tool_call_id":"c2","content":"seen"}]}`
	c.ask(t, s, p, c.withTools(both), ann, "X-Run-Id: job-7")
	r := b.only()
	if calls := r.Steps[0].Calls; calls[0].State != ledger.Indeterminate || calls[1].State != ledger.Done || r.State != ledger.Ended || s.Stats().Unledgered != 0 {
		t.Fatalf("%s, %d facts were not taken", ledger.Encode(r), s.Stats().Unledgered)
	}
}

// TestATurnThatWasNotRecorded makes recovery say unknown: the application has it, and
// may have executed its calls. An application that announces its attempts has not.
func TestATurnThatWasNotRecorded(t *testing.T) {
	for _, reports := range []bool{false, true} {
		c := dialogues[0]
		p := c.provider(t)
		b := &books{T: t, Memory: ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})}
		store := &storetest.Faulty{Store: b.Memory}
		s := start(t, p, patient(b), func(cfg *Config) { cfg.Ledger = store })
		b.who, _ = s.ScopeOf(http.Header{"Authorization": {"Bearer ann"}})
		b.tell("job-7", ledger.Begin{ID: "job-7"}, ledger.Claim{}, ledger.Declare{Reports: reports})
		store.Fail(fails.Before)
		if _, answer := c.ask(t, s, p, c.withTools(c.first), ann, "X-Run-Id: job-7"); !strings.Contains(answer, "look") {
			t.Fatalf("%s", answer)
		}
		got, err := s.Ledger().Load(t.Context(), ledger.Key(b.who, "job-7"))
		if err != nil {
			t.Fatal(err)
		}
		want := ledger.Unknown
		if reports {
			want = ledger.NextStep
		}
		if a := ledger.Recover(got.Run, ledger.Asker{Fence: got.Run.Fence, Doubt: got.Doubt}); a.Advice != want {
			t.Fatalf("reports %t: %+v", reports, a)
		}
	}
}

// tell has the application tell of its run, and returns the run.
func (b *books) tell(id checkpoint.RunID, acts ...ledger.Act) (r *ledger.Run) {
	b.Helper()
	for i, a := range acts {
		e := ledger.Entry{At: time.Now(), Key: "key", Do: a}
		if r != nil {
			e.Fence = r.Fence
		} else if got, err := b.Load(context.Background(), ledger.Key(b.who, id)); err == nil {
			e.Fence = got.Run.Fence
		}
		var err error
		if r, _, err = ledger.Append(context.Background(), b.Memory, ledger.Key(b.who, id), b.who, e); err != nil {
			b.Fatalf("%d: %v", i, err)
		}
	}
	return r
}
