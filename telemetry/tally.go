package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/turn"
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

// tried is what attempts have in common that count in the same series.
type tried struct {
	upstream string
	manner   turn.Manner
}

// found are the series that were used, by what their labels are made of, of which there
// are as many as of the series: to find one by its labels costs more than to count.
type found[K comparable, V any] struct {
	mu  sync.RWMutex
	all map[K]V
}

func (f *found[K, V]) of(k K, find func(K) V) V {
	f.mu.RLock()
	v, ok := f.all[k]
	f.mu.RUnlock()
	if ok {
		return v
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[K]V{}
	}
	v = find(k) // the same one for all who look for it now
	f.all[k] = v
	return v
}

func (p *Prometheus) tally(f finale) *tally {
	return &tally{
		streams: p.streams.WithLabelValues(f.upstream, f.dialect, f.whose.String(), f.outcome),
		repaid:  p.repaid.WithLabelValues(f.upstream),
		events:  p.events.WithLabelValues(f.upstream),
		in:      p.bytes.WithLabelValues(f.upstream, "in"),
		out:     p.bytes.WithLabelValues(f.upstream, "out"),
		beats:   p.beats.WithLabelValues(f.upstream),
		seconds: p.seconds.WithLabelValues(f.upstream, f.whose.String()),
		legs:    p.legs.WithLabelValues(f.upstream),
	}
}

func (p *Prometheus) attempt(t tried) prometheus.Counter {
	return p.attempts.WithLabelValues(t.upstream, t.manner.String())
}
