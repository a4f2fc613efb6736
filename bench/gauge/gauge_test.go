package gauge

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/upstream"
)

// fasthttp's own goroutines sleep for up to ten seconds after their server has ended.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).workerFunc"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// plain is a peer that is nothing, under another name than direct's.
func plain() Peer {
	p := Direct()
	p.Name = "plain"
	return p
}

// healer is Unbroken in this process, so that no binary need be built. Its flags are read for
// where metrics are asked, and ignored otherwise.
func healer(t *testing.T) Peer {
	p := Peer{Name: "healer"}
	p.Start = func(_, provider string) (*running, error) {
		c := upstream.New(upstream.Config{Proxy: upstream.NoProxy})
		s, err := proxy.New(proxy.Config{Client: c, Upstreams: []proxy.Upstream{
			{Name: "openai", URL: "http://" + provider}, {Name: "anthropic", URL: "http://" + provider}}})
		if err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		return &running{addr: l.Addr().String(), also: []func(){func() {
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errors.New("the test is over"))
			defer cancel()
			_ = s.Shutdown(ctx)
			<-served
			c.Close()
		}}}, nil
	}
	p.With = func(flags ...string) Peer {
		q := p
		if len(flags) == 2 && flags[0] == "--admin" {
			q.Start = func(dir, provider string) (*running, error) {
				r, err := p.Start(dir, provider)
				if err == nil {
					r.also = append(r.also, metrics(t, flags[1]))
				}
				return r, err
			}
		}
		return q
	}
	return p
}

// metrics is an admin listener that tells what a soak asks for.
func metrics(t *testing.T, addr string) (stop func()) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("# HELP go_goroutines Number of goroutines.\ngo_goroutines 17\ngo_memstats_heap_inuse_bytes 2e+06\nprocess_open_fds 9\n"))
	})}
	done := make(chan struct{})
	go func() { _ = s.Serve(l); close(done) }()
	return func() {
		_ = s.Close()
		<-done
		http.DefaultClient.CloseIdleConnections()
	}
}

var wires = []Wire{Chat, Messages}

// within bounds waits that only a bug makes long.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func openProvider(t *testing.T) *Provider {
	t.Helper()
	p, err := NewProvider("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestTheBooksOfAProcessShowItsPeak(t *testing.T) {
	p := &process{pid: os.Getpid()}
	before, err := p.rebase()
	if err != nil {
		t.Fatal(err)
	}
	const size = 16 << 20
	held := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		held[i] = 1
	}
	peak, err := p.peak()
	if err != nil {
		t.Fatal(err)
	}
	if grown := peak - before; hasBooks && grown < size*3/4 {
		t.Errorf("%d bytes were written to, and the peak grew by %d", len(held), grown)
	}
	var nobody *process // what others started without telling its PID
	if n, err := nobody.peak(); n != 0 || err != nil {
		t.Errorf("nobody's peak is %d, %v", n, err)
	}
}
