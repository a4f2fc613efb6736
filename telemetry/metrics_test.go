package telemetry

import (
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/ledger"
	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

var began = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return began.Add(d) }

// hostile is what a client can put where names are expected.
const hostile = `"}<script>alert(1)</script>` + "\n"

var subject = proxy.Subject{
	Run: "r1", Dialect: "chat", Upstream: "openai", Model: hostile, Began: began,
	Targets: []proxy.Asked{{Upstream: "openai", Model: hostile}, {Upstream: "second", Model: "m2"}},
}

// story is a stream that is cut, continues at another upstream, and ends well.
var story = []relay.Note{
	{Kind: relay.NoteAttempt, At: after(0)},
	{Kind: relay.NoteVisible, At: after(200 * time.Millisecond)},
	{Kind: relay.NoteInterrupted, At: after(time.Second), Cause: interrupt.Cause{Kind: interrupt.ConnectionReset}, Said: 120,
		Plan: planner.Plan{Kind: planner.ContinueText, Reason: "text", Manner: turn.Prefill}, Manner: turn.Prefill},
	{Kind: relay.NoteAttempt, Attempt: 1, Target: 1, At: after(time.Second), Manner: turn.Prefill},
	{Kind: relay.NoteSeam, Attempt: 1, Target: 1, At: after(1300 * time.Millisecond), Reason: "overlap", Joined: true, Skipped: 12, Manner: turn.Prefill},
	{Kind: relay.NoteVisible, Attempt: 1, Target: 1, At: after(1300 * time.Millisecond)},
	{Kind: relay.NoteHealed, Attempt: 1, Target: 1, At: after(1300 * time.Millisecond), Gap: 400 * time.Millisecond},
	{Kind: relay.NoteDemoted, Target: 1, Manner: turn.Asked},
	{Kind: relay.NoteUnprotected, Reason: hostile},
	{Kind: relay.NoteEnd, At: after(2 * time.Second), Reason: "healed", End: relay.Clean},
}

var ending = proxy.Outcome{At: after(2 * time.Second), Whose: proxy.Completed, Token: "healed", Summary: relay.Summary{
	Attempts: 2, Recoveries: 1, Events: 50, BytesIn: 4000, BytesOut: 3900, Heartbeats: 3, Repaid: 900,
	Usage: turn.Usage{Known: true, Input: 1000, Output: 300},
}}

func tell(o proxy.Observer, s proxy.Subject, notes []relay.Note, end proxy.Outcome) {
	l := o.Begin(s)
	for _, n := range notes {
		l.Note(n)
	}
	l.End(end)
}

func stats() proxy.Stats {
	return proxy.Stats{
		Live: 2, Accepted: 9, Refused: 1, Unclaimed: 3, Dropped: 4, Unacked: 5, Unreadable: 6, Takeovers: 7, Flushes: 8,
		Hinted: 10, Expanded: 11, Unremembered: 12, Unledgered: 13, Unabandoned: 14, Unprotected: 15, Unprotectable: 17, Ready: true, Waiting: 16,
		Upstreams: []proxy.UpstreamState{{Name: "openai", Live: 1, Recoveries: 1, Waiting: 2, Healthy: 3.5}},
		Breakers: []proxy.BreakerState{
			{Upstream: "openai", Model: hostile, State: "open", Opened: 2}, {Upstream: "openai", Model: "b", State: "open", Opened: 1},
			{Upstream: "openai", Model: "c", State: "closed", Opened: 1},
		},
	}
}

func reader(p *Prometheus) {
	p.Read(Source{Version: "v1", Stats: stats, Store: func() Store {
		return Store{Away: true, Lag: 1500 * time.Millisecond, BehindBytes: 20, BehindTurns: 2, Drops: 1, Fenced: 3}
	}, Config: func() Config {
		return Config{Accepted: 2, Refused: 1, Loaded: time.Unix(1_700_000_000, 0), Stale: true, Pending: 1}
	}})
}

// What is scraped is what names.go lists, all of it and nothing else, with the labels
// and the label values that it lists; whatever clients call things.
func TestScrapeIsTheList(t *testing.T) {
	p := NewPrometheus()
	reader(p)
	tell(p, subject, story, ending)
	p.ledger.WithLabelValues("saved").Inc()
	got, err := p.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]Metric{}
	for _, m := range Metrics() {
		listed[m.Name] = m
	}
	for _, f := range got {
		if strings.HasPrefix(f.GetName(), "go_") || strings.HasPrefix(f.GetName(), "process_") || strings.HasPrefix(f.GetName(), "promhttp_") {
			continue
		}
		m, ok := listed[f.GetName()]
		if !ok {
			t.Errorf("%s is scraped and in no list", f.GetName())
			continue
		}
		delete(listed, m.Name)
		if string(m.Kind) != strings.ToLower(f.GetType().String()) || m.Help != f.GetHelp() {
			t.Errorf("%s is a %s: %s", m.Name, f.GetType(), f.GetHelp())
		}
		for _, sample := range f.GetMetric() {
			checkLabels(t, m, sample.GetLabel())
		}
	}
	for name := range listed {
		t.Errorf("%s is listed and not scraped", name)
	}
}

func checkLabels(t *testing.T, m Metric, got []*dto.LabelPair) {
	t.Helper()
	if len(got) != len(m.Labels) {
		t.Errorf("%s has the labels %v", m.Name, got)
	}
	for _, l := range m.Labels {
		i := slices.IndexFunc(got, func(p *dto.LabelPair) bool { return p.GetName() == l.Name })
		if i < 0 {
			t.Errorf("%s lacks the label %s", m.Name, l.Name)
			continue
		}
		v := got[i].GetValue()
		if l.Values != nil && !slices.Contains(l.Values, v) || strings.Contains(v, "script") {
			t.Errorf("%s{%s=%q} is in no list", m.Name, l.Name, v)
		}
	}
}

// The numbers, as a scrape shows them.
func TestStoryInNumbers(t *testing.T) {
	p := NewPrometheus()
	reader(p)
	tell(p, subject, story, ending)
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	for _, line := range []string{
		`unbroken_streams_total{dialect="chat",outcome="healed",upstream="openai",whose="completed"} 1`,
		`unbroken_stream_seconds_sum{upstream="openai",whose="completed"} 2`,
		`unbroken_first_content_seconds_sum{upstream="openai"} 0.2`,
		`unbroken_interruptions_total{cause="connection_reset",plan="r1_continue_text",reason="text",upstream="openai"} 1`,
		`unbroken_gap_seconds_sum{cause="connection_reset",plan="r1_continue_text"} 0.4`,
		`unbroken_attempts_total{manner="none",upstream="openai"} 1`,
		`unbroken_attempts_total{manner="prefill",upstream="second"} 1`,
		`unbroken_stream_attempts_sum{upstream="openai"} 2`,
		`unbroken_demotions_total{manner="asked",upstream="second"} 1`,
		`unbroken_seams_total{joined="true",kind="overlap",manner="prefill"} 1`,
		`unbroken_seam_seconds_sum{manner="prefill"} 0.3`,
		`unbroken_seam_skipped_bytes_total 12`,
		`unbroken_repaid_tokens_total{upstream="openai"} 900`,
		`unbroken_saved_tokens_total{plan="r1_continue_text",upstream="openai"} 120`,
		`unbroken_events_total{upstream="openai"} 50`,
		`unbroken_bytes_total{direction="out",upstream="openai"} 3900`,
		`unbroken_heartbeats_total{upstream="openai"} 3`,
		`unbroken_live_requests 2`,
		`unbroken_unprotected_total{refused="false"} 15`,
		`unbroken_unprotected_total{refused="true"} 17`,
		`unbroken_config_reloads_total{answer="accepted"} 2`,
		`unbroken_config_reloads_total{answer="refused"} 1`,
		`unbroken_config_loaded_timestamp_seconds 1.7e+09`,
		`unbroken_config_refused 1`,
		`unbroken_config_pending_settings 1`,
		`unbroken_breakers{state="open",upstream="openai"} 2`,
		`unbroken_breaker_opens_total{upstream="openai"} 4`,
		`unbroken_checkpoint_flushes_total 8`,
		`unbroken_checkpoint_losses_total{what="unacked"} 5`,
		`unbroken_store_away 1`,
		`unbroken_store_lag_seconds 1.5`,
		`unbroken_later_turns_total{what="hinted"} 10`,
		`unbroken_ledger_lost_total 13`,
	} {
		if !strings.Contains(text, line+"\n") {
			name, _, _ := strings.Cut(line, "{")
			t.Errorf("no line %s; there are:\n%s", line, grep(text, strings.Fields(name)[0]))
		}
	}
}

func grep(text, name string) string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// What a retry would have had to generate again is saved by every plan but those
// that begin anew or give up.
func TestSaved(t *testing.T) {
	for k := planner.Refuse; k.String() != "plan?"; k++ {
		want := int64(7)
		if k == planner.Refuse || k == planner.WholeRestart {
			want = 0
		}
		if got := Saved(relay.Note{Said: 7, Plan: planner.Plan{Kind: k}}); got != want {
			t.Errorf("%s saves %d, want %d", k, got, want)
		}
	}
}

// How the store answered a write to the ledger.
func TestLedgerSavesAreCounted(t *testing.T) {
	p := NewPrometheus()
	memory := ledger.NewMemory(ledger.MemoryConfig{Clock: func() time.Time { return began }})
	s := p.Ledger(memory)
	key := ledger.Key([32]byte{1}, "r")
	if _, _, err := ledger.Append(t.Context(), s, key, [32]byte{1}, ledger.Entry{At: began, Do: ledger.Begin{ID: "r"}}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Save(t.Context(), key, [32]byte{1}, got.Run, 99); !errors.Is(err, ledger.ErrChanged) {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{`unbroken_ledger_saves_total{answer="saved"} 1`, `unbroken_ledger_saves_total{answer="changed"} 1`} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("no line %s in\n%s", line, grep(w.Body.String(), ledgerSaves.Name))
		}
	}
}

// Notes come from the streams' own goroutines: they cost no garbage.
func TestNotesCostNoAllocation(t *testing.T) {
	p := NewPrometheus()
	l := p.Begin(subject)
	if n := testing.AllocsPerRun(100, func() {
		for _, n := range story {
			l.Note(n)
		}
		l.End(ending)
	}); n != 0 {
		t.Errorf("a stream's notes cost %v allocations", n)
	}
}

// BenchmarkStream is what a stream that is cut once costs in metrics.
func BenchmarkStream(b *testing.B) {
	p := NewPrometheus()
	b.ReportAllocs()
	for b.Loop() {
		tell(p, subject, story, ending)
	}
}
