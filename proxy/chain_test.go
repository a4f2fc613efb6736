package proxy

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/upstream"
)

var own = upstream.Field{Name: "Authorization", Value: "Bearer own"}

// What is wrong with a route is told with its key and a reason, before anything is
// served.
func TestRoutesThatMakeNoSense(t *testing.T) {
	ups := []Upstream{
		{Name: "backup", URL: "https://backup.example", Credential: own},
		{Name: "keyless", URL: "https://other.example"},
		{Name: "twin", URL: "https://API.openai.com:443/v1"},
		{Name: "plain", URL: "http://api.openai.com:443"},
		{Name: "messages", URL: "https://m.example", Dialect: "messages", Credential: own},
		{Name: "in-header", URL: "https://h.example", Header: upstream.Header{{Name: "api-key", Value: "own"}}},
	}
	to := func(names ...string) (ts []RouteTarget) {
		for _, n := range names {
			up, model, _ := strings.Cut(n, "/")
			ts = append(ts, RouteTarget{Upstream: up, Model: model})
		}
		return ts
	}
	good := Route{Model: "gpt-*", Targets: to("openai", "backup/other", "twin", "in-header")}
	for _, tc := range []struct {
		name   string
		routes []Route
		want   string // key: part of the reason; "" is good
	}{
		{"good", []Route{good}, ""},
		{"narrow before wide", []Route{{Model: "gpt-4*", Targets: to("openai")}, {Model: "gpt-*", Targets: to("openai")}}, ""},
		{"the same model elsewhere", []Route{{Model: "*", Targets: to("openai")}, {Model: "*", Targets: to("anthropic")}}, ""},
		{"named by its own path", []Route{{Model: "*", Upstream: "keyless", Targets: to("keyless", "backup")}}, ""},
		{"the same target, another model", []Route{{Model: "*", Targets: to("openai", "openai/gpt-4o-mini")}}, ""},
		{"no model", []Route{{Targets: to("openai")}}, "routes[0].model: is empty"},
		{"no pattern", []Route{{Model: "gpt-[45]", Targets: to("openai")}}, "routes[0].model: "},
		{"behind one that takes all", []Route{{Model: "gpt-*", Targets: to("openai")}, {Model: "gpt-4*", Targets: to("openai")}}, "routes[1].model: would match nothing: routes[0]"},
		{"twice", []Route{{Model: "gpt-4o", Targets: to("openai")}, {Model: "gpt-4o", Targets: to("backup")}}, "routes[1].model: would match nothing"},
		{"no targets", []Route{{Model: "*"}}, "routes[0].targets: is empty"},
		{"unknown target", []Route{{Model: "*", Targets: to("openai", "nobody")}}, `routes[0].targets[1].upstream: no upstream is called "nobody"`},
		{"unknown name", []Route{{Model: "*", Upstream: "nobody", Targets: to("openai")}}, `routes[0].upstream: no upstream is called "nobody"`},
		{"loop", []Route{{Model: "*", Targets: to("openai", "backup", "openai")}}, "routes[0].targets[2]: is in the route already"},
		{"no credential of its own", []Route{{Model: "*", Targets: to("openai", "keyless")}}, "routes[0].targets[1].upstream: keyless is another host"},
		{"the first target too", []Route{{Model: "*", Targets: to("keyless")}}, "routes[0].targets[0].upstream: keyless is another host"},
		{"the same host in clear", []Route{{Model: "*", Targets: to("openai", "plain")}}, "routes[0].targets[1].upstream: plain is another host"},
		{"mixed dialects", []Route{{Model: "*", Targets: to("openai", "messages")}}, "routes[0].targets[1].upstream: messages speaks messages, but openai speaks "},
		{"unknown restriction", []Route{{Model: "*", Targets: []RouteTarget{{Upstream: "openai"}, {Upstream: "backup", For: "fun"}}}}, "routes[0].targets[1].for: "},
		{"restricted first target", []Route{{Model: "*", Targets: []RouteTarget{{Upstream: "openai", For: ForOverflow}}}}, "routes[0].targets[0].for: "},
		{"absurd time", []Route{{Model: "*", Targets: to("openai"), FirstToken: 48 * time.Hour}}, "routes[0].first_token: "},
		{"no time at all", []Route{{Model: "*", Targets: to("openai"), Idle: time.Nanosecond}}, "routes[0].idle: "},
		{"negative span", []Route{{Model: "*", Targets: to("openai"), FloorSpan: -1}}, "routes[0].floor_span: "},
		{"negative floor", []Route{{Model: "*", Targets: to("openai"), Floor: -1}}, "routes[0].floor: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := New(Config{Upstreams: ups, Routes: tc.routes})
			if err == nil {
				defer s.Shutdown(t.Context())
			}
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}

func TestPatterns(t *testing.T) {
	for _, tc := range []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true}, {"*", "anything/at-all", true}, {"gpt-4o", "gpt-4o", true}, {"gpt-4o", "gpt-4o-mini", false},
		{"gpt-*", "gpt-4o", true}, {"gpt-*", "gp", false}, {"*-mini", "gpt-4o-mini", true}, {"a*a", "a", false}, {"a*a", "aa", true},
		{"*/llama-*-instruct", "meta/llama-3-8b-instruct", true}, {"*/llama-*-instruct", "meta/llama-3-8b", false}, {"a*b*c", "a-c-b", false},
		{"gpt-*", "gpt-4*", true}, {"gpt-4*", "gpt-*", false},
	} {
		if got := matches(tc.pattern, tc.s); got != tc.want {
			t.Errorf("%q matches %q: %v", tc.pattern, tc.s, got)
		}
	}
}

// A caller's key, cookies and organisation go to the host that its request named, and
// to no other, in whatever place they stand.
func TestCallersKeyStaysWithTheHostItNamed(t *testing.T) {
	first := newProvider(t, func(a *asked) { a.answer(503, "{}") })
	second := newProvider(t, func(a *asked) { a.stream(); a.chunks(oc("hi"), fr("stop"), done); a.end() })
	s := start(t, first, func(c *Config) {
		c.Upstreams = append(c.Upstreams,
			Upstream{Name: "backup", URL: second.url() + "/api/v1", Credential: upstream.Field{Name: "api-key", Value: "own"}})
		c.Routes = []Route{{Model: "gpt-*", Targets: []RouteTarget{{Upstream: "openai"}, {Upstream: "backup"}}}}
	})
	res := dial(t, s.addr).post("/v1/chat/completions?key=caller-1&a=b&api%5Fkey=caller-2", chatAsk,
		"Authorization: Bearer caller-3", "x-api-key: caller-4", "api-key: caller-5", "Cookie: caller-6", "OpenAI-Organization: caller-7", "X-Custom: kept").response()
	if got, err := allOf(res); err != nil || text(t, got) != "hi" {
		t.Fatalf("%d %q %v", res.StatusCode, got, err)
	}
	a, b := first.next(), (*asked)(nil)
	for _, want := range []string{"caller-1", "caller-2", "caller-3", "caller-6", "caller-7"} {
		if !strings.Contains(a.head, want) {
			t.Errorf("%s did not reach the host that was named:\n%s", want, a.head)
		}
	}
	b = second.next()
	if strings.Contains(b.head, "caller") || b.req.Header.Get("api-key") != "own" || b.req.Header.Get("X-Custom") != "kept" {
		t.Errorf("the fallback got\n%s", b.head)
	}
	if b.path != "/api/v1/chat/completions?a=b" {
		t.Errorf("at %s", b.path)
	}
	if string(b.body) != chatAsk {
		t.Errorf("with %s", b.body)
	}
}

// A route's own clocks hold for its models only.
func TestRouteClocks(t *testing.T) {
	p := newProvider(t, func(a *asked) {
		if strings.Contains(string(a.body), "slow") {
			time.Sleep(300 * time.Millisecond) // the provider's pace
		}
		a.stream()
		a.chunks(oc("hi"), fr("stop"), done)
		a.end()
	})
	s := start(t, p, func(c *Config) {
		c.Relay.Recoveries = -1
		c.Routes = []Route{{Model: "gpt-quick*", FirstToken: 50 * time.Millisecond, Targets: []RouteTarget{{Upstream: "openai"}}}}
	})
	for model, want := range map[string]int{"gpt-quick": 200, "gpt-quick-slow": 504, "gpt-slow": 200} {
		res := dial(t, s.addr).post("/v1/chat/completions", strings.Replace(chatAsk, "gpt-x", model, 1)).response()
		if got, _ := allOf(res); res.StatusCode != want {
			t.Errorf("%s: %d %s", model, res.StatusCode, got)
		}
	}
}

// What callers can make us remember is bounded.
func TestBreakersAreBounded(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(t.Context())
	for i := range maxBreakers + 100 {
		if s.terms.Load().breakers.of("openai", fmt.Sprint(i)) == nil {
			t.Fatal("no breaker")
		}
	}
	if n := len(s.terms.Load().breakers.all); n > maxBreakers+1 {
		t.Errorf("%d breakers", n)
	}
	if s.terms.Load().breakers.of("openai", "new") != s.terms.Load().breakers.of("openai", "newer") {
		t.Error("those that are too many have one each")
	}
}

// An open breaker is told in the dialect's words, and nobody is asked.
func TestOpenBreakerWithoutAFallback(t *testing.T) {
	p := newProvider(t, func(a *asked) { a.answer(503, `{"error":{"message":"down"}}`) })
	s := start(t, p, func(c *Config) { c.Breaker = BreakerConfig{Failures: 4, Open: 45 * time.Second} })
	post := func() (*http.Response, string) {
		res := dial(t, s.addr).post("/v1/messages", messagesAsk).response()
		got, _ := allOf(res)
		return res, got
	}
	if res, got := post(); res.StatusCode != 503 || !strings.Contains(got, "down") || p.hits() != 4 {
		t.Fatalf("%d %s, %d requests", res.StatusCode, got, p.hits())
	}
	res, got := post()
	if res.StatusCode != 503 || !strings.Contains(got, `"type":"error"`) || !strings.Contains(got, "breaker_open") || p.hits() != 4 {
		t.Errorf("%d %s, %d requests", res.StatusCode, got, p.hits())
	}
	// It is told when to come back: when somebody may be asked, and not with all the
	// others at that moment; and never later than an SDK would wait.
	if after, err := strconv.Atoi(res.Header.Get("Retry-After")); err != nil || after < 40 || after > 60 || res.Header.Get("x-should-retry") != "true" {
		t.Errorf("%v", res.Header)
	}
	if !strings.Contains(s.log.String(), `"upstream":"anthropic","model":"claude-sonnet-4-5","from":"closed","to":"open","failures":4,"successes":0`) {
		t.Errorf("nobody is told that it opened:\n%s", s.log)
	}
	want := BreakerState{Upstream: "anthropic", Model: "claude-sonnet-4-5", State: "open", Failures: 4, Opened: 1}
	if b := s.Stats().Breakers; len(b) != 1 || time.Until(b[0].Until) > 45*time.Second || b[0].told() != want {
		t.Errorf("%+v", b)
	}
}

// told is a state without its times.
func (s BreakerState) told() BreakerState {
	s.Since, s.Until = time.Time{}, time.Time{}
	return s
}

// A breaker is seen, and heard of, in each of its states.
func TestBreakerIsWatched(t *testing.T) {
	var well atomic.Bool
	p := newProvider(t, func(a *asked) {
		if !well.Load() {
			a.answer(503, "{}")
			return
		}
		a.stream()
		a.chunks(oc("hi"), fr("stop"), done)
		a.end()
	})
	s := start(t, p, func(c *Config) {
		c.Breaker = BreakerConfig{Failures: 2, Open: 50 * time.Millisecond}
		c.Relay.Recoveries = 1
	})
	post := func() int {
		res := dial(t, s.addr).post("/v1/chat/completions", chatAsk).response()
		_, _ = allOf(res)
		return res.StatusCode
	}
	state := func() string {
		if b := s.Stats().Breakers; len(b) == 1 {
			return b[0].State
		}
		return "none"
	}
	if got := state(); got != "none" {
		t.Errorf("%s before anything happened", got)
	}
	post()
	eventually(t, "it is half open", func() bool { return state() == "half-open" })
	well.Store(true)
	if got := post(); got != 200 || state() != "closed" {
		t.Errorf("%d, and it is %s", got, state())
	}
	if b := s.Stats().Breakers[0].told(); b != (BreakerState{Upstream: "openai", Model: "gpt-x", State: "closed", Opened: 1}) {
		t.Errorf("%+v", b)
	}
	for _, change := range []string{`"from":"closed","to":"open"`, `"from":"open","to":"half-open"`, `"from":"half-open","to":"closed"`} {
		if strings.Count(s.log.String(), change) != 1 {
			t.Errorf("%s is not told, or not once:\n%s", change, s.log)
		}
	}
}
