package proxy

import (
	"time"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
)

// begin makes an attempt, unless its target's breaker is open; a recovery waits its
// turn where too many are under way or have just set out. A client's own request,
// which is one that nobody was sent yet, waits for nothing.
func (d *drive) begin(a *relay.Attempt) {
	l := &d.legs[a.Target]
	d.tale.target = l.to.Name
	if d.at != l.to {
		if d.at != nil {
			d.at.guard.part()
		}
		d.at = l.to
		d.at.guard.join()
	}
	d.giveBack()
	d.ask = &opening{n: a.N, leg: l, request: d.request(a)}
	if d.asked != nil {
		if after := l.breaker.barred(); after > 0 {
			d.hold(after)
			return
		}
		var now bool
		if d.ticket, now = l.to.guard.enter(d.asked == l.to); !now {
			d.ask.queued = true
			d.said = relay.Queued{Attempt: a.N}
			return
		}
	}
	d.said = d.start()
}

// start sends what was asked for. It returns what the machine is to know of it.
func (d *drive) start() relay.Input {
	a := d.ask
	p, after := a.leg.breaker.allow()
	if after > 0 {
		d.hold(after)
		in := d.said
		d.said = nil
		return in
	}
	d.ask, d.permit = nil, p
	d.unheard, d.again = true, d.asked == a.leg.to
	d.asked = a.leg.to
	d.asked.guard.asked(d.ticket)
	a.by, a.to = d.req.under.client, &a.leg.to.target
	d.open = a
	if a.queued || p.probe != nil {
		return relay.Began{Attempt: a.n, Probe: p.probe != nil}
	}
	return nil
}

// hold answers for a target that is not asked.
func (d *drive) hold(after time.Duration) {
	a := d.ask
	d.giveBack()
	a.leg.to.guard.heard(bad, false)
	d.said = relay.Ended{Attempt: a.n, End: interrupt.Ended{
		How: interrupt.Barred, NotSent: true, After: after,
		Detail: "upstream " + a.leg.to.Name + " has been failing and is left alone for a moment",
	}}
}

// hear passes on how the current attempt fares. Of its good news the first is news.
func (d *drive) hear(v verdict) {
	if v == bad && d.under != nil && !d.asked.fallen.first(d.under) {
		v = neutral // another stream of the same connection has told of its death
	}
	d.permit.report(v)
	if d.asked != nil && (v == bad || v == limited || v == good && d.unheard) {
		d.unheard = false
		d.asked.guard.heard(v, d.again)
	}
	d.ticket.leave() // whom it lets in is to know what was heard
}

// giveBack lets go of what an attempt holds, whatever became of it. A probe that
// said nothing of its target leaves the breaker as it was.
func (d *drive) giveBack() {
	d.ask, d.said, d.under = nil, nil, nil
	d.permit.report(neutral)
	d.permit = permit{}
	d.ticket.leave()
	d.ticket = nil
}
