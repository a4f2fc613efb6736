package agents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds everything that takes a moment.
const patience = 30 * time.Second

// build compiles the program that users run.
func build(t *testing.T) (unbroken string) {
	t.Helper()
	unbroken = filepath.Join(t.TempDir(), "unbroken")
	cmd := exec.Command("go", "build", "-o", unbroken, "../../cmd/proxy")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return unbroken
}

// nowhere is a proxy that is not there: discard, of which nothing comes back.
const nowhere = "http://127.0.0.1:9"

// environ is the environment of every process: nothing of the machine's but
// where programs are, and no way around the loopback.
func environ(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost"}, more...)
}

// process is unbroken in the background.
type process struct {
	url  string
	cmd  *exec.Cmd
	log  bytes.Buffer // its standard error; complete once done is closed
	done chan struct{}
	end  sync.Once
}

var baseURL = regexp.MustCompile(`ANTHROPIC_BASE_URL=(\S+)`)

// launch starts unbroken and waits until it says where it listens.
func launch(t *testing.T, unbroken string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(unbroken, args...), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = t.TempDir(), environ(), &p.log
	p.cmd.WaitDelay = time.Second
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	first := make(chan string, 1)
	go func() {
		defer close(p.done)
		r := bufio.NewReader(out)
		line, _ := r.ReadString('\n')
		first <- line
		_, _ = io.Copy(io.Discard, r) // to its end, as Wait demands
		_ = p.cmd.Wait()
	}()
	select {
	case line := <-first:
		if m := baseURL.FindStringSubmatch(line); m != nil {
			p.url = m[1]
			return p
		}
	case <-time.After(patience):
	}
	p.stop()
	t.Fatalf("unbroken %s is not ready:\n%s", args[0], p.log.String())
	return nil
}

// stop ends the process: by asking, and if that is not heard by force.
func (p *process) stop() {
	p.end.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(5 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	})
}

// line is what is read of a log line of serve ("stream") and of faults
// ("exchange").
type line struct {
	Msg     string   `json:"msg"`
	Level   string   `json:"level"`
	Outcome string   `json:"outcome"`
	Status  int      `json:"status"`
	Causes  []string `json:"causes"`
	Reasons []string `json:"reasons"`
	Model   string   `json:"model"`
	Path    string   `json:"path"`
	Prompt  int      `json:"prompt_bytes"`
	Fault   string   `json:"fault"`
	Applied bool     `json:"applied"`
}

// lines stops the process and reads its log.
func (p *process) lines(t *testing.T) (list []line) {
	t.Helper()
	p.stop()
	for raw := range bytes.Lines(p.log.Bytes()) {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			t.Errorf("%s wrote %q: %v", filepath.Base(p.cmd.Path), raw, err)
			continue
		}
		list = append(list, l)
	}
	return list
}

// with keeps the lines of one kind.
func with(list []line, keep func(line) bool) (out []line) {
	for _, l := range list {
		if keep(l) {
			out = append(out, l)
		}
	}
	return out
}

func (l line) String() string {
	return fmt.Sprintf("%s %s%d %v %v", l.Msg, l.Outcome, l.Status, l.Causes, l.Reasons)
}
