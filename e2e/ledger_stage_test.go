package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/runs"
)

// sidecar is the proxy as a process, which comes back at the same addresses.
type sidecar struct {
	t                     *testing.T
	path, store, upstream string
	*replicaProcess       // the present one
}

func newSidecar(t *testing.T, path, store, upstream string) *sidecar {
	t.Helper()
	s := &sidecar{t: t, path: path, store: store, upstream: upstream}
	s.start()
	return s
}

// start serves, and returns when it does.
func (s *sidecar) start() {
	more := []string{"--scope-key", "a key that outlives processes"}
	if old := s.replicaProcess; old != nil {
		more = append(more, "--listen", strings.TrimPrefix(old.base, "http://"), "--admin", strings.TrimPrefix(old.admin, "http://"))
	}
	s.replicaProcess = serveProcess(s.t, s.path, s.store, s.upstream, more...)
}

// agentBinary is the example, as its reader builds it, built once.
func agentBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(binary(t)), "agent")
	example.once.Do(func() {
		example.out, example.err = exec.Command("go", "build", "-o", path, "../examples/agent").CombinedOutput()
	})
	if example.err != nil {
		t.Fatalf("build: %v\n%s", example.err, example.out)
	}
	return path
}

// example is what agentBinary made.
var example struct {
	once sync.Once
	out  []byte
	err  error
}

// errandProvider asks for each of the example's tools, twice.
func errandProvider(t *testing.T) *faultinject.Server {
	t.Helper()
	s, err := faultinject.New(faultinject.Config{Scenario: "errands", Calls: []faultinject.ToolCall{
		{Name: "pay", Args: `{"what":"5"}`}, {Name: "note", Args: `{"what":"paid"}`}, {Name: "job", Args: `{"what":"ship"}`},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// errand is a run that the example agent is sent on, over as many lives as it takes.
type errand struct {
	*testing.T
	at      *sidecar
	agent   string
	dialect string
	id, dir string
	silent  bool
	plain   bool // it asks for no streams
	lost    int  // turns of it that died with a process and were asked for anew
}

// credentials are the example's, per dialect: the ledger knows callers by them.
func (e *errand) client() *runs.Client {
	c := &runs.Client{URL: e.at.admin, Header: http.Header{}}
	if e.dialect == "messages" {
		c.Header.Set("X-Api-Key", "sk-agent")
	} else {
		c.Header.Set("Authorization", "Bearer sk-agent")
	}
	return c
}

// life is one process of the agent.
type life struct {
	cmd    *exec.Cmd
	points []string
	out    bytes.Buffer
	log    bytes.Buffer
	dead   chan struct{}
	status int // once dead; -1: killed
}

// begin starts a process. on is told where it is, counted from 0, while it waits there.
func (e *errand) begin(on func(l *life, n int)) *life {
	e.Helper()
	l := &life{dead: make(chan struct{})}
	var mu sync.Mutex
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		point, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		l.points = append(l.points, string(point))
		if on != nil {
			on(l, len(l.points)-1)
		}
	}))
	args := []string{"-sidecar", e.at.base, "-admin", e.at.admin, "-dialect", e.dialect, "-run", e.id, "-dir", e.dir, "-task", "Run the errands of " + e.id + "."}
	if e.dialect == "messages" {
		args = append(args, "-model", "claude-sonnet-4-5")
	}
	if e.silent {
		args = append(args, "-silent")
	}
	if e.plain {
		args = append(args, "-plain")
	}
	l.cmd = exec.Command(e.agent, args...)
	l.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "AGENT_KEY=sk-agent", "AGENT_HOOK=" + hook.URL}
	l.cmd.Stdout, l.cmd.Stderr = &l.out, &l.log
	if err := l.cmd.Start(); err != nil {
		e.Fatal(err)
	}
	go func() {
		_ = l.cmd.Wait()
		l.status = l.cmd.ProcessState.ExitCode()
		close(l.dead)
	}()
	e.Cleanup(func() { l.kill(); <-l.dead; hook.Close() })
	return l
}

func (l *life) kill() { _ = l.cmd.Process.Kill() }

// wait returns the exit status.
func (l *life) wait() int {
	<-l.dead
	return l.status
}

// killedAt is a life that ends with kill -9 at its nth point, if it gets there.
func (e *errand) killedAt(n int) *life {
	e.Helper()
	l := e.begin(func(l *life, i int) {
		if i == n {
			l.kill() // the hook is not answered to a process that could go on
			<-l.dead
		}
	})
	l.wait()
	return l
}

// finish restarts the agent until its run has ended.
func (e *errand) finish() *life {
	e.Helper()
	for range 5 {
		l := e.begin(nil)
		switch l.wait() {
		case 0:
			return l
		case 1:
			e.Logf("it starts again: %s", l.log.String())
		default:
			e.Fatalf("exit %d at %q: %s", l.status, l.points, l.log.String())
		}
	}
	e.Fatal("it does not come to an end")
	return nil
}

// effects counts what the tools did, per operation.
func (e *errand) effects() map[string]int {
	e.Helper()
	n := map[string]int{}
	for _, file := range []string{"payments.log", "notes.log", "jobs.log"} {
		b, err := os.ReadFile(filepath.Join(e.dir, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			e.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			op, _, _ := strings.Cut(line, " ")
			n[op]++
		}
	}
	return n
}

func (e *errand) get() *runs.Run {
	e.Helper()
	r, err := e.client().Get(context.Background(), e.id)
	if err != nil {
		e.Fatal(err)
	}
	return r
}

// lived is what became of a run: tool, state of its call, and effects, in order.
func (e *errand) lived() (calls []string) {
	e.Helper()
	r, effects := e.get(), e.effects()
	if r.State != "ended" || r.Cause != "completed" || len(r.Steps) != 3+e.lost || len(r.Flags) != 0 {
		e.Errorf("the run is %s %s with %d steps, flags %q", r.State, r.Cause, len(r.Steps), r.Flags)
	}
	for _, s := range r.Steps {
		for _, c := range s.Calls {
			calls = append(calls, fmt.Sprintf("%s %s %d", c.Name, c.State, effects[c.Op]))
			delete(effects, c.Op)
		}
	}
	for op, n := range effects {
		e.Errorf("operation %s is nobody's, and had its effect %d times", op, n)
	}
	return calls
}
