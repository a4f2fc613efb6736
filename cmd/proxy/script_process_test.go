package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

type processes struct{}

// process is the program in the background.
type process struct {
	cmd    *exec.Cmd
	out    string // its first line
	stderr *log
	done   chan struct{}
	err    error // once done
}

// log is a buffer that can be waited for.
type log struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{} // closed and replaced by every write
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.buf.Write(p)
}

func (l *log) far() (string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String(), l.changed
}

var (
	baseURL  = regexp.MustCompile(`ANTHROPIC_BASE_URL=(\S+)`)
	adminURL = regexp.MustCompile(`status: (\S+)/status(?:\s|$)`)
)

func start(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2)
	p := &process{cmd: exec.Command("unbroken", args[1:]...), stderr: &log{changed: make(chan struct{})}, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stderr = ts.MkAbs("."), p.stderr
	p.cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "GOCOVERDIR=" + ts.Getenv("GOCOVERDIR")}
	stdout, err := p.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(p.cmd.Start())
	ts.Defer(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	lines := bufio.NewReader(stdout)
	p.out, _ = lines.ReadString('\n') // nothing, if it ended
	go func() {
		defer close(p.done)
		_, _ = lines.WriteTo(&bytes.Buffer{}) // to its end, as Wait demands
		p.err = p.cmd.Wait()
	}()
	base := baseURL.FindStringSubmatch(p.out)
	if base == nil {
		<-p.done
		text, _ := p.stderr.far()
		ts.Fatalf("%s is not ready: %q\n%s", args[0], p.out, text)
	}
	ts.Setenv(args[0], base[1])
	if admin := adminURL.FindStringSubmatch(p.out); admin != nil {
		ts.Setenv(args[0]+"_ADMIN", admin[1])
	}
	ts.Value(processes{}).(map[string]*process)[args[0]] = p
}

func running(ts *testscript.TestScript, name string) *process {
	p := ts.Value(processes{}).(map[string]*process)[name]
	if p == nil {
		ts.Fatalf("no process %s", name)
	}
	return p
}

func logged(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2)
	p, re := running(ts, args[0]), regexp.MustCompile(args[1])
	for late := time.After(patience); ; {
		text, changed := p.stderr.far()
		if re.MatchString(text) {
			return
		}
		select {
		case <-changed:
		case <-late:
			ts.Fatalf("%s did not log %q:\n%s", args[0], args[1], text)
		}
	}
}

func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2)
	sig, ok := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP}[args[1]]
	if !ok {
		ts.Fatalf("no signal %s", args[1])
	}
	ts.Check(running(ts, args[0]).cmd.Process.Signal(sig))
}

func exited(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2)
	p := running(ts, args[0])
	select {
	case <-p.done:
	case <-time.After(patience):
		ts.Fatalf("%s does not end", args[0])
	}
	text, _ := p.stderr.far()
	fmt.Fprint(ts.Stdout(), p.out)
	fmt.Fprint(ts.Stderr(), text)
	if got := p.cmd.ProcessState.ExitCode(); strconv.Itoa(got) != args[1] {
		ts.Fatalf("%s exited with %d, not %s: %v\n%s", args[0], got, args[1], p.err, strings.TrimSpace(text))
	}
}
