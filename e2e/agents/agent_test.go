package agents

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// agent is a program that people give tasks to, and how it is run without them.
type agent struct {
	name    string
	program string // in node_modules
	model   string // unless a breakage names another
	answer  string // its last words, masked
	prepare func(t *testing.T, e errand) (args, env []string)
	read    func(out []byte) (transcript, error)

	alone    []breakage
	behind   []breakage // what unbroken has to hide
	hopeless breakage   // what it cannot; without a name if nothing tells the agent not to try again
}

// errand is what one run is told.
type errand struct {
	base   string // the provider's URL, without a path
	home   string // a directory of its own, empty
	model  string
	thinks bool
	idle   time.Duration // the agent's patience with a silent stream; 0 is its own
}

// run is one headless run of an agent.
type run struct {
	transcript transcript
	took       time.Duration
	late       bool // it was stopped
	exit       int
	ran        int // times the tool ran, by what it left behind
	stderr     string
}

// start gives the agent the task, in a home and a directory of its own.
func (a agent) start(t *testing.T, program string, e errand, limit time.Duration) run {
	t.Helper()
	work := t.TempDir()
	e.home = t.TempDir()
	args, env := a.prepare(t, e)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = work
	cmd.Env = environ(append([]string{"HOME=" + e.home, "TMPDIR=" + e.home, "SHELL=/bin/bash"}, env...)...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	// Its shells are its children: a run that is late ends with all of them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second

	began := time.Now()
	err := cmd.Run()
	r := run{took: time.Since(began), late: ctx.Err() != nil, stderr: complaints.String()}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whoever it left behind
	if exit := new(exec.ExitError); err != nil && !r.late && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", a.name, err)
	}
	r.exit = cmd.ProcessState.ExitCode()
	if r.transcript, err = a.read(out.Bytes()); err != nil && !r.late {
		t.Errorf("%s wrote: %v", a.name, err)
	}
	r.ran = linesOf(t, filepath.Join(work, runsLog))
	return r
}

// noticed is what an agent says on its standard error when it meets a fault.
var noticed = regexp.MustCompile(`(?i)reconnect|disconnect|retry|attempt \d+ failed`)

// write puts a file of settings into a home.
func write(t *testing.T, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func linesOf(t *testing.T, name string) int {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}
