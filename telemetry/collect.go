package telemetry

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unbroken-llm/unbroken/proxy"
)

// Source is where the numbers come from that are read when somebody asks.
type Source struct {
	Version string
	Stats   func() proxy.Stats
	Store   func() Store
	Config  func() Config
}

// Config is how the configuration is doing.
type Config struct {
	Accepted, Refused int64     // reloads
	Loaded            time.Time // when what is in force was read
	Stale             bool      // what was read last was refused: what is in force is older
	Pending           int       // settings whose change waits for a restart
}

// Store is how the checkpoint store is doing.
type Store struct {
	Away          bool
	Lag           time.Duration
	BehindBytes   int64
	BehindTurns   int
	Drops, Fenced int64
}

// Read has every scrape read s too. Once.
func (p *Prometheus) Read(s Source) { p.reg.MustRegister(&reading{s}) }

// reading is the collector of what others count.
type reading struct{ Source }

// Describe promises nothing beforehand: which upstreams there are shows in a scrape.
func (r *reading) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (r *reading) Collect(to chan<- prometheus.Metric) {
	tell := teller(to)
	tell.of(build, 1, r.Version, runtime.Version())
	st := r.Stats()
	tell.of(ready, truth(st.Ready))
	tell.of(live, float64(st.Live))
	tell.of(waiting, float64(st.Waiting))
	tell.of(requests, float64(st.Accepted), "accepted")
	tell.of(requests, float64(st.Refused), "refused")
	tell.of(unsafe, float64(st.Unprotected), "false")
	tell.of(unsafe, float64(st.Unprotectable), "true")
	tell.of(orphans, float64(st.Unabandoned))
	for _, u := range st.Upstreams {
		tell.of(upstreamLive, float64(u.Live), u.Name)
		tell.of(upstreamHealing, float64(u.Recoveries), u.Name)
		tell.of(upstreamWaiting, float64(u.Waiting), u.Name)
		tell.of(healthy, u.Healthy, u.Name)
	}
	tell.breakers(&st)
	tell.of(flushes, float64(st.Flushes))
	for what, n := range map[string]int64{"unclaimed": st.Unclaimed, "dropped": st.Dropped, "unacked": st.Unacked, "unreadable": st.Unreadable} {
		tell.of(losses, float64(n), what)
	}
	tell.of(reclaimed, float64(st.Reclaimed))
	tell.of(takeovers, float64(st.Takeovers))
	for what, n := range map[string]int64{"hinted": st.Hinted, "expanded": st.Expanded, "unremembered": st.Unremembered} {
		tell.of(later, float64(n), what)
	}
	tell.of(ledgerLost, float64(st.Unledgered))
	tell.store(r.Store())
	tell.config(r.Config())
}

type teller chan<- prometheus.Metric

func (t teller) of(m Metric, v float64, labels ...string) {
	kind := prometheus.GaugeValue
	if m.Kind == Counter {
		kind = prometheus.CounterValue
	}
	t <- prometheus.MustNewConstMetric(prometheus.NewDesc(m.Name, m.Help, m.labels(), nil), kind, v, labels...)
}

// breakers tells how many there are in each state: a label per model would be the
// clients' to fill.
func (t teller) breakers(st *proxy.Stats) {
	in := map[[2]string]int{}
	opened := map[string]int64{}
	for _, b := range st.Breakers {
		in[[2]string{b.Upstream, b.State}]++
		opened[b.Upstream] += b.Opened
	}
	for _, u := range st.Upstreams {
		for _, state := range stateLabel.Values {
			t.of(breakers, float64(in[[2]string{u.Name, state}]), u.Name, state)
		}
		t.of(breakerOpens, float64(opened[u.Name]), u.Name)
	}
}

func (t teller) store(s Store) {
	t.of(storeAway, truth(s.Away))
	t.of(storeLag, s.Lag.Seconds())
	t.of(storeBehind, float64(s.BehindBytes))
	t.of(storeTurns, float64(s.BehindTurns))
	t.of(storeDrops, float64(s.Drops))
	t.of(storeFenced, float64(s.Fenced))
}

func (t teller) config(c Config) {
	t.of(reloads, float64(c.Accepted), "accepted")
	t.of(reloads, float64(c.Refused), "refused")
	t.of(configLoaded, float64(c.Loaded.UnixMilli())/1000)
	t.of(configRefused, truth(c.Stale))
	t.of(configPending, float64(c.Pending))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
