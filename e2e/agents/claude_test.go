package agents

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// run is one headless run of Claude Code.
type run struct {
	transcript transcript
	took       time.Duration
	late       bool // it was stopped
	exit       int
	ran        int // times the tool ran, by what it left behind
	stderr     string
}

// runClaude gives Claude Code the task, in a home and a directory of its own. Its
// settings are what its documentation offers for a machine without the internet;
// Bash is allowed by name, since root may not skip permissions.
func runClaude(t *testing.T, claude, base, model string, limit time.Duration) run {
	t.Helper()
	home, work := t.TempDir(), t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, claude, "-p", task, "--model", model, "--allowedTools", "Bash",
		"--output-format", "stream-json", "--include-partial-messages", "--verbose")
	cmd.Dir = work
	cmd.Env = environ(
		"HOME="+home, "CLAUDE_CONFIG_DIR="+filepath.Join(home, "claude"), "TMPDIR="+home, "SHELL=/bin/bash",
		"ANTHROPIC_BASE_URL="+base, "ANTHROPIC_API_KEY=sk-ant-none",
		"DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	)
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
		t.Fatalf("claude: %v", err)
	}
	r.exit = cmd.ProcessState.ExitCode()
	if r.transcript, err = readTranscript(out.Bytes()); err != nil && !r.late {
		t.Errorf("claude wrote: %v", err)
	}
	r.ran = linesOf(t, filepath.Join(work, runsLog))
	return r
}

func linesOf(t *testing.T, name string) int {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}
