package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serving runs the program in this process until the test ends, and returns its base URL
// and what it logs.
func serving(t *testing.T, vars []string, args ...string) (base string, said *log) {
	t.Helper()
	said = &log{changed: make(chan struct{})}
	out, in := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, environment{
			args: append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "off", "--drain", "1s"}, args...),
			vars: vars, out: in, err: said,
		})
		in.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != 0 {
			text, _ := said.far()
			t.Errorf("it exited with %d:\n%s", code, text)
		}
	})
	line, _ := bufio.NewReader(out).ReadString('\n')
	found := baseURL.FindStringSubmatch(line)
	if found == nil {
		text, _ := said.far()
		t.Fatalf("it is not ready: %q\n%s", line, text)
	}
	return found[1], said
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// written puts a file into a directory of the test's.
func writtenFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "unbroken.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// answer is what a GET gets through client.
func answer(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(res.Status[:3] + " " + string(b))
}
