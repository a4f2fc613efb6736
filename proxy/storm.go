package proxy

import (
	"slices"
	"sync"
	"time"
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
// content, and the rate at which they set out ([pace]). The rest stand in line, first
// come, first served.
type guard struct {
	// immutable
	epoch time.Time

	mu     sync.Mutex
	live   int // streams whose current target it is
	flying int
	line   []*ticket
	pace   pace
	timer  *time.Timer // calls advance when there is room again; nil: never needed
}

// ticket is one recovery's place. It is in line until turn is closed, and under way
// from then on.
type ticket struct {
	g     *guard
	turn  chan struct{}
	again bool // the target was asked by this stream before: its pace counts
	// guarded by g.mu
	in   bool // under way
	made bool // its request went out
	at   time.Duration
	over bool
}

func newGuard() *guard { return &guard{epoch: time.Now()} }

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

// enter takes a place; now reports whether its turn has come already. A stream that
// comes from another target (again is false) is no repetition here, and does not wait
// for those that are to pace themselves.
func (g *guard) enter(again bool) (t *ticket, now bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t = &ticket{g: g, turn: make(chan struct{}), again: again}
	g.line = append(g.line, t)
	g.advance()
	return t, t.in
}

// asked says that the request goes out: that of a ticket, or the first of a client
// (nil), which nothing holds up.
func (g *guard) asked(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t == nil || !t.again {
		g.pace.first(time.Since(g.epoch))
	}
	if t != nil {
		t.made = true
	}
}

// heard says how a request fared: that it was answered, a client's first here or a
// repetition, or that one of any kind failed, or came too soon.
func (g *guard) heard(v verdict, again bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch now := time.Since(g.epoch); {
	case v == good && again:
		g.pace.mended(now)
	case v == good:
		g.pace.good(now)
	case v == bad, v == limited:
		g.pace.trouble(now)
	}
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
		if t.again && !t.made {
			g.pace.unasked(t.at)
		}
	} else if i := slices.Index(g.line, t); i >= 0 {
		g.line = slices.Delete(g.line, i, i+1)
	}
	g.advance()
}

// advance lets in whom there is room for. mu is held.
func (g *guard) advance() {
	var wait time.Duration // until somebody may set out again, if that is all that is missing
	now := time.Since(g.epoch)
	for i := 0; i < len(g.line) && g.flying < max(stormFloor, g.live/stormShare); {
		t := g.line[i]
		if t.again && wait == 0 {
			wait = g.pace.again(now, g.flying)
		}
		if t.again && wait > 0 {
			i++
			continue
		}
		g.line = slices.Delete(g.line, i, i+1)
		t.in, t.at = true, now
		g.flying++
		close(t.turn)
	}
	if len(g.line)+g.flying == 0 {
		g.pace.rest(now)
	}
	switch {
	case wait > 0 && g.timer == nil:
		g.timer = time.AfterFunc(wait, g.tick)
	case wait > 0:
		g.timer.Reset(wait)
	case g.timer != nil:
		g.timer.Stop()
	}
}

// tick is called when there may be room again.
func (g *guard) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.advance()
}

// UpstreamState is an upstream as [Stats] tells it.
type UpstreamState struct {
	Name string
	// Live counts the protected streams whose target it is, Recoveries those of
	// them that are being recovered, from request to first content, Waiting those
	// that stand in line for that.
	Live, Recoveries, Waiting int
	// Healthy is how many clients' requests a second it answered over the last
	// minute in which all was well.
	Healthy float64
}

func (g *guard) state(name string) UpstreamState {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pace.roll(time.Since(g.epoch))
	return UpstreamState{Name: name, Live: g.live, Recoveries: g.flying, Waiting: len(g.line), Healthy: g.pace.healthy()}
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
