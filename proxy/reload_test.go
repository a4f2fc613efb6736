package proxy

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/upstream"
)

// reload puts a changed configuration in force.
func (p *proxied) reload(t *testing.T, change func(*Config)) {
	t.Helper()
	c := p.terms.Load().cfg
	c.Client = nil
	change(&c)
	if err := p.Reload(c); err != nil {
		t.Fatal(err)
	}
}

// whole says a turn and ends it.
func whole(words string) func(*asked) {
	return func(a *asked) { a.stream(); a.chunks(oc(words), fr("stop"), done); a.end() }
}

// 200 streams live while the configuration is reloaded every few milliseconds, with the
// routes flipping between two providers: no stream notices, each whole and of one
// attempt, and each new request goes by the routes that are in force.
func TestReloadTouchesNoLiveStream(t *testing.T) {
	const streams, reloads = 200, 100
	more := make(chan struct{})
	slow := newProvider(t, func(a *asked) {
		a.stream()
		a.chunk(oc("begun "))
		<-more
		a.chunks(oc("and done"), fr("stop"), done)
		a.end()
	})
	here, there := newProvider(t, whole("here")), newProvider(t, whole("there"))
	ups := []Upstream{
		{Name: "openai", URL: slow.url()},
		{Name: "here", URL: here.url(), Credential: own},
		{Name: "there", URL: there.url(), Credential: own},
	}
	towards := func(name string) func(*Config) {
		return func(c *Config) {
			c.Upstreams = ups
			c.Routes = []Route{{Model: "flips", Upstream: "openai", Targets: []RouteTarget{{Upstream: name}}}}
		}
	}
	s := start(t, nil, towards("here"))
	got := make(chan string, streams)
	for range streams {
		res := dial(t, s.addr).post("/v1/chat/completions", chatAsk)
		go func() {
			body, err := allOf(res.response())
			if err != nil {
				body = "broken: " + body
			}
			got <- body
		}()
	}
	for range streams {
		slow.next()
	}
	for i := range reloads {
		name := []string{"here", "there"}[i%2]
		s.reload(t, towards(name))
		res := dial(t, s.addr).post("/v1/chat/completions", strings.Replace(chatAsk, "gpt-x", "flips", 1)).response()
		if body, err := allOf(res); err != nil || text(t, body) != name {
			t.Fatalf("after the reload to %s: %q, %v", name, body, err)
		}
	}
	close(more)
	for range streams {
		if body := <-got; strings.HasPrefix(body, "broken") || text(t, body) != "begun and done" {
			t.Errorf("a stream was touched: %s", body)
		}
	}
	if n := slow.hits(); n != streams {
		t.Errorf("%d attempts for %d streams", n, streams)
	}
}

// Reloads while requests come and go from everywhere: for the race detector, and nobody
// meets a half of either configuration.
func TestReloadUnderLoad(t *testing.T) {
	p := newProvider(t, whole("hi"))
	s := start(t, p)
	stop := make(chan struct{})
	var load sync.WaitGroup
	for range 8 {
		c := dial(t, s.addr)
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if body, err := allOf(c.post("/v1/chat/completions", chatAsk, "Authorization: Bearer a").response()); err != nil || text(t, body) != "hi" {
					t.Errorf("%q, %v", body, err)
					return
				}
			}
		})
	}
	for i := range 200 {
		s.reload(t, func(c *Config) {
			c.MaxPerCaller, c.MaxStreams, c.WriteStall = i%2*100, 100+i, time.Minute+time.Duration(i)
			c.Breaker.Failures, c.ScopeHeader = 5+i%3, []string{"", "X-Who"}[i%2]
			c.Upstreams[0].Header = upstream.Header{{Name: "X-N", Value: fmt.Sprint(i)}}
		})
	}
	close(stop)
	load.Wait()
	eventually(t, "everybody is counted out", func() bool {
		s.gate.mu.Lock()
		defer s.gate.mu.Unlock()
		return s.gate.live == 0 && len(s.gate.callers) == 0 && s.live.Load() == 0
	})
}

// A stream goes on, and is healed, at the upstream it began with, though that is in no
// configuration any more; requests that come find none. Its connections go when it ends.
func TestRemovedUpstreamKeepsItsLiveStreams(t *testing.T) {
	cut := make(chan struct{})
	p := newProvider(t,
		func(a *asked) { a.stream(); a.chunk(oc("one two three four five ")); <-cut; a.rst() },
		func(a *asked) {
			a.stream()
			a.chunks(oc("one two three four five six"), fr("stop"), done)
			a.end()
			a.hang()
		},
	)
	s := start(t, nil, func(c *Config) { c.Upstreams = []Upstream{{Name: "extra", URL: p.url()}} })
	live := dial(t, s.addr).post("/u/extra/v1/chat/completions", chatAsk).response()
	head := until(t, live.Body, "five ")
	p.next()
	s.reload(t, func(c *Config) { c.Upstreams = nil })
	if res := dial(t, s.addr).post("/u/extra/v1/chat/completions", chatAsk).response(); res.StatusCode != 404 {
		t.Errorf("a new request is answered with %d", res.StatusCode)
	}
	shown := func() (n int) {
		for _, u := range s.Stats().Upstreams {
			if u.Name == "extra" {
				n = u.Live
			}
		}
		return n
	}
	if n := shown(); n != 1 {
		t.Errorf("%d live streams are shown at the upstream that is leaving", n)
	}
	close(cut)
	rest, err := allOf(live)
	if got := text(t, head+rest); err != nil || got != "one two three four five six" {
		t.Errorf("%q, %v", got, err)
	}
	eventually(t, "it is shown no more", func() bool { return shown() == 0 })
	s.reload(t, func(*Config) {})
	within(t, "its connection is closed", p.next().left)
}

// Connections that idle at an upstream that is gone are closed at once; those of one that
// stays, also under another credential, are used again.
func TestReloadKeepsConnectionsOfWhatStays(t *testing.T) {
	ok := func(a *asked) { a.answer(200, "{}") }
	stays, goes := newProvider(t, ok), newProvider(t, func(a *asked) { ok(a); a.hang() })
	s := start(t, nil, func(c *Config) {
		c.Upstreams = []Upstream{{Name: "stays", URL: stays.url()}, {Name: "goes", URL: goes.url()}}
	})
	c := dial(t, s.addr)
	for _, name := range []string{"stays", "goes"} {
		if res := c.post("/u/"+name+"/v1/x", "{}").response(); res.StatusCode != 200 {
			t.Fatal(res.StatusCode)
		} else if _, err := allOf(res); err != nil {
			t.Fatal(err)
		}
	}
	s.reload(t, func(c *Config) { c.Upstreams = []Upstream{{Name: "stays", URL: stays.url(), Credential: own}} })
	within(t, "the idle connection is closed", goes.next().left)
	if res := c.post("/u/stays/v1/x", "{}").response(); res.StatusCode != 200 {
		t.Fatal(res.StatusCode)
	}
	stays.next()
	if got := stays.next().req.Header.Get("Authorization"); got != own.Value {
		t.Errorf("the new credential is not sent, but %q", got)
	}
	stays.mu.Lock()
	defer stays.mu.Unlock()
	if stays.conns != 1 {
		t.Errorf("%d connections to the upstream that stays", stays.conns)
	}
}

// What is known of a provider that stays outlives a reload; one that moved starts anew.
func TestBreakersOutliveReloads(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.answer(503, "{}") })
	s := start(t, p, func(c *Config) { c.Breaker = BreakerConfig{Failures: 2, Open: time.Hour}; c.Relay.Recoveries = 1 })
	res := dial(t, s.addr).post("/v1/chat/completions", chatAsk).response()
	_, _ = allOf(res)
	open := func() (n int) {
		for _, b := range s.Stats().Breakers {
			if b.State == "open" {
				n++
			}
		}
		return n
	}
	guard := s.terms.Load().origins["openai"].guard
	for _, tc := range []struct {
		name   string
		change func(*Config)
		open   int
	}{
		{"nothing", func(*Config) {}, 1},
		{"another upstream", func(c *Config) { c.Upstreams = append(c.Upstreams, Upstream{Name: "x", URL: "http://127.0.0.1:1"}) }, 1},
		{"its credential", func(c *Config) { c.Upstreams[0].Credential = own }, 1},
		{"its address", func(c *Config) { c.Upstreams[0].URL = "http://127.0.0.1:1" }, 0},
	} {
		s.reload(t, tc.change)
		if n := open(); n != tc.open {
			t.Errorf("%s changed: %d breakers are open, want %d", tc.name, n, tc.open)
		}
		if same := s.terms.Load().origins["openai"].guard == guard; same != (tc.open == 1) {
			t.Errorf("%s changed: the guard is the same: %v", tc.name, same)
		}
	}
	s = start(t, p, func(c *Config) { c.Breaker = BreakerConfig{Failures: 2, Open: time.Hour}; c.Relay.Recoveries = 1 })
	_, _ = allOf(dial(t, s.addr).post("/v1/chat/completions", chatAsk).response())
	s.reload(t, func(c *Config) { c.Breaker.Open = time.Minute })
	if n := open(); n != 0 {
		t.Errorf("%d breakers are open under conditions that are no more", n)
	}
}

// What a host showed is asked anew when its upstream was changed.
func TestAbilitiesOutliveReloads(t *testing.T) {
	s := start(t, newProvider(t, whole("hi")))
	a := s.abilities
	a.unstream(s.terms.Load().origins["openai"], "chat", "m")
	s.reload(t, func(c *Config) { c.MaxBody = 1 << 20 })
	if !a.streamless(s.terms.Load().origins["openai"], "chat", "m") {
		t.Error("forgotten, though nothing changed there")
	}
	s.reload(t, func(c *Config) { c.Upstreams[0].Credential = own })
	if a.streamless(s.terms.Load().origins["openai"], "chat", "m") {
		t.Error("still held against an upstream that was changed")
	}
}

// A turn keeps the clocks it began with.
func TestReloadedClocksAreForNewStreams(t *testing.T) {
	next := make(chan struct{})
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunk(oc("quiet "))
		select {
		case <-next:
			a.chunks(oc("end"), fr("stop"), done)
			a.end()
		case <-time.After(patience):
		}
	})
	s := start(t, p, func(c *Config) { c.Relay.Recoveries = -1 })
	old := dial(t, s.addr).post("/v1/chat/completions", chatAsk).response()
	head := until(t, old.Body, "quiet ")
	s.reload(t, func(c *Config) { c.Relay.Watch.Idle = 20 * time.Millisecond })
	if got, err := allOf(dial(t, s.addr).post("/v1/chat/completions", chatAsk).response()); err == nil || !strings.Contains(got, "error") {
		t.Errorf("the new stream ignores the new clock: %q, %v", got, err)
	}
	close(next)
	if rest, err := allOf(old); err != nil || text(t, head+rest) != "quiet end" {
		t.Errorf("the old stream obeys the new clock: %q, %v", head+rest, err)
	}
}

// A client that takes the place of another leaves the streams of that one alone, and
// their recoveries, too.
func TestReloadWithAnotherClient(t *testing.T) {
	cut := make(chan struct{})
	p := newProvider(t,
		func(a *asked) { a.stream(); a.chunk(oc("one two three four five ")); <-cut; a.rst() },
		whole("one two three four five six"),
	)
	s := start(t, p)
	live := dial(t, s.addr).post("/v1/chat/completions", chatAsk).response()
	head := until(t, live.Body, "five ")
	other := upstream.New(upstream.Config{Proxy: upstream.NoProxy, DialTimeout: time.Second})
	t.Cleanup(other.Close)
	s.reload(t, func(c *Config) { c.Client = other })
	if s.terms.Load().client != other {
		t.Error("the client is not in use")
	}
	close(cut)
	rest, err := allOf(live)
	if got := text(t, head+rest); err != nil || got != "one two three four five six" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestReloadRefusesWhatStartWould(t *testing.T) {
	s := start(t, newProvider(t, whole("hi")))
	before := s.terms.Load()
	for name, bad := range map[string]Config{
		"an upstream without a host":   {Upstreams: []Upstream{{Name: "x", URL: "https://"}}},
		"a route to nobody":            {Routes: []Route{{Model: "*", Targets: []RouteTarget{{Upstream: "nobody"}}}}},
		"a number that makes no sense": {MaxStreams: -1},
	} {
		if err := s.Reload(bad); err == nil || s.terms.Load() != before {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := allOf(dial(t, s.addr).post("/v1/chat/completions", chatAsk).response()); err != nil || text(t, got) != "hi" {
		t.Errorf("%q, %v", got, err)
	}
}

// New bounds let in whom they have room for, and what was counted under old ones is
// counted out under new ones.
func TestGateUnderNewBounds(t *testing.T) {
	bounds := func(most, each int) *Config {
		return &Config{MaxStreams: most, MaxPerCaller: each, MaxQueue: 10, QueueWait: patience}
	}
	nobody := func() (<-chan struct{}, func()) { return nil, func() {} }
	g := newGate(bounds(1, 0))
	if _, err := g.enter(nil, nobody); err != nil {
		t.Fatal(err)
	}
	in := make(chan bool, 2)
	for range 2 {
		go func() {
			queued, err := g.enter(nil, nobody)
			in <- err == nil && !queued // nobody left for it
		}()
	}
	eventually(t, "two wait", func() bool { return g.waiting() == 2 })
	g.limit(bounds(3, 1))
	for range 2 {
		if !<-in {
			t.Error("who was let in by new bounds took nobody's place")
		}
	}
	who := &checkpoint.Scope{1}
	g.limit(bounds(9, 1))
	if _, err := g.enter(who, nobody); err != nil {
		t.Error(err)
	}
	g.limit(bounds(9, 0))
	g.limit(bounds(2, 1))
	g.mu.Lock()
	full, live := g.room(nil), g.live
	g.mu.Unlock()
	if !errors.Is(full, errBusy) || live != 4 {
		t.Errorf("%v with %d in", full, live)
	}
	for _, w := range []*checkpoint.Scope{nil, nil, nil, who} {
		g.leave(w)
	}
	if g.live != 0 || len(g.callers) != 0 {
		t.Errorf("%d are in, %v", g.live, g.callers)
	}
}

// Who waits in line comes in when a reload makes room, and is counted as one of those in flight.
func TestReloadMakesRoom(t *testing.T) {
	more := make(chan struct{})
	p := newProvider(t, func(a *asked) { a.stream(); a.chunk(oc("hi")); <-more; a.chunks(fr("stop"), done); a.end() })
	s := start(t, p, func(c *Config) { c.MaxStreams, c.QueueWait = 1, patience })
	first := dial(t, s.addr).post("/v1/chat/completions", chatAsk)
	p.next()
	second := dial(t, s.addr).post("/v1/chat/completions", chatAsk)
	eventually(t, "it waits", func() bool { return s.gate.waiting() == 1 })
	s.reload(t, func(c *Config) { c.MaxStreams = 2 })
	p.next()
	if n := s.Stats().Live; n != 2 {
		t.Errorf("%d are in flight", n)
	}
	close(more)
	for _, c := range []*client{first, second} {
		if body, err := allOf(c.response()); err != nil || text(t, body) != "hi" {
			t.Errorf("%q, %v", body, err)
		}
	}
	eventually(t, "nobody is in flight", func() bool { return s.Stats().Live == 0 })
}
