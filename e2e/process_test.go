package e2e

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// binary is the proxy as people run it, built once.
func binary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "unbroken-e2e-"); built.err == nil {
			built.out, built.err = exec.Command("go", "build", "-o", filepath.Join(built.dir, "unbroken"), "../cmd/proxy").CombinedOutput()
		}
	})
	if built.err != nil {
		t.Fatalf("build: %v\n%s", built.err, built.out)
	}
	return filepath.Join(built.dir, "unbroken")
}

// built is what binary made; TestMain removes it.
var built struct {
	once sync.Once
	dir  string
	out  []byte
	err  error
}

// redisServer starts a real Redis, without persistence, and returns its URL.
func redisServer(t *testing.T) string {
	t.Helper()
	return "redis://" + startRedis(t, "redis-server").addr
}

// redisProcess is a running server of Redis.
type redisProcess struct {
	addr string
	cmd  *exec.Cmd
}

// startRedis starts redis-server, or redis-sentinel with the lines of a
// configuration, and waits until it listens.
func startRedis(t *testing.T, program string, args ...string) *redisProcess {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if strings.Contains(os.Getenv("UNBROKEN_REQUIRE"), "redis") {
			t.Fatalf("UNBROKEN_REQUIRE asks for a real Redis, but there is no %s", program)
		}
		t.Skipf("no %s here (apt-get install redis-server redis-sentinel); UNBROKEN_REQUIRE=redis makes this a failure", program)
	}
	r := &redisProcess{addr: freeAddr(t)}
	_, port, _ := net.SplitHostPort(r.addr)
	dir := t.TempDir()
	if program == "redis-sentinel" {
		conf := filepath.Join(dir, "sentinel.conf")
		if err := os.WriteFile(conf, []byte("port "+port+"\nbind 127.0.0.1\ndir "+dir+"\n"+strings.Join(args, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.cmd = exec.Command(path, conf)
	} else {
		r.cmd = exec.Command(path, append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir}, args...)...)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill(); _ = r.cmd.Wait() })
	eventually(t, program+" answers", func() bool {
		c, err := net.Dial("tcp", r.addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return r
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

// eventually waits for what must come true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// replicaProcess is one running proxy.
type replicaProcess struct {
	cmd         *exec.Cmd
	base, admin string
	log         *quietLog
	once        sync.Once
}

// quietLog is what a process says, for when a test fails.
type quietLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *quietLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *quietLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// of is what was said of a run.
func (l *quietLog) of(run string) string {
	var lines []string
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, run) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func serveProcess(t *testing.T, path, store, upstream string, more ...string) *replicaProcess {
	t.Helper()
	r := &replicaProcess{log: &quietLog{}}
	r.cmd = exec.Command(path, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--store", store)
	for _, name := range []string{"openai", "anthropic", "gemini"} {
		r.cmd.Args = append(r.cmd.Args, "--upstream", name+"="+upstream)
	}
	r.cmd.Args = append(r.cmd.Args, more...)
	r.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "UNBROKEN_ACK_WAIT=2s"}
	r.cmd.Stderr = r.log
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.kill)
	line, _ := bufio.NewReader(out).ReadString('\n')
	_, after, ok := strings.Cut(line, "ANTHROPIC_BASE_URL=")
	_, admin, too := strings.Cut(line, "status: ")
	if !ok || !too {
		r.kill()
		t.Fatalf("the proxy does not serve: %q\n%s", line, r.log)
	}
	r.base, _, _ = strings.Cut(strings.TrimSpace(after), " ")
	r.admin, _, _ = strings.Cut(admin, "/status")
	return r
}

// kill is kill -9.
func (r *replicaProcess) kill() {
	r.once.Do(func() { _ = r.cmd.Process.Kill(); _ = r.cmd.Wait() })
}
