package proxy

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The guard against a model: never more under way than allowed, nobody waits while
// there is room, nobody is passed, and a place that was given back is free.
func TestGuardAgainstAModel(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		g := &guard{}
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
				k, _ := g.enter()
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
