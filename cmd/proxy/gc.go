package main

import (
	"math/bits"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// headroom is how far the heap may grow between two collections, at least: a proxy
	// with a few streams has a heap of some megabytes, and would collect it a hundred
	// times a second.
	headroom = 32 << 20
	// hurried is how soon behind one another collections are too many: then the heap has
	// twice the headroom, until they come less often than relaxed. Ten thousand calls a
	// second cost a tenth less with it.
	hurried = 500 * time.Millisecond
	relaxed = 2 * time.Second
	// slack is that of a large heap, in percent of what is to be looked through. Go's own
	// 100 % would be half of what five thousand idle streams need; this costs them a
	// collection of some 60 ms every two seconds.
	slack = 16
	// excess is how much the process may keep beyond what the heap grows to. It is left
	// over when many requests began at once; Go would give it back over minutes.
	excess = 8 << 20
	// giveBacks is the time between two looks at that: what is given back is a page fault
	// for each 4 KB that are needed again.
	giveBacks = 5 * time.Second
	// calm is how long after a collection that found large stacks the next one halves
	// them: what begins has deep stacks, and what has begun waits on shallow ones. Without
	// a collection, which streams that say little hardly cause, they would stay large.
	calm = 2 * time.Second
)

// heap is the heap behind a collection, in bytes.
type heap struct {
	live   uint64 // of it
	stacks uint64 // that are looked through, too
	goal   uint64 // how large it may get until the next one
	free   uint64 // held, and in no use
	unused uint64 // between the objects that live
	piled  uint64 // what the stacks have, used or not
}

// paceGC sets the collector's percentage after each collection for a heap of the size it
// found, unless the environment does (GOGC), and gives memory back that it will not need.
// GOMEMLIMIT stays what it is.
func paceGC() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	read := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/heap/goal:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	at := 0
	var gaveBack, before time.Time
	var t tailor
	room := uint64(headroom)
	adjust := func() {
		metrics.Read(read)
		of := func(i int) uint64 { return read[i].Value.Uint64() }
		h := heap{live: of(0), stacks: of(1), goal: of(2), free: of(3), unused: of(4), piled: of(5)}
		now := time.Now()
		room = roomFor(room, now.Sub(before))
		before = now
		if p := h.percent(room); p != at {
			at = p
			debug.SetGCPercent(p)
		}
		if h.wasteful() && now.Sub(gaveBack) > giveBacks {
			gaveBack = now
			go debug.FreeOSMemory() // it collects once more, and waits for it
		}
		if t.shrinks(h, now) {
			time.AfterFunc(calm, debug.FreeOSMemory)
		}
	}
	adjust()
	afterEachGC(adjust)
}

// roomFor is the headroom to have when a collection came so long behind the one before.
func roomFor(room uint64, since time.Duration) uint64 {
	switch {
	case since < hurried:
		return 2 * headroom
	case since > relaxed:
		return headroom
	}
	return room
}

// percent is how far the heap may grow beyond what lives for that headroom, in percent of
// what is looked through for it: in steps, since each change stops the world for a moment.
func (h heap) percent(room uint64) int {
	p := room * 100 / max(h.live+h.stacks, 1<<20)
	return max(slack, 1<<(bits.Len64(p)-1))
}

// wasteful reports whether more is held than the heap will need.
func (h heap) wasteful() bool {
	grown := h.live + h.unused // without another page
	return h.free > h.goal-min(h.goal, grown)+excess
}

// baggy reports whether stacks have so much more than they use that a collection would
// shrink them, which it does by half where less than a quarter is used.
func (h heap) baggy() bool { return h.piled > 4*h.stacks+excess }

// tailor decides when stacks are shrunk.
type tailor struct {
	again time.Time // until then a collection is on its way
	was   uint64    // what they had when the last one was asked for
}

// shrinks reports whether to collect once more when it is calm. It does not try again what
// did not help.
func (t *tailor) shrinks(h heap, now time.Time) bool {
	switch {
	case now.Before(t.again):
		return false
	case !h.baggy():
		t.was = 0
		return false
	case t.was != 0 && h.piled > t.was-t.was/8 && h.piled < t.was+t.was/4:
		return false
	}
	t.again, t.was = now.Add(calm), h.piled
	return true
}

// afterEachGC calls f behind every collection.
func afterEachGC(f func()) {
	type sentinel struct{ _ *byte }
	var again func(*sentinel)
	again = func(*sentinel) {
		f()
		runtime.SetFinalizer(&sentinel{}, again)
	}
	runtime.SetFinalizer(&sentinel{}, again)
}
