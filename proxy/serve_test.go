package proxy

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/upstream"
)

// proxied is a server under test in front of a provider.
type proxied struct {
	*Server
	addr  string
	notes *heard
	log   *logged
}

// heard collects notes.
type heard struct {
	mu    sync.Mutex
	notes []relay.Note
	begun []Subject
	ended []Outcome
}

func (h *heard) Begin(s Subject) Listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = append(h.begun, s)
	return h
}

func (h *heard) End(o Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = append(h.ended, o)
}

func (h *heard) Note(n relay.Note) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, n)
}

// outcome waits for the end of a stream and tells it.
func (h *heard) outcome(t *testing.T) string {
	t.Helper()
	var got string
	eventually(t, "the end of the stream", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, n := range h.notes {
			if n.Kind == relay.NoteEnd {
				got = n.Reason
			}
		}
		return got != ""
	})
	return got
}

type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// narrow has the kernel hold little of what a client does not read: who does not read is
// noticed by how long, not by how many megabytes.
type narrow struct{ *net.TCPListener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return c, c.SetWriteBuffer(64 << 10)
}

// start serves in front of p, which is both providers, as configured by change.
func start(t *testing.T, p *provider, change ...func(*Config)) *proxied {
	t.Helper()
	h, lg := &heard{}, &logged{}
	cfg := Config{Observer: h, Log: slog.New(slog.NewJSONHandler(lg, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if p != nil {
		cfg.Upstreams = []Upstream{{Name: "openai", URL: p.url()}, {Name: "anthropic", URL: p.url()}, {Name: "other", URL: p.url() + "/api/v1/"}}
	}
	client := upstream.New(upstream.Config{Proxy: upstream.NoProxy})
	cfg.Client = client
	for _, f := range change {
		f(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := s.Serve(narrow{l.(*net.TCPListener)}); err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_ = s.Shutdown(ctx)
		within(t, "Serve returns", served)
		client.Close()
	})
	return &proxied{s, l.Addr().String(), h, lg}
}

func relayed(f func(*relay.Config)) func(*Config) { return func(c *Config) { f(&c.Relay) } }
