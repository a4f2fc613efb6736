package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
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
	for _, dialect := range agentDialects {
		t.Run(dialect, func(t *testing.T) {
			points := (&errand{T: t, at: side, agent: agent, dialect: dialect, id: dialect + "-fair", dir: t.TempDir()}).unharmed()
			used := map[string]int{}
			for n, point := range points {
				used[point]++
				use := used[point]
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
