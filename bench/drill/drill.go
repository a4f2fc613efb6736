package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/bench/mains"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/upstream"
)

// config is a drill's size.
type config struct {
	Agents int
	Turn   time.Duration // from request to end, when all is well
	Think  time.Duration // of it, before the first token
	Tokens int
	// Well is how long all is well first; the second half of it is the measure of
	// health. Away is the outage, After what is watched of the time behind it.
	Well, Away, After time.Duration
	Breaker           proxy.BreakerConfig
	Sample            time.Duration // how often the proxy is asked for its numbers
}

// fullSize is the drill of the report: 300 live streams, thirty seconds of outage, and
// everything else as it comes out of the box.
var fullSize = config{
	Agents: 300, Turn: 30 * time.Second, Think: 500 * time.Millisecond, Tokens: 200,
	Well: 75 * time.Second, Away: 30 * time.Second, After: 75 * time.Second,
	Sample: 100 * time.Millisecond,
}

// sample is what the proxy says at a moment.
type sample struct {
	at                        time.Time
	live, recovering, waiting int
	open                      bool // the breaker
}

// patience is how long turns may take to end when nobody begins one any more.
const patience = 3 * time.Minute

// drill plays it. Agents begin spread over one turn, so that they are everywhere in
// theirs when the provider dies.
func drill(ctx context.Context, c config) (*result, error) {
	provider, err := faultinject.New(faultinject.Config{
		Scenario: "long", LongTokens: c.Tokens, Pace: (c.Turn - c.Think) / time.Duration(c.Tokens),
		Script: faultinject.MustScript("attempt *: stall " + c.Think.String() + " at start"),
	})
	if err != nil {
		return nil, err
	}
	provider.Start()
	defer provider.Close()
	ref, err := faultinject.Scenario("long", faultinject.Prompt{}, faultinject.Config{LongTokens: c.Tokens})
	if err != nil {
		return nil, err
	}
	power, err := mains.New(strings.TrimPrefix(provider.URL(), "http://"))
	if err != nil {
		return nil, err
	}
	defer power.Close()
	front, err := open(c, "http://"+power.Addr())
	if err != nil {
		return nil, err
	}
	defer front.close()

	r := &result{config: c, began: time.Now()}
	begin, stop := context.WithCancel(ctx)
	defer stop()
	ends := make(chan turnEnd, c.Agents)
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		for e := range ends {
			r.turns = append(r.turns, e)
		}
	}()
	pool := &http.Transport{MaxIdleConnsPerHost: c.Agents, DisableCompression: true}
	defer pool.CloseIdleConnections()
	var agents, watch sync.WaitGroup
	for n := range c.Agents {
		a := &agent{n: n, base: front.base, want: ref.Text(), think: c.Think, http: &http.Client{Transport: pool}}
		agents.Go(func() {
			nap(begin, c.Turn*time.Duration(n)/time.Duration(c.Agents))
			a.run(begin, ctx, ends)
		})
	}
	watched, unwatch := context.WithCancel(ctx)
	watch.Go(func() { r.samples = front.watch(watched, c.Sample) })

	nap(ctx, c.Well)
	r.died = time.Now()
	power.Cut()
	nap(ctx, c.Away)
	r.returned = time.Now()
	power.Restore()
	nap(ctx, c.After)
	r.ended = time.Now()
	stop()
	err = within(ctx, patience, &agents)
	unwatch()
	watch.Wait()
	close(ends)
	<-collected
	if err != nil {
		return nil, err
	}
	r.take(provider.Log(), power.Vain())
	return r, ctx.Err()
}

func within(ctx context.Context, limit time.Duration, wg *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
		return ctx.Err()
	case <-t.C:
		return fmt.Errorf("turns are still open after %v", limit)
	}
}

// front is the proxy.
type front struct {
	srv    *proxy.Server
	client *upstream.Client
	base   string
	served chan error
}

func open(c config, url string) (*front, error) {
	f := &front{client: upstream.New(upstream.Config{Proxy: upstream.NoProxy}), served: make(chan error, 1)}
	var err error
	f.srv, err = proxy.New(proxy.Config{Upstreams: []proxy.Upstream{{Name: "openai", URL: url}}, Client: f.client, Breaker: c.Breaker})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f.base = "http://" + l.Addr().String()
	go func() { f.served <- f.srv.Serve(l) }()
	return f, nil
}

func (f *front) close() {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errors.New("the drill is over"))
	defer cancel()
	_ = f.srv.Shutdown(ctx)
	<-f.served
	f.client.Close()
}

// watch samples the proxy's numbers until ctx ends.
func (f *front) watch(ctx context.Context, every time.Duration) (all []sample) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return all
		case at := <-t.C:
			s, n := sample{at: at}, f.srv.Stats()
			for _, u := range n.Upstreams {
				s.live, s.recovering, s.waiting = s.live+u.Live, s.recovering+u.Recoveries, s.waiting+u.Waiting
			}
			for _, b := range n.Breakers {
				s.open = s.open || b.State != "closed"
			}
			all = append(all, s)
		}
	}
}
