package main

import (
	"runtime"
	"testing"
)

func TestTheCollectorIsPacedByWhatLives(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		live          uint64
		least, atMost uint64 // bytes the heap may grow by
	}{
		{0, 24 * mb, 64 * mb},
		{4 * mb, 24 * mb, 64 * mb},
		{20 * mb, 20 * mb, 64 * mb},
		{90 * mb, 45 * mb, 64 * mb},
		{400 * mb, 200 * mb, 200 * mb},
	} {
		if room := max(c.live, mb) * uint64(gcPercent(c.live)) / 100; room < c.least || room > c.atMost {
			t.Errorf("with %d MB the heap grows by %d MB", c.live/mb, room/mb)
		}
	}
}

func TestEachCollectionIsHeardOf(t *testing.T) {
	heard := make(chan struct{}, 100)
	afterEachGC(func() { heard <- struct{}{} })
	for range 3 {
		runtime.GC()
		<-heard
	}
}
