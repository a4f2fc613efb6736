package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// node is the process that runs the JavaScript clients.
type node struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	wg    sync.WaitGroup

	mu      sync.Mutex
	last    int
	waiting map[int]chan reply
	died    error
}

// needNode skips the test, or fails it if Node is required, and else returns the
// program's path.
func needNode(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join("clients", "node_modules", ".package-lock.json"))
	}
	if err == nil {
		return path
	}
	why := fmt.Sprintf("the JavaScript clients need Node and their modules (make clients): %v", err)
	if slices.Contains(strings.FieldsFunc(os.Getenv("UNBROKEN_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' }), "node") {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// startNode runs the process until the test ends. Nothing of the environment but
// the search path reaches it: no keys, base URLs, proxies or tracing.
func startNode(t *testing.T) *node {
	t.Helper()
	cmd := exec.Command(needNode(t), "run.mjs")
	cmd.Dir = "clients"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "NO_PROXY=127.0.0.1,localhost,::1", "NO_COLOR=1"}
	var said bytes.Buffer // SDKs warn a lot
	cmd.Stderr = &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start node: %v", err)
	}
	n := &node{cmd: cmd, stdin: stdin, waiting: map[int]chan reply{}}
	n.wg.Add(1)
	go n.read(stdout)
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Kill() // a client may still hold a connection or a timer
		n.wg.Wait()
		_ = cmd.Wait()
		if t.Failed() && said.Len() > 0 {
			t.Logf("node said, at the end:\n%s", said.Bytes()[max(0, said.Len()-4096):])
		}
	})
	return n
}

// read hands replies to those who wait.
func (n *node) read(r io.Reader) {
	defer n.wg.Done()
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			n.fail(fmt.Errorf("node ended: %w", err))
			return
		}
		var got reply
		if err := json.Unmarshal(line, &got); err != nil {
			n.fail(fmt.Errorf("node said %q: %w", line, err))
			return
		}
		n.mu.Lock()
		c := n.waiting[got.ID]
		delete(n.waiting, got.ID)
		n.mu.Unlock()
		if c != nil {
			c <- got
		}
	}
}

func (n *node) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.died = err
	for id, c := range n.waiting {
		delete(n.waiting, id)
		close(c)
	}
}

// run has a client do a job.
func (n *node) run(ctx context.Context, j job) (reply, error) {
	c := make(chan reply, 1)
	n.mu.Lock()
	n.last++
	j.ID = n.last
	line, err := json.Marshal(j)
	if err == nil {
		err = n.died
	}
	if err == nil {
		n.waiting[j.ID] = c
		_, err = n.stdin.Write(append(line, '\n'))
	}
	n.mu.Unlock()
	if err != nil {
		return reply{}, err
	}
	select {
	case got, ok := <-c:
		if !ok {
			n.mu.Lock()
			defer n.mu.Unlock()
			return reply{}, n.died
		}
		return got, nil
	case <-ctx.Done():
		return reply{}, fmt.Errorf("%s did not end: %w", j.Client, ctx.Err())
	}
}
