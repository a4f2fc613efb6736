package storetest

import (
	"context"
	"sync"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

func livingOwner(b *bench) {
	f, _ := b.claim("run", us)
	b.append(f, 0, "abc")
	none, r, err := b.store.Claim(b.ctx, key("run"), them, head("other"))
	b.want(err, checkpoint.ErrOwned)
	if none != (checkpoint.Fence{}) || r == nil || r.Owner != us || string(r.Log) != "abc" {
		b.Fatalf("fence %+v, record %+v", none, r)
	}
	b.append(f, 3, "d") // the attempt did not disturb it
	b.log("run", "abcd")
}

func deadOwner(b *bench) {
	m, ok := b.store.(Mortal)
	if !ok {
		b.Skip("this store offers no way to let an owner die (storetest.Mortal)")
	}
	f, _ := b.claim("run", us)
	b.append(f, 0, "abc")
	b.want(b.store.Mark(b.ctx, f, checkpoint.State{Attempt: 2}), nil)
	m.Die(us)
	g, r := b.claim("run", them)
	if r == nil || r.Owner != us || string(r.Log) != "abc" || r.State.Attempt != 2 || r.Model != "model" {
		b.Fatalf("taken over: %+v", r)
	}
	// The dead one was only frozen, and comes back.
	b.shut(f, checkpoint.ErrFenced)
	b.want(b.store.Delete(b.ctx, f), checkpoint.ErrFenced)
	b.append(g, 3, "d")
	b.log("run", "abcd")
	if got := b.get("run").Owner; got != them {
		b.Errorf("owner %s", got)
	}
}

func released(b *bench) {
	f, _ := b.claim("run", us)
	b.append(f, 0, "abc")
	b.want(b.store.Mark(b.ctx, f, checkpoint.State{Phase: checkpoint.Broken, Seen: 3}), nil)
	b.want(b.store.Release(b.ctx, f), nil)
	b.want(b.store.Release(b.ctx, f), nil)
	if r := b.get("run"); r.Owner != "" || string(r.Log) != "abc" {
		b.Fatalf("released: %+v", r)
	}
	b.shut(f, checkpoint.ErrFenced)
	g, r := b.claim("run", them)
	if r == nil || string(r.Log) != "abc" || r.State.Phase != checkpoint.Broken || r.State.Seen != 3 {
		b.Fatalf("claimed: %+v", r)
	}
	b.want(b.store.Release(b.ctx, f), checkpoint.ErrFenced)
	b.append(g, 3, "d")
	b.log("run", "abcd")
}

func deleted(b *bench) {
	f, _ := b.claim("run", us)
	b.append(f, 0, "abc")
	b.want(b.store.Delete(b.ctx, f), nil)
	b.want(b.store.Delete(b.ctx, f), nil)
	if _, err := b.store.Get(b.ctx, key("run")); err == nil {
		b.Fatal("a deleted turn is still there")
	}
	b.shut(f, checkpoint.ErrNotFound)
	b.want(b.store.Release(b.ctx, f), checkpoint.ErrNotFound)
	g, r := b.claim("run", them)
	if r != nil {
		b.Fatalf("the deleted turn came back: %+v", r)
	}
	b.shut(f, checkpoint.ErrFenced)
	b.append(g, 0, "new")
	b.log("run", "new")
}

func apart(b *bench) {
	f, _ := b.claim("one", us)
	g, _ := b.claim("two", us)
	b.append(f, 0, "1")
	b.append(g, 0, "22")
	b.shut(checkpoint.Fence{Key: f.Key, N: g.N + 7}, checkpoint.ErrFenced)
	b.want(b.store.Delete(b.ctx, f), nil)
	b.append(g, 2, "2")
	b.log("two", "222")
}

func copies(b *bench) {
	f, _ := b.claim("run", us)
	p := []byte("abc")
	b.want(b.store.Append(b.ctx, f, 0, p), nil)
	causes := []string{"idle_stall"}
	b.want(b.store.Mark(b.ctx, f, checkpoint.State{Causes: causes}), nil)
	p[0], causes[0] = 'X', "x"
	r := b.get("run")
	r.Log[1], r.State.Causes[0] = 'Y', "y"
	_, r = b.claim("run", us)
	if string(r.Log) != "abc" || r.State.Causes[0] != "idle_stall" {
		b.Fatalf("shared memory: %+v", r)
	}
	r.Log[2] = 'Z'
	b.log("run", "abc")
}

func endedContext(b *bench) {
	f, _ := b.claim("run", us)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	for name, err := range map[string]error{
		"append":  b.store.Append(ctx, f, 0, []byte("x")),
		"mark":    b.store.Mark(ctx, f, checkpoint.State{}),
		"release": b.store.Release(ctx, f),
		"delete":  b.store.Delete(ctx, f),
	} {
		b.Log(name)
		b.want(err, checkpoint.ErrUnavailable)
	}
	_, err := b.store.Get(ctx, key("run"))
	b.want(err, checkpoint.ErrUnavailable)
	_, _, err = b.store.Claim(ctx, key("run"), us, head("run"))
	b.want(err, checkpoint.ErrUnavailable)
}

// racingClaims: whatever the order, all numbers differ, exactly the largest can
// write, and no append of another got through after it.
func racingClaims(b *bench) {
	const n = 16
	fences := make([]checkpoint.Fence, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			fences[i], _, errs[i] = b.store.Claim(b.ctx, key("run"), us, head("run"))
			if errs[i] == nil {
				_ = b.store.Append(b.ctx, fences[i], 0, []byte("same")) // fenced, or not yet
			}
		})
	}
	wg.Wait()
	seen := map[uint64]bool{}
	newest := fences[0]
	for i, f := range fences {
		if errs[i] != nil || seen[f.N] {
			b.Fatalf("claim %d: fence %d, %v", i, f.N, errs[i])
		}
		seen[f.N] = true
		if f.N > newest.N {
			newest = f
		}
	}
	for _, f := range fences {
		if f != newest {
			b.shut(f, checkpoint.ErrFenced)
		}
	}
	b.append(newest, 0, "same")
	b.log("run", "same")
}
