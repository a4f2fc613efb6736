package proxy

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/relay"
)

// headerUpgrade tells of a call that does not stream, on a route that would serve it
// from a stream, whether it was: "on", or "off; reason=…".
const headerUpgrade = "X-Unbroken-Upgrade"

// Why a call is not upgraded, beside what its dialect says of the request.
const (
	unupgradedDialect = "dialect"
	unupgradedRefused = relay.StreamRefused
)

// upgrade has a call that does not stream served from a stream (DESIGN §5), where the
// route says so and the stream tells the ordinary answer exactly. It returns what goes
// up first. A provider that once refused to stream is not asked again.
func (d *drive) upgrade(plain []byte) []byte {
	r := d.req
	if !r.upgrade || r.asks.Stream {
		return plain
	}
	up, ok := r.speaks.(dialect.Upgrader)
	l := &d.legs[0]
	switch {
	case !ok:
		r.upgraded = unupgradedDialect
	case d.srv.abilities.streamless(l.to, r.speaks.Name(), l.model):
		r.upgraded = unupgradedRefused
	default:
		var stream []byte
		if stream, r.upgraded = up.Upgrade(r.asks, plain); r.upgraded == "" {
			d.stream(up, stream)
			return stream
		}
	}
	d.srv.cfg.Log.Info("a call is not upgraded", "reason", r.upgraded, "upstream", r.to.Name, "dialect", r.speaks.Name())
	r.upgraded = "off; reason=" + r.upgraded
	return plain
}

// stream makes the request one that asks for a stream, everywhere.
func (d *drive) stream(up dialect.Upgrader, body []byte) {
	r := d.req
	own := r.asks
	r.path, r.tail = up.StreamPath(r.path), up.StreamPath(r.tail)
	for i := range d.legs {
		l := &d.legs[i]
		l.own, l.path = l.path, up.StreamPath(l.path)
	}
	d.first, d.repaired = body, true
	r.understand(body)
	r.asks.Upgraded, r.upgraded = own, "on"
}

// accepts is the media type of what an upgraded call asks for.
func (r *request) accepts() string {
	if f, ok := r.speaks.(dialect.Framed); ok {
		return f.ContentType()
	}
	return "text/event-stream"
}

// unstream notes that a target would not stream.
func (d *drive) unstream(target int) {
	l := &d.legs[target]
	d.req.upgraded = "off; reason=" + unupgradedRefused
	d.srv.abilities.unstream(l.to, d.req.speaks.Name(), l.model)
}

// folds reports whether the client waits for an ordinary answer that is made of a
// stream. It has nothing until then.
func (d *drive) folds() bool { return d.req.asks.Upgraded != nil }

// outdoneWhole is what such a client is told when a newer connection of its turn gets
// the answer.
func (d *drive) outdoneWhole() *relay.Effects {
	status, body := d.req.speaks.ErrorBody(newer)
	head := &relay.Head{Status: status, ContentType: "application/json"}
	return &relay.Effects{Head: head, Client: body, Cancel: d.fx.Cancel, End: relay.Clean}
}
