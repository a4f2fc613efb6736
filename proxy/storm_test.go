package proxy

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The guard against a model, of streams that come from elsewhere: never more under way than allowed, nobody waits while
// there is room, nobody is passed, and a place that was given back is free.
func TestGuardAgainstAModel(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		g := newGuard()
		live, line, flying := 0, []*ticket(nil), []*ticket(nil)
		settle := func() {
			for len(line) > 0 && len(flying) < max(stormFloor, live/stormShare) {
				flying, line = append(flying, line[0]), line[1:]
			}
		}
		for range 500 {
			switch op := rng.IntN(10); {
			case op < 3:
				g.join()
				live++
			case op < 4 && live > 0:
				g.part()
				live--
			case op < 8:
				k, _ := g.enter(false)
				line = append(line, k)
			case op < 9 && len(flying) > 0:
				i := rng.IntN(len(flying))
				flying[i].leave()
				flying[i].leave() // again does nothing
				flying = slices.Delete(flying, i, i+1)
			case len(line) > 0:
				i := rng.IntN(len(line))
				line[i].leave()
				line = slices.Delete(line, i, i+1)
			}
			settle()
			if g.flying != len(flying) || g.waiting() != len(line) || g.live != live {
				t.Fatalf("seed %d: %d under way and %d in line, want %d and %d", seed, g.flying, g.waiting(), len(flying), len(line))
			}
			for _, k := range flying {
				select {
				case <-k.turn:
				default:
					t.Fatalf("seed %d: one whose turn has come is not told", seed)
				}
			}
			for _, k := range line {
				if k.in {
					t.Fatalf("seed %d: somebody was passed", seed)
				}
			}
		}
	}
}

// Those that ask an upstream in trouble again set out at their pace, in their order,
// whoever else comes and goes; those that come from another target pass them.
func TestGuardPacesRepetitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard()
		for range 100 {
			g.join()
		}
		enter := func(n int, again bool) (ts []*ticket) {
			for range n {
				k, _ := g.enter(again)
				ts = append(ts, k)
			}
			return ts
		}
		under := func(ts []*ticket) (n int) {
			g.mu.Lock()
			defer g.mu.Unlock()
			for _, k := range ts {
				if k.in {
					n++
				}
			}
			return n
		}
		g.heard(bad, false)
		g.heard(limited, false) // a limit is trouble, too
		again := enter(20, true)
		if n := under(again); n != paceFloor {
			t.Errorf("%d set out at once, want %d", n, paceFloor)
		}
		moved := enter(3, false)
		if n := under(moved); n != 3 {
			t.Errorf("%d of 3 that come from elsewhere wait for the pace of others", n)
		}
		// A place that was given and not used is free at once: its target was not
		// asked.
		again[0].leave()
		if n := under(again); n != paceFloor+1 {
			t.Errorf("%d set out, want %d", n, paceFloor+1)
		}
		for _, k := range again[1 : paceFloor+1] {
			g.asked(k)
			k.leave()
		}
		if n := under(again); n != paceFloor+1 {
			t.Errorf("%d set out within a second, want %d", n, paceFloor+1)
		}
		// Nobody calls: the line moves by itself, and no further than there is room.
		time.Sleep(1200 * time.Millisecond)
		synctest.Wait()
		if n := under(again); n != 2*paceFloor+1 {
			t.Errorf("%d set out after a second, want %d", n, 2*paceFloor+1)
		}
		for i := 1; i < len(again); i++ {
			if g := again[i]; g.in && !again[i-1].in {
				t.Error("somebody was passed")
			}
		}
		for _, k := range append(again, moved...) {
			k.leave()
		}
		if g.flying != 0 || g.waiting() != 0 {
			t.Errorf("%d under way, %d in line", g.flying, g.waiting())
		}
	})
}

// One connection dies under all streams of an upstream that is well: they are carried on
// as fast as it answers, not at the pace of an outage.
func TestGuardLetsAllBackToAnUpstreamThatIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard()
		const streams = 1000
		for range streams {
			g.join()
		}
		began := time.Now()
		g.heard(bad, false) // all that is heard of that connection
		most := 0
		var wg sync.WaitGroup
		for range streams {
			k, _ := g.enter(true)
			wg.Go(func() {
				<-k.turn
				g.asked(k)
				g.mu.Lock()
				most = max(most, g.flying)
				g.mu.Unlock()
				time.Sleep(100 * time.Millisecond) // to the first content
				g.heard(good, true)
				k.leave()
			})
		}
		wg.Wait()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the last of %d was carried on after %v", streams, took)
		}
		if most > streams/stormShare {
			t.Errorf("%d were under way at once", most)
		}
	})
}
