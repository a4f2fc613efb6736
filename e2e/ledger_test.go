package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/runs"
)

var agentDialects = []string{"chat", "responses", "messages"}

// fair is what becomes of a run when nobody dies.
var fair = []string{"pay completed 1", "note completed 1", "job completed 1", "pay completed 1", "note completed 1", "job completed 1"}

// outlived is what becomes of a run whose agent died once, at the nth use of a point. Money
// that may have moved is given up, and said to be; a note may be taken twice; a job is
// asked for before it is begun again.
func outlived(point string, use int) []string {
	want := slices.Clone(fair)
	first := (use - 1) * 3
	switch point {
	case "after pay was announced", "before the effect of pay":
		want[first] = "pay indeterminate 0"
	case "after the effect of pay", "before the result of pay":
		want[first] = "pay indeterminate 1"
	case "after the effect of note", "before the result of note":
		want[first+1] = "note completed 2"
	}
	return want
}

// TestAnAgentIsKilledAtEveryPoint: an agent that reports to the ledger is killed with
// -9 at each point of its run, starts again, and comes to the end. Every effect takes
// place exactly once where the tool's policy promises it, and is reported
// indeterminate where nobody can know.
func TestAnAgentIsKilledAtEveryPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are killed")
	}
	agent, provider := agentBinary(t), errandProvider(t)
	side := newSidecar(t, binary(t), "memory", provider.URL())
	for i, dialect := range agentDialects {
		t.Run(dialect, func(t *testing.T) {
			points := (&errand{T: t, at: side, agent: agent, dialect: dialect, id: dialect + "-fair", dir: t.TempDir()}).unharmed()
			places := allPoints
			if i > 0 {
				places = i % 2
			}
			used := map[string]int{}
			for n, point := range points {
				used[point]++
				use := used[point]
				if !tried(points, n, places) {
					continue
				}
				t.Run(fmt.Sprintf("%s %d", point, use), func(t *testing.T) {
					t.Parallel()
					e := &errand{T: t, at: side, agent: agent, dialect: dialect, id: fmt.Sprintf("%s-%d", dialect, n), dir: t.TempDir()}
					if l := e.killedAt(n); l.status != -1 || l.points[n] != point {
						t.Fatalf("it was not killed at %q: exit %d, %q\n%s", point, l.status, l.points, l.log.String())
					}
					last := e.finish()
					if got, want := e.lived(), outlived(point, use); !slices.Equal(got, want) {
						t.Errorf("%q, want %q", got, want)
					}
					if !strings.Contains(last.out.String(), "All errands are done.") {
						t.Errorf("the end was not delivered: %q", last.out.String())
					}
				})
			}
		})
	}
}

// everyPoint kills at each use of each point in every dialect and over every store (make
// every); otherwise each has all kinds of points, and the first of them all points.
var everyPoint = flag.Bool("points.full", false, "kill at every point of a run, in every dialect and over every store")

// allPoints is the rota of who is killed everywhere.
const allPoints = -1

// tried tells whether the nth point is one of a rota's: the first use of each kind is for
// rota 0, a later one for rota 1.
func tried(points []string, n, rota int) bool {
	if *everyPoint || rota == allPoints {
		return true
	}
	before := 0
	for _, p := range points[:n] {
		if p == points[n] {
			before++
		}
	}
	later := slices.Contains(points[n+1:], points[n])
	return before == rota || before < rota && !later
}

// unharmed lets an agent live, and returns its points.
func (e *errand) unharmed() []string {
	e.Helper()
	l := e.begin(nil)
	if l.wait() != 0 {
		e.Fatalf("exit %d at %q: %s", l.status, l.points, l.log.String())
	}
	if got := e.lived(); !slices.Equal(got, fair) {
		e.Fatalf("%q", got)
	}
	return l.points
}

// TestAnAgentThatDoesNotReport is killed at every point too. What it asked for may have
// run unseen: it is told unknown, never execute, and no effect takes place twice.
func TestAnAgentThatDoesNotReport(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are killed")
	}
	agent, provider := agentBinary(t), errandProvider(t)
	side := newSidecar(t, binary(t), "memory", provider.URL())
	of := func(t *testing.T, id string) *errand {
		return &errand{T: t, at: side, agent: agent, dialect: "chat", id: id, dir: t.TempDir(), silent: true}
	}
	whole := of(t, "silent").begin(nil)
	if whole.wait() != 0 {
		t.Fatalf("exit %d at %q: %s", whole.status, whole.points, whole.log.String())
	}
	inBatch := false
	for n, point := range whole.points {
		// A batch is open from its turn's end until the next inference has come.
		switch point {
		case "after the inference":
			inBatch = true
		case "during the inference":
			inBatch = false
		}
		last := n > slices.Index(whole.points, "at the end")-4
		wantUnknown := inBatch && !last
		t.Run(fmt.Sprintf("%d %s", n, point), func(t *testing.T) {
			t.Parallel()
			e := of(t, fmt.Sprintf("silent-%d", n))
			e.killedAt(n)
			before := e.effects()
			l := e.begin(nil)
			if status := l.wait(); wantUnknown && (status != 3 || !strings.Contains(l.log.String(), "unknown") || len(e.effects()) != len(before)) {
				t.Errorf("exit %d, %d effects after %d: %s", status, len(e.effects()), len(before), l.log.String())
			}
			for op, n := range e.effects() {
				if n != 1 {
					t.Errorf("%s had its effect %d times", op, n)
				}
			}
			got, err := e.client().Recovery(context.Background(), e.id)
			if err != nil || wantUnknown && (got.Advice != runs.Unknown || got.Calls[0].Advice != runs.Unknown) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestAnAgentThatDoesNotStream is killed with -9 as well. Nothing heals its inferences,
// and a turn that died with it is asked for anew; but the ledger reads the batches of
// whole answers too, so that each effect takes place as it does with streams.
func TestAnAgentThatDoesNotStream(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are killed")
	}
	agent, provider := agentBinary(t), errandProvider(t)
	side := newSidecar(t, binary(t), "memory", provider.URL())
	for _, dialect := range []string{"chat", "messages"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			of := func(t *testing.T, id string) *errand {
				return &errand{T: t, at: side, agent: agent, dialect: dialect, id: dialect + "-plain-" + id, dir: t.TempDir(), plain: true}
			}
			points := of(t, "fair").unharmed()
			for _, point := range []string{
				"before the inference", "after the inference", "after the turn was saved", "before pay is announced",
				"after pay was announced", "after the effect of pay", "after the effect of note", "after the result of job",
			} {
				t.Run(point, func(t *testing.T) {
					t.Parallel()
					n := slices.Index(points, point)
					if n < 0 {
						t.Fatalf("there is no such point in %q", points)
					}
					e := of(t, fmt.Sprint(n))
					if l := e.killedAt(n); l.status != -1 || l.points[n] != point {
						t.Fatalf("it was not killed at %q: exit %d, %q\n%s", point, l.status, l.points, l.log.String())
					}
					last, want := e.finish(), outlived(point, 1)
					if point == "after the inference" {
						// Nobody has that turn any more: what does not stream has no checkpoint
						// that could be replayed. Nothing of its batch was begun, and another
						// took its place.
						e.lost, want = 1, slices.Concat([]string{"pay indeterminate 0", "note indeterminate 0", "job indeterminate 0"}, want)
					}
					if got := e.lived(); !slices.Equal(got, want) {
						t.Errorf("%q, want %q", got, want)
					}
					if !strings.Contains(last.out.String(), "All errands are done.") {
						t.Errorf("the end was not delivered: %q", last.out.String())
					}
				})
			}
		})
	}
	t.Cleanup(func() {
		for _, x := range provider.Log() {
			if bytes.Contains(x.Body, []byte(`"stream":true`)) {
				t.Errorf("the provider was asked for a stream: %s", x.Body)
			}
		}
	})
}

// TestTheSidecarIsKilledAtEveryPoint: it is killed with -9 while the agent is at each of
// its points, and is back with the same store when the agent goes on. The agent loses
// nothing, and repeats nothing.
func TestTheSidecarIsKilledAtEveryPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are killed")
	}
	agent, path, provider := agentBinary(t), binary(t), errandProvider(t)
	for i, tc := range []struct {
		name  string
		store func(t *testing.T) string
	}{
		{"file", func(t *testing.T) string { return "file:" + t.TempDir() }},
		{"redis", redisServer},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := tc.store(t)
			side := newSidecar(t, path, store, provider.URL())
			points := (&errand{T: t, at: side, agent: agent, dialect: "chat", id: "fair", dir: t.TempDir()}).unharmed()
			for n, point := range points {
				if !tried(points, n, i) {
					continue
				}
				t.Run(fmt.Sprintf("%d %s", n, point), func(t *testing.T) {
					e := &errand{T: t, at: side, agent: agent, dialect: "chat", id: fmt.Sprintf("run-%d", n), dir: t.TempDir()}
					l := e.begin(func(_ *life, i int) {
						if i == n {
							side.kill()
							side.start()
						}
					})
					if l.wait() == 1 { // an inference was cut, and no other process was there to heal it
						l = e.finish()
					}
					got, want := e.lived(), fair
					if point == "during the inference" {
						// A turn may have been ended with the calls that were whole.
						want = slices.DeleteFunc(slices.Clone(got), func(c string) bool { return !strings.HasSuffix(c, " completed 1") })
					}
					if l.status != 0 || len(got) == 0 || !slices.Equal(got, want) {
						t.Errorf("exit %d, %q\n%s", l.status, got, l.log.String())
					}
				})
			}
		})
	}
}

// TestTwoCopiesOfAnAgent: the second claims the run while the first is at each of its
// points, and brings it to its end; only then the first goes on, and is refused. What
// was announced and not told of is the first's to do, and nobody else's.
func TestTwoCopiesOfAnAgent(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes")
	}
	agent, provider := agentBinary(t), errandProvider(t)
	side := newSidecar(t, binary(t), "memory", provider.URL())
	points := (&errand{T: t, at: side, agent: agent, dialect: "chat", id: "fair", dir: t.TempDir()}).unharmed()
	for n, point := range points {
		if !strings.Contains(point, "pay") || slices.Index(points, point) != n {
			continue
		}
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			e := &errand{T: t, at: side, agent: agent, dialect: "chat", id: fmt.Sprintf("twice-%d", n), dir: t.TempDir()}
			first := e.begin(func(_ *life, i int) {
				if i == n {
					e.finish()
				}
			})
			if first.wait() != 4 {
				t.Errorf("the first copy: exit %d at %q: %s", first.status, first.points, first.log.String())
			}
			want := outlived(point, 1)
			if point == "after pay was announced" || point == "before the effect of pay" {
				want[0] = "pay indeterminate 1" // by the first, as it had announced
			}
			if got := e.lived(); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestRedisIsDown: streams are as they were, nothing is acknowledged, and the advice is
// unknown, with the reason.
func TestRedisIsDown(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are killed")
	}
	agent, provider := agentBinary(t), errandProvider(t)
	redis := startRedis(t, "redis-server")
	side := newSidecar(t, binary(t), "redis://"+redis.addr, provider.URL())
	e := &errand{T: t, at: side, agent: agent, dialect: "chat", id: "run", dir: t.TempDir()}
	c := e.client()
	c.Tries = 1
	e.killedAt(slices.Index((&errand{T: t, at: side, agent: agent, dialect: "chat", id: "fair", dir: t.TempDir()}).unharmed(), "after pay was announced"))
	run, err := c.Claim(t.Context(), "run", runs.Declaration{Reports: true, Policies: map[string]runs.Policy{
		"pay": {Recovery: "never_replay"}, "note": {Recovery: "replay"}, "job": {Recovery: "reconnect"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := redis.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := redis.cmd.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	got, err := run.Recovery(t.Context())
	if err != nil || got.Advice != runs.Unknown || !strings.Contains(got.Reason, "store is in doubt") {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := run.Start(t.Context(), "whatever", 1); !errors.Is(err, runs.ErrUnavailable) {
		t.Fatalf("an attempt was acknowledged: %v", err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, side.base+"/v1/chat/completions", strings.NewReader(
		`{"model":"gpt-4.1","stream":true,"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"pay","parameters":{"type":"object"}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer sk-agent")
	began := time.Now()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(body), `"tool_calls"`) || !strings.Contains(string(body), "data: [DONE]") {
		t.Fatalf("%s, %v", body, err)
	}
	t.Logf("without Redis the stream took %s", time.Since(began))
}
