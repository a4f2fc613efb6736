package proxy

import (
	"time"

	"github.com/unbroken-llm/unbroken/relay"
)

const (
	// headlessTime and headlessBytes bound what a turn may still say when its
	// client is gone (DESIGN §8).
	headlessTime  = 5 * time.Minute
	headlessBytes = 4 << 20
)

// outlives reports whether the turn goes on without its client: the run asked for
// that, or another connection follows.
func (d *drive) outlives() bool {
	if d.tail != nil || !d.req.asks.Stream || d.m.Done() || !d.log.held() {
		return false
	}
	if d.req.finish {
		return true
	}
	w := d.allowance()
	defer w.over()
	return d.superseded(&w)
}

// detach lets the client go and carries the turn on behind its back. err is how
// the client's response ends.
func (d *drive) detach(err error) error {
	d.away = true
	client := d.life
	client.reads(nil)
	d.life = newLifeline(d.srv.dog, nil)
	d.log.roused(d.life)
	d.life.reads(d.res)
	client.end()
	if d.srv.stopping.Load() {
		d.life.stop(reasonDraining)
	}
	d.srv.work.Add(1)
	go d.headless()
	return err
}

// headless drives the turn to its end, into its checkpoint only.
func (d *drive) headless() {
	defer d.srv.work.Done()
	defer d.end()
	defer d.guard(func() {})
	until, left := time.Now().Add(headlessTime), headlessBytes
	for {
		d.attend()
		if d.fx.End != relay.Open {
			return
		}
		if left < 0 || d.now.After(until) {
			d.step(relay.Gone{})
			d.persist()
			continue
		}
		d.advance()
		d.persist()
		left -= len(d.fx.Client)
	}
}
