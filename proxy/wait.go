package proxy

import (
	"io"
	"time"

	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/upstream"
)

// soonest bounds how often a deadline alone can wake a driver.
const soonest = 10 * time.Millisecond

// advance waits for something to happen, and feeds it to the machine. A stream is here for
// nearly all of its life: what needs much stack is in functions that are not, so that the
// collector halves the stack of one that waits.
func (d *drive) advance() {
	if d.tail != nil {
		d.now = time.Now()
		d.follow()
		return
	}
	for !d.heed() {
		var in relay.Input
		if d.res != nil {
			d.life.due(d.m.Deadline())
			p, err := d.res.Next()
			d.now = time.Now()
			if err == nil {
				d.feed(p)
				return
			}
			in = d.stopped(err)
		} else {
			d.now = time.Now()
			in = d.wait()
			d.now = time.Now()
		}
		if in != nil {
			d.step(in)
			return
		}
	}
}

// heed does what the machine is to be told before anything else, and reports whether
// there was something.
func (d *drive) heed() bool {
	in := d.life.signal()
	if in == nil {
		in, d.said = d.said, nil
	}
	if in == nil {
		return false
	}
	d.now = time.Now()
	if _, gone := in.(relay.Gone); gone && !d.away && d.outlives() {
		d.fx, d.leaving = &relay.Effects{}, true
		return true
	}
	d.step(in)
	return true
}

// feed feeds the machine body bytes.
func (d *drive) feed(p []byte) {
	d.fx = d.m.Feed(d.now, d.nth, p)
	d.observe()
}

// stopped is what the end of a read means; nil: the driver was woken for a signal.
func (d *drive) stopped(err error) relay.Input {
	if err == upstream.ErrWoken {
		if d.life.flags.Load() != 0 {
			return nil
		}
		return relay.Tick{}
	}
	end := relay.Ended{Attempt: d.nth, End: endOf(err)}
	if err != io.EOF {
		d.under = connOf(err)
	}
	d.drop(false)
	return end
}

// wait waits for a response head, or for the end of a back-off.
func (d *drive) wait() relay.Input {
	if d.open != nil && d.single() {
		return d.awaitHead()
	}
	var due <-chan time.Time
	if at := d.m.Deadline(); !at.IsZero() {
		in := max(at.Sub(d.now), soonest)
		if d.timer == nil {
			d.timer = time.NewTimer(in)
		} else {
			d.timer.Reset(in)
		}
		due = d.timer.C
	}
	var opened, turn <-chan struct{}
	switch {
	case d.open != nil:
		d.srv.launch(d.open)
		opened = d.open.done
	case d.ask != nil && d.ticket != nil:
		turn = d.ticket.turn
	}
	select {
	case <-turn:
		return d.start()
	case <-opened:
		return d.opened()
	case <-due:
		return relay.Tick{}
	case <-d.life.wake:
		return nil
	}
}

// opened takes the result of an attempt's opening.
func (d *drive) opened() relay.Input {
	o := d.open
	d.open = nil
	return d.openedBy(o)
}

func (d *drive) openedBy(o *opening) relay.Input {
	if o.err != nil {
		d.under = connOf(o.err)
		return relay.Ended{Attempt: o.n, End: endOf(o.err)}
	}
	d.res, d.nth = o.res, o.n
	d.life.reads(o.res)
	if d.timer != nil { // a quarter of a kilobyte, which would lie idle while the stream flows
		d.timer.Stop()
		d.timer = nil
	}
	return relay.Opened{Attempt: o.n, Status: o.res.Status, Header: &o.res.Header}
}
