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
	return &counted{p: p, who: s, plan: planLabel.Values[planner.Refuse], cause: causeLabel.Values[0]}
}

// counted is one stream on its way into the metrics.
type counted struct {
	p           *Prometheus
	who         proxy.Subject
	opened      time.Time // the attempt under way
	seen        bool      // it has content
	cause, plan string    // of the last interruption
}

// at is the upstream that a note is about.
func (c *counted) at(target int) string {
	if target < len(c.who.Targets) {
		return c.who.Targets[target].Upstream
	}
	return c.who.Upstream
}

// Note implements [proxy.Listener].
func (c *counted) Note(n relay.Note) {
	p := c.p
	switch n.Kind {
	case relay.NoteAttempt:
		c.opened = n.At
		p.attempts.WithLabelValues(c.at(n.Target), n.Manner.String()).Inc()
	case relay.NoteVisible:
		if !c.seen {
			c.seen = true
			p.first.WithLabelValues(c.at(n.Target)).Observe(n.At.Sub(c.who.Began).Seconds())
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
	p, up, sum := c.p, c.who.Upstream, &o.Summary
	p.streams.WithLabelValues(up, dialectLabel.token(c.who.Dialect), o.Whose.String(), outcomeLabel.token(o.Token)).Inc()
	p.seconds.WithLabelValues(up, o.Whose.String()).Observe(o.At.Sub(c.who.Began).Seconds())
	if sum.Attempts > 0 {
		p.legs.WithLabelValues(up).Observe(float64(sum.Attempts))
	}
	p.repaid.WithLabelValues(up).Add(float64(sum.Repaid))
	p.events.WithLabelValues(up).Add(float64(sum.Events))
	p.bytes.WithLabelValues(up, "in").Add(float64(sum.BytesIn))
	p.bytes.WithLabelValues(up, "out").Add(float64(sum.BytesOut))
	p.beats.WithLabelValues(up).Add(float64(sum.Heartbeats))
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
