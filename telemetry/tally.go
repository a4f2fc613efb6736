package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unbroken-llm/unbroken/proxy"
)

// finale is what the streams have in common that end in the same series.
type finale struct {
	upstream, dialect, outcome string
	whose                      proxy.Whose
}

// tally is the series of a finale.
type tally struct {
	streams, repaid, events, in, out, beats prometheus.Counter
	seconds, legs                           prometheus.Observer
}

// tallies are those of the finales that were seen, as many as there are series of streams:
// to find all of one by their labels is most of what the end of a stream costs.
type tallies struct {
	mu  sync.RWMutex
	all map[finale]*tally
}

func (p *Prometheus) tally(f finale) *tally {
	p.tallies.mu.RLock()
	t := p.tallies.all[f]
	p.tallies.mu.RUnlock()
	if t != nil {
		return t
	}
	p.tallies.mu.Lock()
	defer p.tallies.mu.Unlock()
	if t = p.tallies.all[f]; t != nil {
		return t
	}
	t = &tally{
		streams: p.streams.WithLabelValues(f.upstream, f.dialect, f.whose.String(), f.outcome),
		repaid:  p.repaid.WithLabelValues(f.upstream),
		events:  p.events.WithLabelValues(f.upstream),
		in:      p.bytes.WithLabelValues(f.upstream, "in"),
		out:     p.bytes.WithLabelValues(f.upstream, "out"),
		beats:   p.beats.WithLabelValues(f.upstream),
		seconds: p.seconds.WithLabelValues(f.upstream, f.whose.String()),
		legs:    p.legs.WithLabelValues(f.upstream),
	}
	if p.tallies.all == nil {
		p.tallies.all = map[finale]*tally{}
	}
	p.tallies.all[f] = t
	return t
}
