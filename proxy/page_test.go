package proxy

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
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
	eventually(t, "the batch is finalized while the next inference is under way", func() bool {
		return ledger.Recover(b.only(), ledger.Asker{}).Advice == ledger.NextStep
	})
	close(goOn)
	<-done
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
	tell := func(a ledger.Act, fence uint64) *ledger.Run {
		t.Helper()
		r, _, err := ledger.Append(ctx, b.Memory, key, b.who, ledger.Entry{At: time.Now(), Fence: fence, Key: "k", Do: a})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	tell(ledger.Begin{ID: "job-7"}, 0)
	fence := tell(ledger.Claim{}, 0).Fence
	tell(ledger.Declare{Reports: true}, fence)
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
