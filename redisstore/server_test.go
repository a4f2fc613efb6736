package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is a real Redis of a test's own, on loopback, with a directory of its
// own.
type server struct {
	t    *testing.T
	port int
	dir  string
	args []string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

// needs skips without the program, or fails if UNBROKEN_REQUIRE names redis.
func needs(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if strings.Contains(os.Getenv("UNBROKEN_REQUIRE"), "redis") {
		t.Fatalf("UNBROKEN_REQUIRE asks for a real Redis, but there is no %s", program)
	}
	t.Skipf("no %s here (apt-get install redis-server redis-sentinel); UNBROKEN_REQUIRE=redis makes this a failure", program)
	return ""
}

// freePort returns a port of loopback that nobody uses now; those of a cluster
// need another one, 10000 above.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if port+10000 > 65535 {
			continue
		}
		bus, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+10000))
		if err == nil {
			_ = bus.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// startRedis starts a server that ends with the test.
func startRedis(t *testing.T, args ...string) *server {
	t.Helper()
	needs(t, "redis-server")
	s := &server{t: t, port: freePort(t), dir: t.TempDir(), args: args}
	t.Cleanup(s.kill)
	s.start()
	return s
}

// start starts the process again, on the same port and directory, and waits until
// it answers. While it was down its port was anybody's on a busy machine, a client's
// that got it for its own end too: then it cannot be bound yet, and is tried again.
func (s *server) start() {
	s.t.Helper()
	args := append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "",
		"--enable-debug-command", "yes", "--daemonize", "no", "--loglevel", "warning",
	}, s.args...)
	s.run("redis-server", args...)
	s.until("answers", func() bool {
		select {
		case <-s.done:
			s.run("redis-server", args...)
		default:
		}
		c := s.client()
		defer func() { _ = c.Close() }()
		err := c.Ping(s.t.Context()).Err()
		return err == nil || redis.HasErrorPrefix(err, "NOAUTH")
	})
}

func (s *server) run(program string, args ...string) {
	s.t.Helper()
	s.cmd = exec.Command(program, args...)
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	_ = log.Close()
	done, cmd := make(chan struct{}), s.cmd
	s.done = done
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
}

// kill ends it as kill -9 does.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(syscall.SIGCONT)
		_ = s.cmd.Process.Kill()
		<-s.done
		s.cmd = nil
	}
}

// freeze and thaw stop and continue the process.
func (s *server) freeze() { s.signal(syscall.SIGSTOP) }
func (s *server) thaw()   { s.signal(syscall.SIGCONT) }

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

func (s *server) url() string { return "redis://" + s.addr() }

// client returns a client for the test itself.
func (s *server) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.addr(), Protocol: 2, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true})
}

// do sends one command and fails the test if it is refused.
func (s *server) do(args ...any) any {
	s.t.Helper()
	c := s.client()
	defer func() { _ = c.Close() }()
	v, err := c.Do(s.t.Context(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		s.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// says reports whether a command is answered, and by that. A server may be loading
// what its master sent, and then answers nothing.
func (s *server) says(want string, args ...any) bool {
	c := s.client()
	defer func() { _ = c.Close() }()
	v, err := c.Do(s.t.Context(), args...).Result()
	return err == nil && fmt.Sprint(v) == want
}

// until waits for a condition, and fails after a time that is never needed.
func (s *server) until(what string, ok func() bool) { until(s.t, what, ok) }

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it never came about: %s", what)
		}
	}
}

// info reads a section of INFO, nothing when the server does not answer: one that
// is promoted drops its clients.
func (s *server) info(section string) string {
	c := s.client()
	defer func() { _ = c.Close() }()
	return c.Info(s.t.Context(), section).Val()
}

// infoNumber reads one number of INFO.
func (s *server) infoNumber(section, name string) int64 {
	s.t.Helper()
	for line := range strings.Lines(fmt.Sprint(s.do("INFO", section))) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return n
		}
	}
	s.t.Fatalf("INFO has no %s", name)
	return 0
}
