package proxy

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// A Redis that is started anew is empty. Whoever has a turn writes it again with what it
// says next, and until then its followers were told that the turn is lost, though it ran
// on in the very process they are connected to.
func TestFollowerOutlastsARedisThatBeginsEmpty(t *testing.T) {
	for _, sp := range speakers {
		t.Run(sp.name, func(t *testing.T) {
			goOn := make(chan struct{})
			defer close(goOn)
			p := newProvider(t, func(a *asked) {
				a.stream()
				a.chunks(sp.head...)
				a.chunk(sp.text(said))
				<-goOn
				a.chunk(sp.text(left))
				<-goOn
				a.chunk(sp.callOpen + sp.callRest + sp.callEnd)
				a.chunks(sp.finish...)
				a.end()
			})
			m := miniredis.RunT(t)
			s := overRedis(t, p, m.Addr())
			older := dial(t, s.addr).post(sp.path, sp.ask, "X-Run-Id: r1").response()
			until(t, older.Body, "runs into")
			newer := dial(t, s.addr).post(sp.path, sp.ask, "X-Run-Id: r1").response()
			got := until(t, newer.Body, "runs into")
			m.FlushAll()
			looked := m.CommandCount() + 20
			eventually(t, "the follower looks for the turn", func() bool { return m.CommandCount() > looked || s.dog.live() < 2 })
			goOn <- struct{}{}
			got += until(t, newer.Body, "woods")
			goOn <- struct{}{}
			rest, err := allOf(newer)
			if got += rest; err != nil || message(t, got) != sp.uncut() || p.hits() != 1 {
				t.Errorf("%q, %v, asked %d times\n%s", message(t, got), err, p.hits(), got)
			}
		})
	}
}
