package storetest

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Mortal is a store whose owners can be made to die: after Die(o) nothing that o
// holds is protected any more. A store under test that does not offer it skips
// the takeover from the dead.
type Mortal interface {
	checkpoint.Store
	Die(checkpoint.Owner)
}

const (
	us   checkpoint.Owner = "process-us"
	them checkpoint.Owner = "process-them"
)

// Run puts stores made by open through the battery. Each call of open returns an
// empty store; cleaning up is its own business.
func Run(t *testing.T, open func(t *testing.T) checkpoint.Store) {
	for _, tc := range []struct {
		name string
		run  func(*bench)
	}{
		{"a turn begins", begins},
		{"text is appended", appended},
		{"an append is idempotent by offset", idempotent},
		{"a gap or other bytes are refused", refused},
		{"any bytes survive", binaryClean},
		{"a long log survives", longLog},
		{"a state is replaced", marked},
		{"the newest claim wins", newestWins},
		{"fences only grow", fencesGrow},
		{"a living owner keeps its turn", livingOwner},
		{"a dead owner loses its turn", deadOwner},
		{"a released turn is anyone's", released},
		{"a deleted turn is gone", deleted},
		{"turns are apart", apart},
		{"records are copies", copies},
		{"an ended context is no success", endedContext},
		{"racing claims leave one writer", racingClaims},
		{"a call is repeated after a lost answer", lostAnswers},
		{"a call is repeated after it never arrived", neverArrived},
		{"a sleeping store wakes up", sleeping},
		{"a turn is followed while it grows", followed},
		{"an orphan is adopted once", adopted},
		{"only orphans are adopted", onlyOrphans},
		{"the turn of the dead is adopted", deadAdopted},
		{"racing adoptions share what is offered", racingAdoptions},
		{"a secret is made once", secret},
		{"a memo is recalled by its key", recalled},
		{"memos are copies", memoCopies},
		{"an ended context remembers nothing", nothingRemembered},
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
	store checkpoint.Store
}

// key makes a turn key of a name.
func key(name string) checkpoint.TurnKey {
	return checkpoint.Turn(checkpoint.Scope{1}, checkpoint.RunID(name), checkpoint.Fingerprint{2})
}

func head(name string) checkpoint.Record {
	return checkpoint.Record{
		Run: checkpoint.RunID(name), Thread: "thread", Step: 3, Fingerprint: checkpoint.Fingerprint{2},
		Dialect: "chat", Route: "route", Model: "model",
	}
}

func (b *bench) claim(name string, o checkpoint.Owner) (checkpoint.Fence, *checkpoint.Record) {
	b.Helper()
	f, r, err := b.store.Claim(b.ctx, key(name), o, head(name))
	if err != nil {
		b.Fatalf("claim %s for %s: %v", name, o, err)
	}
	if f.Key != key(name) || f.N == 0 {
		b.Fatalf("claim %s: fence %+v", name, f)
	}
	return f, r
}

func (b *bench) append(f checkpoint.Fence, offset int64, p string) {
	b.Helper()
	b.want(b.store.Append(b.ctx, f, offset, []byte(p)), nil)
}

func (b *bench) get(name string) *checkpoint.Record {
	b.Helper()
	r, err := b.store.Get(b.ctx, key(name))
	if err != nil {
		b.Fatalf("get %s: %v", name, err)
	}
	return r
}

func (b *bench) log(name, want string) {
	b.Helper()
	if got := string(b.get(name).Log); got != want {
		b.Fatalf("log of %s: %q, want %q", name, got, want)
	}
}

func (b *bench) want(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("got error %v, want %v", err, want)
	}
}

// shut checks that no write gets through f.
func (b *bench) shut(f checkpoint.Fence, want error) {
	b.Helper()
	b.want(b.store.Append(b.ctx, f, 0, nil), want)
	b.want(b.store.Append(b.ctx, f, 0, []byte("x")), want)
	b.want(b.store.Mark(b.ctx, f, checkpoint.State{Phase: checkpoint.Finished}), want)
}

func begins(b *bench) {
	if _, err := b.store.Get(b.ctx, key("run")); !errors.Is(err, checkpoint.ErrNotFound) {
		b.Fatalf("before: %v", err)
	}
	_, before := b.claim("run", us)
	if before != nil {
		b.Fatalf("an unknown turn has a record: %+v", before)
	}
	r, want := b.get("run"), head("run")
	if r.Created.IsZero() || r.Updated.Before(r.Created) {
		b.Errorf("created %v, updated %v", r.Created, r.Updated)
	}
	want.Owner, want.Created, want.Updated = us, r.Created, r.Updated
	if len(r.Log) != 0 || len(r.State.Causes) != 0 {
		b.Errorf("a new turn holds %+v", r)
	}
	r.Log, r.State.Causes = nil, nil
	if !reflect.DeepEqual(*r, want) {
		b.Errorf("got  %+v\nwant %+v", *r, want)
	}
}

func appended(b *bench) {
	f, _ := b.claim("run", us)
	b.append(f, 0, "one ")
	b.append(f, 4, "two ")
	b.append(f, 8, "")
	b.append(f, 8, "three")
	b.log("run", "one two three")
}

func idempotent(b *bench) {
	f, _ := b.claim("run", us)
	b.append(f, 0, "abcdef")
	b.append(f, 0, "abcdef") // again
	b.append(f, 2, "cd")     // a part of it
	b.append(f, 6, "")
	b.append(f, 3, "")
	b.log("run", "abcdef")
	b.append(f, 4, "efgh") // overlapping the end
	b.append(f, 0, "abcdefghij")
	b.log("run", "abcdefghij")
}

func refused(b *bench) {
	f, _ := b.claim("run", us)
	b.append(f, 0, "abc")
	b.want(b.store.Append(b.ctx, f, 4, []byte("x")), checkpoint.ErrGap)
	b.want(b.store.Append(b.ctx, f, 4, nil), checkpoint.ErrGap)
	b.want(b.store.Append(b.ctx, f, -1, []byte("x")), checkpoint.ErrGap)
	b.want(b.store.Append(b.ctx, f, 0, []byte("xbc")), checkpoint.ErrConflict)
	b.want(b.store.Append(b.ctx, f, 2, []byte("Xd")), checkpoint.ErrConflict)
	b.log("run", "abc")
	b.append(f, 3, "d") // and the log goes on
	b.log("run", "abcd")
}

func binaryClean(b *bench) {
	f, _ := b.claim("run", us)
	var all []byte
	for c := range 256 {
		all = append(all, byte(c), 0, '\r', '\n')
	}
	b.append(f, 0, string(all))
	b.append(f, int64(len(all)), string(all))
	b.log("run", string(all)+string(all))
}

func longLog(b *bench) {
	f, _ := b.claim("run", us)
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 2048) // 32 KiB, a flush
	var want []byte
	for range 32 {
		b.append(f, int64(len(want)), string(chunk))
		want = append(want, chunk...)
	}
	if got := b.get("run").Log; !bytes.Equal(got, want) {
		b.Fatalf("%d bytes, want %d", len(got), len(want))
	}
}

func marked(b *bench) {
	f, _ := b.claim("run", us)
	b.append(f, 0, "abc")
	for _, s := range []checkpoint.State{
		{Seen: 2, Attempt: 2, Recoveries: 1, Causes: []string{"connection_reset", "idle_stall"}},
		{Phase: checkpoint.Broken, Seen: 3, Attempt: 4, Recoveries: 3, Causes: []string{"connection_reset"}},
		{Phase: checkpoint.Abandoned, Attempt: 1},
		{Phase: checkpoint.Finished, Seen: 3, Attempt: 1},
	} {
		for range 2 { // again is no harm
			b.want(b.store.Mark(b.ctx, f, s), nil)
		}
		got := b.get("run")
		if len(got.State.Causes) == 0 {
			got.State.Causes = nil
		}
		if !reflect.DeepEqual(got.State, s) || string(got.Log) != "abc" || got.Owner != us {
			b.Errorf("got  %+v\nwant %+v", got, s)
		}
	}
}

func newestWins(b *bench) {
	older, _ := b.claim("run", us)
	b.append(older, 0, "abc")
	newer, before := b.claim("run", us)
	if before == nil || string(before.Log) != "abc" {
		b.Fatalf("the claim shows %+v", before)
	}
	b.shut(older, checkpoint.ErrFenced)
	b.want(b.store.Release(b.ctx, older), checkpoint.ErrFenced)
	b.want(b.store.Delete(b.ctx, older), checkpoint.ErrFenced)
	b.append(newer, 3, "d")
	forged := checkpoint.Fence{Key: newer.Key, N: newer.N + 1}
	b.shut(forged, checkpoint.ErrFenced)
	b.shut(checkpoint.Fence{Key: newer.Key}, checkpoint.ErrFenced)
	b.log("run", "abcd")
}

func fencesGrow(b *bench) {
	last := uint64(0)
	for i := range 20 {
		f, _ := b.claim("run", us)
		if f.N <= last {
			b.Fatalf("claim %d: fence %d after %d", i, f.N, last)
		}
		last = f.N
		switch i % 3 {
		case 1:
			b.want(b.store.Release(b.ctx, f), nil)
		case 2: // a deleted turn must not start over with an old number
			b.want(b.store.Delete(b.ctx, f), nil)
		}
	}
}
