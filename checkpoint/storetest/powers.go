package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// power returns the store as T, an optional power; a store without skips.
func power[T any](b *bench) T {
	p, ok := b.store.(T)
	if !ok {
		b.Skip("this store does not have that power")
	}
	return p
}

func followed(b *bench) {
	s := power[checkpoint.Follower](b)
	_, _, err := s.Follow(b.ctx, key("run"), 0)
	b.want(err, checkpoint.ErrNotFound)
	f, _ := b.claim("run", us)
	var seen []byte
	for i, p := range []string{"one ", "two ", "three"} {
		b.append(f, int64(len(seen)), p)
		if i == 1 {
			b.want(b.store.Mark(b.ctx, f, checkpoint.State{Attempt: 2}), nil)
		}
		r, alive, err := s.Follow(b.ctx, key("run"), int64(len(seen)))
		if err != nil || !alive || string(r.Log) != p || r.Owner != us || r.Model != "model" || i > 0 && r.State.Attempt != 2 {
			b.Fatalf("from %d: alive %v, %+v, %v", len(seen), alive, r, err)
		}
		r.Log = append(r.Log, "mine"...)
		seen = append(seen, p...)
	}
	r, _, err := s.Follow(b.ctx, key("run"), int64(len(seen)))
	if err != nil || len(r.Log) != 0 {
		b.Fatalf("at the end: %+v, %v", r, err)
	}
	for _, offset := range []int64{-1, int64(len(seen)) + 1} {
		_, _, err = s.Follow(b.ctx, key("run"), offset)
		b.want(err, checkpoint.ErrGap)
	}
	b.log("run", string(seen))
	b.want(b.store.Release(b.ctx, f), nil)
	if _, alive, err := s.Follow(b.ctx, key("run"), 0); alive || err != nil {
		b.Fatalf("released: alive %v, %v", alive, err)
	}
}

func ask(b byte) checkpoint.AskKey {
	return checkpoint.Ask(checkpoint.Scope{1}, checkpoint.Fingerprint{b})
}

// adopts tries to adopt and returns the run, "" for none.
func (b *bench) adopts(s checkpoint.Index, a checkpoint.AskKey, o checkpoint.Owner) (string, checkpoint.Fence) {
	b.Helper()
	f, r, err := s.Adopt(b.ctx, a, o, time.Hour)
	if err != nil {
		b.want(err, checkpoint.ErrNotFound)
		return "", f
	}
	return string(r.Run), f
}

func adopted(b *bench) {
	s := power[checkpoint.Index](b)
	if run, _ := b.adopts(s, ask(1), them); run != "" {
		b.Fatalf("adopted %q out of nothing", run)
	}
	f, _ := b.claim("run", us)
	b.append(f, 0, "abc")
	for range 2 {
		b.want(s.Offer(b.ctx, ask(1), f), nil)
	}
	b.want(s.Offer(b.ctx, ask(1), checkpoint.Fence{Key: key("never was"), N: 7}), nil)
	_, _, err := s.Adopt(b.ctx, ask(1), us, time.Hour)
	b.want(err, checkpoint.ErrNotFound)
	_, _, err = s.Adopt(b.ctx, ask(1), them, time.Hour)
	b.want(err, checkpoint.ErrOwned)
	b.want(b.store.Release(b.ctx, f), nil) // drained
	if run, _ := b.adopts(s, ask(2), them); run != "" {
		b.Fatalf("adopted %q by another question", run)
	}
	_, _, err = s.Adopt(b.ctx, ask(1), them, -time.Hour)
	b.want(err, checkpoint.ErrNotFound) // too long ago
	run, g := b.adopts(s, ask(1), them)
	if run != "run" || g.Key != key("run") || g.N <= f.N {
		b.Fatalf("adopted %q with %+v", run, g)
	}
	b.shut(f, checkpoint.ErrFenced)
	b.append(g, 3, "d")
	b.log("run", "abcd")
	b.want(b.store.Release(b.ctx, g), nil)
	if run, _ := b.adopts(s, ask(1), us); run != "" {
		b.Fatal("adopted twice")
	}
}

// onlyOrphans: a client that left, or has its end, has no retry under way.
func onlyOrphans(b *bench) {
	s := power[checkpoint.Index](b)
	for _, p := range []checkpoint.Phase{checkpoint.Broken, checkpoint.Abandoned, checkpoint.Finished} {
		f, _ := b.claim(p.String(), us)
		b.want(s.Offer(b.ctx, ask(1), f), nil)
		b.want(b.store.Mark(b.ctx, f, checkpoint.State{Phase: p}), nil)
		b.want(b.store.Release(b.ctx, f), nil)
	}
	f, _ := b.claim("deleted", us)
	b.want(s.Offer(b.ctx, ask(1), f), nil)
	b.want(b.store.Delete(b.ctx, f), nil)
	if run, _ := b.adopts(s, ask(1), them); run != "" {
		b.Fatalf("adopted the %s one", run)
	}
}

func deadAdopted(b *bench) {
	m := power[Mortal](b)
	s := power[checkpoint.Index](b)
	f, _ := b.claim("run", us)
	b.want(s.Offer(b.ctx, ask(1), f), nil)
	m.Die(us)
	if run, _ := b.adopts(s, ask(1), us); run != "" {
		b.Fatal("an owner adopted its own turn")
	}
	if run, _ := b.adopts(s, ask(1), them); run != "run" {
		b.Fatalf("adopted %q", run)
	}
	b.shut(f, checkpoint.ErrFenced)
}

// racingAdoptions: as many turns as were offered are adopted, each once.
func racingAdoptions(b *bench) {
	s := power[checkpoint.Index](b)
	var want []string
	for _, run := range []string{"a", "b", "c"} {
		f, _ := b.claim(run, us)
		b.want(s.Offer(b.ctx, ask(1), f), nil)
		b.want(b.store.Release(b.ctx, f), nil)
		want = append(want, run)
	}
	var mu sync.Mutex
	var got []string
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			_, r, err := s.Adopt(b.ctx, ask(1), them, time.Hour)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				got = append(got, string(r.Run))
			}
		})
	}
	wg.Wait()
	if slices.Sort(got); !slices.Equal(got, want) {
		b.Fatalf("adopted %q of %q", got, want)
	}
}

func secret(b *bench) {
	s := power[checkpoint.Secrets](b)
	for _, fresh := range []string{"first\x00", "second"} {
		got, err := s.Secret(b.ctx, "scope", []byte(fresh))
		if err != nil || string(got) != "first\x00" {
			b.Fatalf("%q, %v", got, err)
		}
	}
	if got, err := s.Secret(b.ctx, "other", nil); !errors.Is(err, checkpoint.ErrNotFound) {
		b.Errorf("a secret that is not there is %q, %v", got, err)
	}
	if got, err := s.Secret(b.ctx, "other", []byte("x")); err != nil || string(got) != "x" {
		b.Fatalf("%q, %v", got, err)
	}
}
