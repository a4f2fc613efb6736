package main

import (
	"math/bits"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// headroom is how far the heap may grow between two collections, at least: a proxy
	// with a few streams has a heap of some megabytes, and would collect it a hundred
	// times a second.
	headroom = 48 << 20
	// slack is that of a large heap, in percent of what lives. Go's own 100 % would be
	// half of what five thousand idle streams need.
	slack = 50
)

// paceGC sets the collector's percentage after each collection for a heap of the size it
// found, unless the environment does (GOGC). GOMEMLIMIT stays what it is.
func paceGC() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	at := 0
	adjust := func() {
		metrics.Read(live)
		if p := gcPercent(live[0].Value.Uint64()); p != at {
			at = p
			debug.SetGCPercent(p)
		}
	}
	adjust()
	afterEachGC(adjust)
}

// gcPercent is how far a heap may grow beyond what lives, in percent of it: in steps, since
// each change stops the world for a moment.
func gcPercent(live uint64) int {
	p := uint64(headroom) * 100 / max(live, 1<<20)
	return max(slack, 1<<(bits.Len64(p)-1))
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
