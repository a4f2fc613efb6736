package proxy

import (
	"sync"
	"sync/atomic"
	"time"
)

// tick is how often the watchdog looks. It bounds how late a deadline is acted
// on, and a departure noticed.
const tick = 100 * time.Millisecond

// watchdog is the clock of all requests in flight: one goroutine per server. It
// never writes to a client, since a client has one writer: its driver.
type watchdog struct {
	// immutable
	epoch time.Time
	kick  chan struct{} // one token: there is something to watch again
	quit  chan struct{}
	done  chan struct{}

	stall atomic.Int64 // nanoseconds; what a lifeline begins with

	mu    sync.Mutex
	lines []*lifeline

	// watchdog only
	seen       []*lifeline
	departures departures
}

func newWatchdog(stall time.Duration) *watchdog {
	w := &watchdog{
		epoch: time.Now().Add(-time.Second),
		kick:  make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	w.stall.Store(int64(stall))
	w.departures.open()
	go w.run()
	return w
}

// now is the time on the dog's clock, which is monotonic and never 0.
func (w *watchdog) now() int64 { return int64(time.Since(w.epoch)) }

func (w *watchdog) add(l *lifeline) {
	w.mu.Lock()
	l.slot = len(w.lines)
	w.lines = append(w.lines, l)
	first := len(w.lines) == 1
	w.mu.Unlock()
	if first {
		select {
		case w.kick <- struct{}{}:
		default:
		}
	}
}

func (w *watchdog) remove(l *lifeline) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.lines) - 1
	w.lines[l.slot] = w.lines[last]
	w.lines[l.slot].slot = l.slot
	w.lines[last] = nil
	w.lines = w.lines[:last]
}

// live is how many requests are in flight.
func (w *watchdog) live() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lines)
}

// each calls f for every request in flight.
func (w *watchdog) each(f func(*lifeline)) {
	w.mu.Lock()
	lines := append([]*lifeline(nil), w.lines...)
	w.mu.Unlock()
	for _, l := range lines {
		f(l)
	}
}

// run ticks while there is something to watch, and sleeps otherwise.
func (w *watchdog) run() {
	defer close(w.done)
	defer w.departures.close()
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-t.C:
		}
		if !w.look(w.now()) {
			t.Stop()
			select {
			case <-w.quit:
				return
			case <-w.kick:
				t.Reset(tick)
			}
		}
	}
}

// look does one tick; it reports whether there was anything to look at.
func (w *watchdog) look(now int64) bool {
	w.mu.Lock()
	w.seen = append(w.seen[:0], w.lines...)
	w.mu.Unlock()
	if len(w.seen) == 0 {
		return false
	}
	for _, l := range w.seen {
		if d := l.deadline.Load(); d != 0 && now >= d && l.deadline.CompareAndSwap(d, 0) {
			l.rouse()
		}
		if since := l.writing.Load(); since != 0 && now-since > l.stall {
			l.part(flagSlow)
		}
	}
	w.departures.look(w.seen, func(l *lifeline) { l.part(flagGone) })
	clear(w.seen)
	return true
}

func (w *watchdog) stop() {
	close(w.quit)
	<-w.done
}
