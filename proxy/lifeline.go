package proxy

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/upstream"
)

// lifeline is what the watchdog holds of one request in flight: how to look at
// its client, and how to rouse its driver out of a blocking call.
type lifeline struct {
	// immutable
	dog  *watchdog
	conn net.Conn        // nil: the turn goes on without a client
	raw  syscall.RawConn // of the TCP socket; nil: departures show in writes only
	wake chan struct{}   // one token: look at the flags
	// stall is how long a write may take, in nanoseconds.
	stall int64

	// shared, lock-free: the driver stores one of them per step
	deadline atomic.Int64 // when to rouse, on the dog's clock; 0: never
	writing  atomic.Int64 // since when a write to the client runs; 0: none does
	flags    atomic.Uint32

	mu     sync.Mutex
	over   bool
	res    *upstream.Response // whose Next the driver may be blocked in
	cancel func()             // of a call that ends with the client or the drain
	reason string             // of the stop

	slot int   // in the dog's list; guarded by the dog
	fd   int32 // of raw, as the kernel knows it; 0: it is not told yet; watchdog only
}

const (
	flagGone    uint32 = 1 << iota // the client left
	flagSlow                       // the client does not take what is written
	flagStopped                    // the process must end the request now
)

// past is a deadline that is always over.
var past = time.Unix(1, 0)

func newLifeline(dog *watchdog, c net.Conn) *lifeline {
	l := &lifeline{dog: dog, conn: c, wake: make(chan struct{}, 1), stall: dog.stall.Load()}
	if c != nil {
		l.raw = callerOf(c).socket()
	}
	dog.add(l)
	return l
}

// signal is the input that the flags mean, nil if they mean nothing.
func (l *lifeline) signal() relay.Input {
	switch f := l.flags.Load(); {
	case f&(flagGone|flagSlow) != 0:
		return relay.Gone{}
	case f&flagStopped != 0:
		l.mu.Lock()
		defer l.mu.Unlock()
		return relay.Stop{Reason: l.reason}
	}
	return nil
}

// due arms the deadline; the zero time disarms it.
func (l *lifeline) due(t time.Time) {
	if t.IsZero() {
		l.deadline.Store(0)
		return
	}
	l.deadline.Store(max(1, int64(t.Sub(l.dog.epoch))))
}

// reads says in whose Next the driver blocks from now on; nil: in none.
func (l *lifeline) reads(res *upstream.Response) {
	l.mu.Lock()
	l.res = res
	l.mu.Unlock()
	if res != nil && l.flags.Load() != 0 {
		res.Wake()
	}
}

// opens says which call is to be ended when the client leaves, the process must stop or
// the deadline is over.
func (l *lifeline) opens(cancel func()) {
	l.mu.Lock()
	l.cancel = cancel
	l.mu.Unlock()
	if cancel != nil && l.flags.Load() != 0 {
		cancel()
	}
}

// rouse makes the driver look at the flags and the time.
func (l *lifeline) rouse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		l.cancel()
	}
	l.rouseLocked()
}

func (l *lifeline) rouseLocked() {
	if l.over {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
	if l.res != nil {
		l.res.Wake()
	}
}

// part ends a write that nobody takes, or that nobody is left to take. The
// connection is of no use afterwards, and the driver aborts it.
func (l *lifeline) part(flag uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.flags.Or(flag)
	if l.conn != nil {
		_ = l.conn.SetWriteDeadline(past)
	}
	if l.cancel != nil {
		l.cancel()
	}
	l.rouseLocked()
}

// stop asks for an honest end now.
func (l *lifeline) stop(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.flags.Load()&flagStopped != 0 {
		return
	}
	l.reason = reason
	l.flags.Or(flagStopped)
	if l.cancel != nil {
		l.cancel()
	}
	l.rouseLocked()
}

// end takes the request off the watchdog. It reports whether it was on it.
func (l *lifeline) end() bool {
	l.mu.Lock()
	first := !l.over
	l.over, l.res, l.cancel = true, nil, nil
	l.mu.Unlock()
	if first {
		l.dog.remove(l)
	}
	return first
}

// piece bounds one write to a client, so that its deadline is about progress and
// not about size.
const piece = 64 << 10

// write sends p to the client. The watchdog ends a write that nobody takes;
// nothing is armed per write but one stored number.
func (l *lifeline) write(w io.Writer, p []byte) error {
	for len(p) > 0 {
		n := min(len(p), piece)
		l.writing.Store(l.dog.now())
		_, err := w.Write(p[:n])
		l.writing.Store(0)
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}
