package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/upstream"
)

// stage is what a demo plays on: a provider, and the proxy in front of it.
type stage struct {
	provider *faultinject.Server
	client   *upstream.Client
	proxy    *proxy.Server
	front    net.Listener
	served   chan error
	notes    *notebook
}

func newStage(pace time.Duration) (*stage, error) {
	provider, err := faultinject.New(faultinject.Config{Pace: pace})
	if err != nil {
		return nil, err
	}
	provider.Start()
	st := &stage{provider: provider, notes: newNotebook(), served: make(chan error, 1),
		client: upstream.New(upstream.Config{Proxy: upstream.NoProxy})}
	st.proxy, err = proxy.New(proxy.Config{
		Upstreams: []proxy.Upstream{{Name: "openai", URL: provider.URL()}, {Name: "anthropic", URL: provider.URL()}},
		Client:    st.client, Observer: st.notes,
	})
	if err == nil {
		st.front, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, errors.Join(err, provider.Close())
	}
	go func() { st.served <- st.proxy.Serve(st.front) }()
	return st, nil
}

// direct and through are the base URLs of the two ways to the provider.
func (st *stage) direct() string  { return st.provider.URL() }
func (st *stage) through() string { return "http://" + st.front.Addr().String() }

func (st *stage) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := st.proxy.Shutdown(ctx)
	_ = st.front.Close() // Shutdown closes it, unless it came before Serve
	err = errors.Join(err, <-st.served)
	st.client.Close()
	return errors.Join(err, st.provider.Close())
}

// notebook is an observer that keeps what it hears. A demo has one stream at a
// time, so it need not tell streams apart.
type notebook struct {
	mu    sync.Mutex
	notes []relay.Note
	heard func(far []relay.Note) // told of each note, before anybody is told of the end
	ended chan struct{}          // closed by the note of the stream's end
}

func newNotebook() *notebook {
	return &notebook{heard: unheard, ended: make(chan struct{})}
}

func unheard([]relay.Note) {}

// Begin implements proxy.Observer.
func (b *notebook) Begin(proxy.Subject) proxy.Listener { return b }

// End implements proxy.Listener.
func (b *notebook) End(proxy.Outcome) {}

// Note implements proxy.Listener.
func (b *notebook) Note(n relay.Note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, n)
	b.heard(b.notes)
	if n.Kind == relay.NoteEnd {
		close(b.ended)
	}
}

// begin forgets the stream before, and tells of the next one.
func (b *notebook) begin(heard func(far []relay.Note)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes, b.heard, b.ended = nil, heard, make(chan struct{})
}

// whole returns all notes of a stream, once it has ended.
func (b *notebook) whole(ctx context.Context) ([]relay.Note, error) {
	b.mu.Lock()
	ended := b.ended
	b.mu.Unlock()
	select {
	case <-ended:
		b.mu.Lock()
		defer b.mu.Unlock()
		return append([]relay.Note(nil), b.notes...), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
