package agents

import (
	"net"
	"net/http"
	"testing"

	"github.com/unbroken-llm/unbroken/runs"
)

// TestRunsOfAgents: agents that know nothing of the ledger have a run in it, with the
// steps they took and the batch they ran, though their streams break. Whatever else
// they ask the model (titles, topics) is no part of it.
func TestRunsOfAgents(t *testing.T) {
	for _, tc := range []struct {
		agent
		key string // its prepare's
	}{
		{claude, "sk-ant-none"},
		{codex, "sk-none"},
		{codexCode, "sk-none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := house{agent: tc.agent, program: require(t, tc.agent), unbroken: build(t)}
			b := breakage{name: "cut once in the text", script: inText, hits: 2}.withDefaults(tc.agent)
			provider := newProvider(t, b.scenario(), b.seam)
			faults := launch(t, h.unbroken, b.faults(provider.URL())...)
			admin := freeAddr(t)
			front := launch(t, h.unbroken, append(b.serve(faults.url), "--admin", admin, "--ack-wait", "2s")...)
			r := h.start(t, h.program, errand{base: front.url, model: b.model}, b.limit)
			if r.exit != 0 || r.ran != 1 {
				t.Fatalf("exit %d, the tool ran %d times\n%s", r.exit, r.ran, r.stderr)
			}
			c := &runs.Client{URL: "http://" + admin, Header: http.Header{"Authorization": {"Bearer " + tc.key}}}
			list, err := c.List(t.Context(), 50)
			if err != nil || len(list) != 1 {
				t.Fatalf("%d runs: %+v, %v", len(list), list, err)
			}
			run, err := c.Get(t.Context(), list[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			if run.State != "ended" || run.Cause != "completed" || len(run.Steps) != 2 || len(run.Flags) != 0 {
				t.Fatalf("%+v", run)
			}
			first := run.Steps[0]
			if !first.Finalized || len(first.Calls) != 1 || first.Calls[0].State != "completed" || first.Calls[0].Result == nil || !first.Calls[0].Result.Wire || len(run.Steps[1].Calls) != 0 {
				t.Fatalf("%+v", run.Steps)
			}
			t.Logf("%s: %s called %s", run.ID, run.Model, first.Calls[0].Name)
		})
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
