package telemetry

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/relay"
)

// Prometheus keeps the metrics of one process, and implements [proxy.Observer].
type Prometheus struct {
	reg *prometheus.Registry

	streams, interruptions, attempts, demotions, seam, skipped, repaid, saved, events, bytes, beats *prometheus.CounterVec
	seconds, first, gap, legs, seamSeconds                                                          *prometheus.HistogramVec
	ledger                                                                                          *prometheus.CounterVec

	tallies found[finale, *tally]
	made    found[tried, prometheus.Counter]
}

// NewPrometheus returns metrics that count from now.
func NewPrometheus() *Prometheus {
	p := &Prometheus{reg: prometheus.NewRegistry()}
	for _, c := range []struct {
		to *(*prometheus.CounterVec)
		m  Metric
	}{
		{&p.streams, streams}, {&p.interruptions, interruptions}, {&p.attempts, attempts}, {&p.demotions, demotions}, {&p.seam, seam},
		{&p.skipped, skipped}, {&p.repaid, repaid}, {&p.saved, saved}, {&p.events, events}, {&p.bytes, octets}, {&p.beats, beats},
		{&p.ledger, ledgerSaves},
	} {
		*c.to = prometheus.NewCounterVec(prometheus.CounterOpts{Name: c.m.Name, Help: c.m.Help}, c.m.labels())
		p.reg.MustRegister(*c.to)
	}
	for _, h := range []struct {
		to *(*prometheus.HistogramVec)
		m  Metric
	}{
		{&p.seconds, seconds}, {&p.first, first}, {&p.gap, gap}, {&p.legs, legs}, {&p.seamSeconds, seamSeconds},
	} {
		*h.to = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: h.m.Name, Help: h.m.Help, Buckets: h.m.Buckets}, h.m.labels())
		p.reg.MustRegister(*h.to)
	}
	p.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return p
}

// Handler answers scrapes.
func (p *Prometheus) Handler() http.Handler {
	return promhttp.HandlerFor(p.reg, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4, Timeout: 20 * time.Second})
}

func (m *Metric) labels() (names []string) {
	for _, l := range m.Labels {
		names = append(names, l.Name)
	}
	return names
}

// Begin implements [proxy.Observer].
func (p *Prometheus) Begin(s proxy.Subject) proxy.Listener {
	return &counted{p: p, upstream: s.Upstream, dialect: s.Dialect, targets: s.Targets, began: s.Began, plan: planLabel.Values[planner.Refuse], cause: causeLabel.Values[0]}
}

// counted is one stream on its way into the metrics.
type counted struct {
	p                 *Prometheus
	upstream, dialect string
	targets           []proxy.Asked
	began             time.Time
	opened            time.Time // the attempt under way
	seen              bool      // it has content
	cause, plan       string    // of the last interruption
}

// at is the upstream that a note is about.
func (c *counted) at(target int) string {
	if target < len(c.targets) {
		return c.targets[target].Upstream
	}
	return c.upstream
}

// Note implements [proxy.Listener].
func (c *counted) Note(n relay.Note) {
	p := c.p
	switch n.Kind {
	case relay.NoteAttempt:
		c.opened = n.At
		p.made.of(tried{c.at(n.Target), n.Manner}, p.attempt).Inc()
	case relay.NoteVisible:
		if !c.seen {
			c.seen = true
			p.first.WithLabelValues(c.at(n.Target)).Observe(n.At.Sub(c.began).Seconds())
		}
	case relay.NoteInterrupted:
		c.cause, c.plan = n.Cause.Kind.String(), n.Plan.Kind.String()
		p.interruptions.WithLabelValues(c.at(n.Target), c.cause, c.plan, reasonLabel.token(n.Plan.Reason)).Inc()
		if kept := Saved(n); kept > 0 {
			p.saved.WithLabelValues(c.at(n.Target), c.plan).Add(float64(kept))
		}
	case relay.NoteSeam:
		p.seam.WithLabelValues(seamLabel.token(n.Reason), n.Manner.String(), strconv.FormatBool(n.Joined)).Inc()
		p.seamSeconds.WithLabelValues(n.Manner.String()).Observe(n.At.Sub(c.opened).Seconds())
		p.skipped.WithLabelValues().Add(float64(n.Skipped))
	case relay.NoteHealed:
		p.gap.WithLabelValues(c.cause, c.plan).Observe(n.Gap.Seconds())
	case relay.NoteDemoted:
		p.demotions.WithLabelValues(c.at(n.Target), n.Manner.String()).Inc()
	case relay.NoteUnprotected, relay.NoteEnd:
	}
}

// End implements [proxy.Listener].
func (c *counted) End(o proxy.Outcome) {
	sum := &o.Summary
	t := c.p.tallies.of(finale{c.upstream, dialectLabel.token(c.dialect), outcomeLabel.token(o.Token), o.Whose}, c.p.tally)
	t.streams.Inc()
	t.seconds.Observe(o.At.Sub(c.began).Seconds())
	if sum.Attempts > 0 {
		t.legs.Observe(float64(sum.Attempts))
	}
	t.repaid.Add(float64(sum.Repaid))
	t.events.Add(float64(sum.Events))
	t.in.Add(float64(sum.BytesIn))
	t.out.Add(float64(sum.BytesOut))
	t.beats.Add(float64(sum.Heartbeats))
}

// Saved is how many output tokens the plan of an interruption keeps, which a full
// retry would have generated again; by estimate.
func Saved(n relay.Note) int64 {
	switch n.Plan.Kind {
	case planner.Refuse, planner.WholeRestart:
		return 0
	}
	return n.Said
}
