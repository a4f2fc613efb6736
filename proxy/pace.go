package proxy

import "time"

const (
	// paceSlot is how finely the last second is known.
	paceSlot  = 25 * time.Millisecond
	paceSlots = int(time.Second/paceSlot) + 1 // any whole second, and the slot under way

	// healthTick is how finely the healthy rate is known, healthTicks how many it is
	// the mean of.
	healthTick  = time.Second
	healthTicks = 60

	// paceFloor is how many requests a second, in all, never hold a recovery back:
	// what one user with a handful of agents asks when all of them are cut.
	paceFloor = 5
)

// pace keeps an upstream in trouble from being asked more than half as often again
// as it is asked when all is well: 1.5 times the healthy rate, in any second.
// Clients' own requests are counted, never held back; recoveries and retries get
// what those leave, and at least a quarter of the healthy rate themselves, so that a
// rush of newcomers does not starve the turns that are half told.
//
// An upstream that is well needs no such care: when one HTTP/2 connection dies under
// a thousand streams, or a proxy on the way is restarted, they need not stand in line
// for a minute. While nothing says trouble, as many repetitions as [stormFloor] may
// be under way whatever their pace, and one more for each that was answered, so that
// twice as many set out each time the last ones were answered well; the first failure
// takes that back to the floor. Once one in five of what is heard within a second, or two,
// is a failure it is in trouble, and the pace alone counts until nobody waits any more and
// all is well again: those who waited for the end of an outage do not come back all at
// once.
//
// The healthy rate is that of the clients' requests that were answered, over the
// last minute of health: a second that brought no more good than bad does not
// count, nor do the silent ones behind it, so that an outage, however long, does
// not change what is known of better days.
//
// It is a value that knows no clock: now is the time since any epoch, and what is
// before the last time known is taken for that.
type pace struct {
	recent [paceSlots]slotCount // by slot number, modulo
	slot   int64                // the one under way

	well       [healthTicks]int // answered in each tick of health, the oldest overwritten
	ticks      int              // of well that are in use
	next       int              // of well
	sum        int              // over well
	tick       int64            // the one under way
	goods, bad int              // of it
	ill        bool             // the last tick that brought anything was not one of health

	healed int                      // repetitions answered, of the tick under way
	before struct{ heard, bad int } // in the tick before it
	worse  bool                     // the last tick that brought anything was one of trouble
	proven int                      // repetitions answered since the last failure, or since nobody waited
	wary   bool                     // it is in trouble, or somebody still waits who waited for its end
}

// slotCount is what went out in a slot: all requests, and those of them that were
// repetitions.
type slotCount struct{ all, again int }

// first says that a client's own request goes out.
func (p *pace) first(now time.Duration) {
	p.roll(now)
	p.at(p.slot).all++
}

// good says that a client's own request was answered, mended that a repetition was,
// trouble that one of any kind failed, or was not even sent.
func (p *pace) good(now time.Duration)   { p.roll(now); p.goods++ }
func (p *pace) mended(now time.Duration) { p.roll(now); p.healed++; p.proven++ }
func (p *pace) trouble(now time.Duration) {
	p.roll(now)
	p.bad++
	p.proven = 0
	p.wary = p.wary || p.troubled()
}

// troubled reports whether the tick under way is one of trouble. A single failure is none:
// whatever breaks, breaks once. The tick before counts too: two failures at the beginning of
// one would else be a large part of what was heard in it.
func (p *pace) troubled() bool {
	bad := p.bad + p.before.bad
	return p.bad > 0 && bad > 1 && 5*bad >= p.heard()+p.before.heard
}

// heard is all that was heard in the tick under way.
func (p *pace) heard() int { return p.goods + p.healed + p.bad }

// rest says that no repetition is under way, and none waits.
func (p *pace) rest(now time.Duration) {
	p.roll(now)
	p.proven = 0
	p.wary = p.wary && (p.worse || p.bad > 0)
}

// free is how many repetitions may be under way whatever their pace.
func (p *pace) free() int {
	if p.wary {
		return 0
	}
	return stormFloor + p.proven
}

// again asks for leave to repeat a request while so many are under way: none to wait
// for, it is given and counted.
func (p *pace) again(now time.Duration, flying int) (wait time.Duration) {
	p.roll(now)
	if flying >= p.free() {
		wait = p.full(now)
	}
	if wait == 0 {
		s := p.at(p.slot)
		s.all++
		s.again++
	}
	return wait
}

// unasked takes back what was given at a time: nothing went out.
func (p *pace) unasked(given time.Duration) {
	if n := int64(given / paceSlot); n > p.slot-int64(paceSlots) {
		s := p.at(n)
		s.all = max(0, s.all-1)
		s.again = max(0, s.again-1)
	}
}

// full is for how long there is no room for one more.
func (p *pace) full(now time.Duration) time.Duration {
	healthy := p.healthy()
	most, share := max(paceFloor, int(healthy*3/2)), max(1, int(healthy/4))
	all, again := 0, 0
	for i := range p.recent {
		all += p.recent[i].all
		again += p.recent[i].again
	}
	oldest := max(0, p.slot-int64(paceSlots)+1)
	for n := oldest; ; n++ {
		if all < most || again < share {
			if n == oldest {
				return 0
			}
			return time.Duration(n-1+int64(paceSlots))*paceSlot - now
		}
		all -= p.at(n).all
		again -= p.at(n).again
	}
}

// healthy is the healthy rate, in requests a second.
func (p *pace) healthy() float64 {
	if p.ticks == 0 {
		if p.goods <= p.bad {
			return 0
		}
		return float64(p.goods)
	}
	return float64(p.sum) / float64(p.ticks) / healthTick.Seconds()
}

func (p *pace) at(slot int64) *slotCount { return &p.recent[slot%int64(paceSlots)] }

// roll makes the slot and the tick of now those under way.
func (p *pace) roll(now time.Duration) {
	slot := int64(now / paceSlot)
	for n := max(p.slot+1, slot-int64(paceSlots)+1); n <= slot; n++ {
		*p.at(n) = slotCount{}
	}
	p.slot = max(p.slot, slot)

	tick := int64(now / healthTick)
	if tick <= p.tick {
		return
	}
	if p.goods+p.bad > 0 {
		p.ill = p.goods <= p.bad
	}
	if p.heard() > 0 {
		p.worse = p.troubled()
	}
	if !p.ill {
		p.remember(p.goods)
		for range min(tick-p.tick-1, healthTicks) {
			p.remember(0)
		}
	}
	p.before.heard, p.before.bad = p.heard(), p.bad
	if tick > p.tick+1 {
		p.before.heard, p.before.bad = 0, 0
	}
	p.tick, p.goods, p.healed, p.bad = tick, 0, 0, 0
}

func (p *pace) remember(goods int) {
	p.sum += goods - p.well[p.next]
	p.well[p.next] = goods
	p.next = (p.next + 1) % healthTicks
	p.ticks = min(p.ticks+1, healthTicks)
}
