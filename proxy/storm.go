package proxy

import (
	"slices"
	"sync"
)

const (
	// stormFloor is how many recoveries may always be under way at an upstream,
	stormFloor = 10
	// stormShare is the part of its live streams that may be, if that is more:
	// one in so many.
	stormShare = 5
)

// guard keeps an upstream that comes back from being asked by everybody at once: it
// bounds the recoveries that are under way there, each from its request to its first
// content. The rest stand in line, first come, first served.
type guard struct {
	mu     sync.Mutex
	live   int // streams whose current target it is
	flying int
	line   []*ticket
}

// ticket is one recovery's place. It is in line until turn is closed, and under way
// from then on.
type ticket struct {
	g    *guard
	turn chan struct{}
	in   bool // under way; guarded by g.mu
	over bool
}

// join counts a stream in, part counts it out.
func (g *guard) join() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live++
	g.advance()
}

func (g *guard) part() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live--
}

// enter takes a place; now reports whether its turn has come already.
func (g *guard) enter() (t *ticket, now bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t = &ticket{g: g, turn: make(chan struct{})}
	g.line = append(g.line, t)
	g.advance()
	return t, t.in
}

// leave gives the place back, wherever it is. It may be called again.
func (t *ticket) leave() {
	if t == nil {
		return
	}
	g := t.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.over {
		return
	}
	t.over = true
	if t.in {
		g.flying--
	} else if i := slices.Index(g.line, t); i >= 0 {
		g.line = slices.Delete(g.line, i, i+1)
	}
	g.advance()
}

// advance lets in whom there is room for. mu is held.
func (g *guard) advance() {
	for len(g.line) > 0 && g.flying < max(stormFloor, g.live/stormShare) {
		t := g.line[0]
		g.line = slices.Delete(g.line, 0, 1)
		t.in = true
		g.flying++
		close(t.turn)
	}
}

// waiting is how many stand in line.
func (g *guard) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.line)
}

// count is how many streams it watches over.
func (g *guard) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.live
}
