package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	turns "github.com/unbroken-llm/unbroken/checkpoint/storetest"
	"github.com/unbroken-llm/unbroken/ledger"
)

var (
	us   = checkpoint.Scope{1}
	them = checkpoint.Scope{2}
	noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
)

// Run puts stores made by open through the battery. Each call of open returns an
// empty store; cleaning up is its own business.
func Run(t *testing.T, open func(t *testing.T) ledger.Store) {
	for _, tc := range []struct {
		name string
		run  func(*bench)
	}{
		{"a run that never was", neverWas},
		{"a run survives as it was written", survives},
		{"only the version that was seen is replaced", compared},
		{"a first write meets no other", firstWrite},
		{"a version is written once more", onceMore},
		{"what is handed out is the caller's", copies},
		{"callers are apart", apart},
		{"a run is found by its last step", found},
		{"branches of one history are all found", branches},
		{"a moved run is not found where it was", moved},
		{"the last written come first", recent},
		{"an ended context is no success", endedContext},
		{"racing writers lose nothing", racing},
		{"an entry is repeated after a lost answer", lostAnswer},
		{"an entry is repeated after it never arrived", neverArrived},
		{"a large run survives", large},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.run(&bench{T: t, ctx: t.Context(), store: open(t)})
		})
	}
}

// bench is one test's store with its checks.
type bench struct {
	*testing.T
	ctx   context.Context
	store ledger.Store
}

func (b *bench) want(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("%v, want %v", err, want)
	}
}

// tell appends an entry that must be new.
func (b *bench) tell(scope checkpoint.Scope, id checkpoint.RunID, e ledger.Entry) *ledger.Run {
	b.Helper()
	r, effect, err := ledger.Append(b.ctx, b.store, ledger.Key(scope, id), scope, e)
	if err != nil || effect != ledger.New {
		b.Fatalf("%s: %v, %v", e.Do.Name(), effect, err)
	}
	return r
}

// begin opens a run whose first step has that lineage.
func (b *bench) begin(scope checkpoint.Scope, id checkpoint.RunID, lineage string) *ledger.Run {
	b.Helper()
	b.tell(scope, id, ledger.Entry{At: noon, Do: ledger.Begin{ID: id, Thread: "thread", Dialect: "chat", Model: "model"}})
	return b.tell(scope, id, ledger.Entry{At: noon.Add(time.Second), Do: ledger.Commit{
		Message: ledger.Sum([]byte("m")), Lineage: lineage, Finish: "tool_calls", Calls: []ledger.Asked{{ID: "call", Name: "tool"}},
	}})
}

func (b *bench) load(scope checkpoint.Scope, id checkpoint.RunID) *ledger.Run {
	b.Helper()
	got, err := b.store.Load(b.ctx, ledger.Key(scope, id))
	if err != nil {
		b.Fatalf("load %s: %v", id, err)
	}
	if got.Doubt != "" {
		b.Fatalf("load %s: in doubt: %s", id, got.Doubt)
	}
	return got.Run
}

func (b *bench) finds(scope checkpoint.Scope, lineage string, want ...ledger.RunKey) {
	b.Helper()
	got, err := b.store.Find(b.ctx, scope, lineage)
	if err != nil || !slices.Equal(got, want) {
		b.Fatalf("lineage %s: %v, %v, want %v", lineage, got, err, want)
	}
}

func neverWas(b *bench) {
	_, err := b.store.Load(b.ctx, ledger.Key(us, "run"))
	b.want(err, ledger.ErrNotFound)
	b.finds(us, "line")
	b.want(b.store.Save(b.ctx, ledger.Key(us, "run"), us, &ledger.Run{ID: "run", Version: 7}, 6), ledger.ErrChanged)
	_, err = b.store.Load(b.ctx, ledger.Key(us, "run"))
	b.want(err, ledger.ErrNotFound)
}

func survives(b *bench) {
	want := b.begin(us, "run", "line")
	if got := b.load(us, "run"); !bytes.Equal(ledger.Encode(got), ledger.Encode(want)) {
		b.Fatalf("%s\nwant\n%s", ledger.Encode(got), ledger.Encode(want))
	}
}

func compared(b *bench) {
	r := b.begin(us, "run", "line")
	key := ledger.Key(us, "run")
	next := *r
	next.Version++
	b.want(b.store.Save(b.ctx, key, us, &next, r.Version-1), ledger.ErrChanged)
	b.want(b.store.Save(b.ctx, key, us, &next, r.Version+1), ledger.ErrChanged)
	b.want(b.store.Save(b.ctx, key, us, &next, 0), ledger.ErrChanged)
	if got := b.load(us, "run"); got.Version != r.Version {
		b.Fatalf("version %d after refusals", got.Version)
	}
	b.want(b.store.Save(b.ctx, key, us, &next, r.Version), nil)
	b.want(b.store.Save(b.ctx, key, us, &next, r.Version), ledger.ErrChanged)
}

func firstWrite(b *bench) {
	key := ledger.Key(us, "run")
	r := &ledger.Run{ID: "run", Version: 1}
	b.want(b.store.Save(b.ctx, key, us, r, 0), nil)
	b.want(b.store.Save(b.ctx, key, us, r, 0), ledger.ErrChanged)
}

// onceMore: so a repetition gets the copies confirmed that its first try did not.
func onceMore(b *bench) {
	r := b.begin(us, "run", "line")
	b.want(b.store.Save(b.ctx, ledger.Key(us, "run"), us, r, r.Version), nil)
	if got := b.load(us, "run"); !bytes.Equal(ledger.Encode(got), ledger.Encode(r)) {
		b.Fatalf("%s", ledger.Encode(got))
	}
	b.finds(us, "line", ledger.Key(us, "run"))
}

func copies(b *bench) {
	r := b.begin(us, "run", "line")
	r.Steps[0].Calls[0].Name = "changed"
	got := b.load(us, "run")
	if got.Steps[0].Calls[0].Name != "tool" {
		b.Fatal("what was passed in is kept")
	}
	got.Steps[0].Calls[0].Name = "changed"
	if b.load(us, "run").Steps[0].Calls[0].Name != "tool" {
		b.Fatal("what was handed out is kept")
	}
}

func apart(b *bench) {
	b.begin(us, "run", "line")
	_, err := b.store.Load(b.ctx, ledger.Key(them, "run"))
	b.want(err, ledger.ErrNotFound)
	b.finds(them, "line")
	b.begin(them, "run", "line")
	b.finds(us, "line", ledger.Key(us, "run"))
	b.finds(them, "line", ledger.Key(them, "run"))
}

func found(b *bench) {
	b.begin(us, "run", "line")
	b.finds(us, "line", ledger.Key(us, "run"))
	b.tell(us, "run", ledger.Entry{At: noon, Do: ledger.Result{Call: "call", Digest: ledger.Sum(nil)}})
	b.finds(us, "line", ledger.Key(us, "run"))
	b.finds(us, "another line")
	b.tell(us, "run", ledger.Entry{At: noon, Do: ledger.Commit{
		Message: ledger.Sum([]byte("m2")), Lineage: "line 2", Alias: "name 2", Calls: []ledger.Asked{{ID: "call", Name: "tool"}},
	}})
	b.finds(us, "line 2", ledger.Key(us, "run"))
	b.finds(us, "name 2", ledger.Key(us, "run"))
}

func branches(b *bench) {
	b.begin(us, "one", "line")
	b.begin(us, "two", "line")
	b.begin(us, "three", "line")
	b.finds(us, "line", ledger.Key(us, "three"), ledger.Key(us, "two"), ledger.Key(us, "one"))
	b.tell(us, "one", ledger.Entry{At: noon, Do: ledger.Flag{What: "written again"}})
	b.finds(us, "line", ledger.Key(us, "one"), ledger.Key(us, "three"), ledger.Key(us, "two"))
	for n := range ledger.MaxFound {
		b.begin(us, checkpoint.RunID(fmt.Sprintf("more-%d", n)), "line")
	}
	got, err := b.store.Find(b.ctx, us, "line")
	if err != nil || len(got) != ledger.MaxFound || slices.Contains(got, ledger.Key(us, "one")) {
		b.Fatalf("%d runs, %v", len(got), err)
	}
}

func moved(b *bench) {
	b.begin(us, "run", "line 1")
	b.tell(us, "run", ledger.Entry{At: noon, Do: ledger.Result{Call: "call", Digest: ledger.Sum(nil)}})
	b.tell(us, "run", ledger.Entry{At: noon, Do: ledger.Commit{Message: ledger.Sum([]byte("m2")), Lineage: "line 2", Calls: []ledger.Asked{{ID: "call", Name: "tool"}}}})
	b.finds(us, "line 2", ledger.Key(us, "run"))
	b.finds(us, "line 1")
}

func recent(b *bench) {
	for _, id := range []checkpoint.RunID{"one", "two", "three"} {
		b.begin(us, id, "line "+string(id))
	}
	b.tell(us, "one", ledger.Entry{At: noon, Do: ledger.Flag{What: "written again"}})
	got, err := b.store.Recent(b.ctx, 2)
	if err != nil || !slices.Equal(got, []ledger.RunKey{ledger.Key(us, "one"), ledger.Key(us, "three")}) {
		b.Fatalf("%v, %v", got, err)
	}
}

func endedContext(b *bench) {
	b.begin(us, "run", "line")
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	key := ledger.Key(us, "run")
	_, err := b.store.Load(ctx, key)
	b.want(err, ledger.ErrUnavailable)
	b.want(b.store.Save(ctx, key, us, b.load(us, "run"), 0), ledger.ErrUnavailable)
	_, err = b.store.Find(ctx, us, "line")
	b.want(err, ledger.ErrUnavailable)
	_, err = b.store.Recent(ctx, 1)
	b.want(err, ledger.ErrUnavailable)
}

// racing: every flag of every writer is there in the end, each as a version of its
// own.
func racing(b *bench) {
	r := b.begin(us, "run", "line")
	const writers, each = 4, 5
	var wait sync.WaitGroup
	errs := make(chan error, writers*each)
	for w := range writers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for n := range each {
				e := ledger.Entry{At: noon, Do: ledger.Flag{What: fmt.Sprintf("%d-%d", w, n)}}
				for {
					_, _, err := ledger.Append(b.ctx, b.store, ledger.Key(us, "run"), us, e)
					if errors.Is(err, ledger.ErrChanged) {
						continue // too many were faster; it says so and may be repeated
					}
					if err != nil {
						errs <- err
					}
					break
				}
			}
		}()
	}
	wait.Wait()
	close(errs)
	for err := range errs {
		b.Error(err)
	}
	got := b.load(us, "run")
	if len(got.Flags) != writers*each || got.Version != r.Version+writers*each {
		b.Fatalf("%d flags, version %d after %d", len(got.Flags), got.Version, r.Version)
	}
}

func lostAnswer(b *bench)   { b.again(turns.After) }
func neverArrived(b *bench) { b.again(turns.Before) }

// again: a claim whose answer was lost is repeated, and there is one claim.
func (b *bench) again(m turns.Moment) {
	b.begin(us, "run", "line")
	faulty := &Faulty{Store: b.store}
	key := ledger.Key(us, "run")
	claim := ledger.Entry{At: noon, Key: "claim", Do: ledger.Claim{Holder: "agent"}}
	faulty.Fail(m)
	_, _, err := ledger.Append(b.ctx, faulty, key, us, claim)
	b.want(err, ledger.ErrUnavailable)
	r, _, err := ledger.Append(b.ctx, faulty, key, us, claim)
	b.want(err, nil)
	start := ledger.Entry{At: noon, Fence: r.Fence, Key: "start", Do: ledger.Start{Call: "call", N: 1}}
	faulty.Fail(m)
	_, _, err = ledger.Append(b.ctx, faulty, key, us, start)
	b.want(err, ledger.ErrUnavailable)
	r, _, err = ledger.Append(b.ctx, faulty, key, us, start)
	b.want(err, nil)
	if c := r.Open().Calls[0]; c.State != ledger.Executing || len(c.Attempts) != 1 {
		b.Fatalf("%+v", c)
	}
}

func large(b *bench) {
	b.begin(us, "run", "line")
	r := b.tell(us, "run", ledger.Entry{At: noon, Key: "claim", Do: ledger.Claim{}})
	content := bytes.Repeat([]byte{0, 1, 0xff, '"'}, ledger.MaxResult/4)
	b.tell(us, "run", ledger.Entry{At: noon, Fence: r.Fence, Do: ledger.Result{Call: "call", Content: content}})
	got := b.load(us, "run").Results(1)
	if len(got) != 1 || !bytes.Equal(got[0].Content, content) {
		b.Fatal("the content of a result did not survive")
	}
}
