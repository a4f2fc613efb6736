package main

import (
	"runtime"
	"testing"
	"time"
)

const mb = 1 << 20

func TestTheCollectorIsPacedByWhatLives(t *testing.T) {
	for _, c := range []struct {
		live, stacks  uint64
		least, atMost uint64 // bytes the heap may grow by
	}{
		{0, 0, 16 * mb, 32 * mb},
		{4 * mb, 0, 16 * mb, 32 * mb},
		{18 * mb, 2 * mb, 16 * mb, 32 * mb},
		{90 * mb, 40 * mb, 20 * mb, 32 * mb},
		{400 * mb, 0, 64 * mb, 64 * mb},
		{300 * mb, 100 * mb, 64 * mb, 64 * mb},
	} {
		h := heap{live: c.live, stacks: c.stacks}
		if room := max(c.live+c.stacks, mb) * uint64(h.percent(headroom)) / 100; room < c.least || room > c.atMost {
			t.Errorf("with %d MB and %d MB of stacks the heap grows by %d MB", c.live/mb, c.stacks/mb, room/mb)
		}
	}
}

// Ten thousand calls a second fill 32 MB three times in one: a collection each
// third of a second. Twice the room comes with haste, and goes when there is none.
func TestACollectorInHasteHasTwiceTheRoom(t *testing.T) {
	room := uint64(headroom)
	for _, c := range []struct {
		since time.Duration
		want  uint64
	}{
		{time.Minute, headroom},
		{time.Second, headroom}, // neither
		{300 * time.Millisecond, 2 * headroom},
		{700 * time.Millisecond, 2 * headroom}, // what haste becomes with twice the room
		{3 * time.Second, headroom},
	} {
		if room = roomFor(room, c.since); room != c.want {
			t.Errorf("%d MB behind a collection that came after %v, want %d", room/mb, c.since, c.want/mb)
		}
	}
	if one, two := (heap{live: 4 * mb}).percent(headroom), (heap{live: 4 * mb}).percent(2*headroom); two != 2*one {
		t.Errorf("twice the room: %d %% for %d", two, one)
	}
}

func TestMemoryThatIsNotNeededIsGivenBack(t *testing.T) {
	for _, c := range []struct {
		h    heap
		want bool
	}{
		{heap{}, false},
		{heap{live: 4 * mb, goal: 36 * mb, free: 36 * mb}, false}, // for what the heap grows by
		{heap{live: 4 * mb, goal: 36 * mb, free: 60 * mb}, true},  // left over from a burst
		{heap{live: 90 * mb, goal: 120 * mb, free: 30 * mb}, false},
		{heap{live: 90 * mb, goal: 120 * mb, free: 30 * mb, unused: 20 * mb}, true}, // the heap grows in its gaps first
		{heap{live: 90 * mb, goal: 80 * mb, free: 6 * mb}, false},                   // a limit of memory is reached
	} {
		if got := c.h.wasteful(); got != c.want {
			t.Errorf("%+v: wasteful: %v", c.h, got)
		}
	}
}

// Streams begin with deep stacks and wait on shallow ones; each collection halves them.
func TestStacksAreShrunkUntilThatDoesNotHelp(t *testing.T) {
	var tl tailor
	now := time.Unix(1e9, 0)
	for _, c := range []struct {
		name  string
		after time.Duration
		piled uint64
		want  bool
	}{
		{"a few streams", 0, 10 * mb, false},
		{"many begin", time.Second, 80 * mb, true},
		{"one is on its way", time.Second, 80 * mb, false},
		{"they were halved, which is not all", 2 * time.Second, 40 * mb, true},
		{"they are as small as they get", calm, 20 * mb, false},
		{"more begin", time.Second, 60 * mb, true},
		{"it did not help", calm, 58 * mb, false},
		{"nor would it now", 10 * time.Second, 60 * mb, false},
		{"twice as many begin", time.Second, 120 * mb, true},
	} {
		now = now.Add(c.after)
		if got := tl.shrinks(heap{stacks: 5 * mb, piled: c.piled}, now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
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
