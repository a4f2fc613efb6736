package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
	"github.com/unbroken-llm/unbroken/upstream"
)

// The scenarios of an outage, over real sockets: what the provider's own log says
// was asked of it, and what the caller read. Timings are shortened where only the
// order matters; time is asserted from below only.

const longAsk = `{"model":"gpt-x","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Tell it"}]}`

// couple is a server in front of two strict providers, of which the second is the
// other's fallback, under another model name and with a credential of its own.
type couple struct {
	*proxied
	t    *testing.T
	a, b *faultinject.Server
}

func coupled(t *testing.T, first, second string, change ...func(*Config)) couple {
	t.Helper()
	provider := func(script string) *faultinject.Server {
		f, err := faultinject.New(faultinject.Config{Script: faultinject.MustScript(script), Scenario: "long", LongTokens: 60, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		f.Start()
		t.Cleanup(func() { f.Close() })
		return f
	}
	a, b := provider(first), provider(second)
	quick := func(c *Config) {
		c.Upstreams = []Upstream{
			{Name: "openai", URL: a.URL()}, {Name: "anthropic", URL: a.URL()},
			{Name: "backup", URL: b.URL(), Credential: upstream.Field{Name: "Authorization", Value: "Bearer own"}},
			{Name: "backup-anthropic", URL: b.URL(), Dialect: "messages", Credential: upstream.Field{Name: "x-api-key", Value: "own"},
				Abilities: []dialect.AbilityRule{{Ability: dialect.Ability{Manners: []turn.Manner{turn.Prefill, turn.Asked}}}}},
		}
		c.Relay.Watch.Headers, c.Relay.Watch.Idle, c.Relay.Watch.Progress, c.Relay.Grace = 400*time.Millisecond, 400*time.Millisecond, 400*time.Millisecond, 300*time.Millisecond
		c.Relay.Hold = 50 * time.Millisecond
	}
	return couple{start(t, nil, append([]func(*Config){quick}, change...)...), t, a, b}
}

// backed gives every model the fallback.
func backed(c *Config) {
	c.Routes = append(c.Routes, Route{
		Model: "gpt-*", Targets: []RouteTarget{{Upstream: "openai"}, {Upstream: "backup", Model: "other-model"}}, FirstToken: 400 * time.Millisecond,
	})
}

// answer is what a caller got.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func (c couple) post(path, body string) answer {
	c.t.Helper()
	res := dial(c.t, c.addr).post(path, body, "Authorization: Bearer caller", "x-api-key: caller", "anthropic-version: 2023-06-01").response()
	got, err := allOf(res)
	return answer{res.StatusCode, res.Header, got, err}
}

// whole asserts a complete answer, as the provider gives it without a fault.
func (c couple) whole(a answer) answer {
	c.t.Helper()
	if a.err != nil || a.status != 200 {
		c.t.Fatalf("%d, %v\n%s\nfirst:\n%s\nsecond:\n%s", a.status, a.err, a.body, exchanges(c.a), exchanges(c.b))
	}
	ref, err := faultinject.Scenario("long", faultinject.Prompt{}, faultinject.Config{LongTokens: 60})
	if err != nil {
		c.t.Fatal(err)
	}
	if got := text(c.t, a.body); got != ref.Text() {
		c.t.Errorf("the caller read\n%q\nwant\n%q\nfirst:\n%s\nsecond:\n%s", got, ref.Text(), exchanges(c.a), exchanges(c.b))
	}
	return a
}

// asked asserts how many requests each provider saw, and that no credential but the
// right one reached it.
func (c couple) asked(first, second int) {
	c.t.Helper()
	a, b := c.a.Log(), c.b.Log()
	if len(a) != first || len(b) != second {
		c.t.Errorf("asked %d and %d times, want %d and %d\nfirst:\n%s\nsecond:\n%s", len(a), len(b), first, second, exchanges(c.a), exchanges(c.b))
	}
	for _, x := range b {
		if strings.Contains(strings.Join(x.Header["Authorization"], "")+strings.Join(x.Header["X-Api-Key"], ""), "caller") {
			c.t.Errorf("the fallback saw the caller's key: %v", x.Header)
		}
	}
}

// over returns the log once every exchange has ended. A provider notes how one went
// behind its last byte, which the client may have had before.
func over(t *testing.T, f *faultinject.Server) []faultinject.Exchange {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	l, err := f.WaitLog(ctx, func(l []faultinject.Exchange) bool {
		return !slices.ContainsFunc(l, func(x faultinject.Exchange) bool { return x.Ending == "" })
	})
	if err != nil {
		t.Fatalf("%v; the log is\n%s", err, exchanges(f))
	}
	return l
}

// gap is the time between two requests of a log.
func gap(f *faultinject.Server, i, j int) time.Duration {
	l := f.Log()
	return l[j].Received.Sub(l[i].Received)
}

// models are the model names in a stream's chunks.
func models(t *testing.T, body string) map[string]bool {
	t.Helper()
	got := map[string]bool{}
	for line := range strings.SplitSeq(body, "\n") {
		var c struct{ Model string }
		if data, ok := strings.CutPrefix(line, "data: {"); ok {
			if err := json.Unmarshal([]byte("{"+data), &c); err != nil {
				t.Fatal(err)
			}
			got[c.Model] = true
		}
	}
	return got
}

func TestScenarioRateLimitWithAHint(t *testing.T) {
	c := coupled(t, "attempt 1: status 429 retry-after 1", "attempt *: pass", backed)
	c.whole(c.post("/v1/chat/completions", longAsk))
	c.asked(2, 0)
	if g := gap(c.a, 0, 1); g < time.Second {
		t.Errorf("asked again after %v, the hint was a second", g)
	}
}

func TestScenarioRateLimitForEver(t *testing.T) {
	t.Run("with a fallback", func(t *testing.T) {
		c := coupled(t, "attempt *: status 429", "attempt *: pass", backed)
		c.whole(c.post("/v1/chat/completions", longAsk))
		c.asked(2, 1)
	})
	t.Run("with a fallback that is limited too", func(t *testing.T) {
		c := coupled(t, "attempt *: status 429", "attempt *: status 429", backed)
		a := c.post("/v1/chat/completions", longAsk)
		c.asked(2, 2)
		if a.status != 429 || a.header.Get("x-should-retry") != "false" {
			t.Errorf("%d %v %s", a.status, a.header, a.body)
		}
	})
	t.Run("without", func(t *testing.T) {
		c := coupled(t, "attempt *: status 429", "attempt *: pass")
		a := c.post("/v1/chat/completions", longAsk)
		l := c.a.Log()
		soon := 0
		for _, x := range l {
			if x.Received.Sub(l[0].Received) < 3*time.Second {
				soon++
			}
		}
		if soon > 4 || len(l) > 6 || len(l) < 2 {
			t.Errorf("%d requests, %d of them in the first 3 s", len(l), soon)
		}
		if a.status != 429 || a.header.Get("x-should-retry") != "false" || !strings.Contains(a.body, "rate") {
			t.Errorf("%d %v %s", a.status, a.header, a.body)
		}
	})
}

func TestScenarioOneFault(t *testing.T) {
	for name, script := range map[string]string{
		"500 once":                         "attempt 1: status 500",
		"reset before the headers":         "attempt 1: rst before headers",
		"silence after 20 tokens":          "attempt 1: stall after text 20",
		"malformed event in the middle":    "attempt 1: garbage after text 20; pace 5ms",
		"cut after 40 of 60 tokens":        "attempt 1: rst after text 40",
		"cut twice, with content between":  "attempt 1: rst after text 20; attempt 2: rst after text 10",
		"overloaded, inside of the stream": "attempt 1: error overloaded after text 20",
	} {
		t.Run(name, func(t *testing.T) {
			script = strings.ReplaceAll(script, "; attempt", "\nattempt")
			c := coupled(t, script, "attempt *: pass", backed)
			c.whole(c.post("/v1/chat/completions", longAsk))
			c.asked(2+strings.Count(script, "\n"), 0) // a target that brings something is not left
		})
	}
}

func TestScenarioOutage(t *testing.T) {
	t.Run("with a fallback", func(t *testing.T) {
		c := coupled(t, "attempt *: status 503", "attempt *: pass", backed)
		a := c.whole(c.post("/v1/chat/completions", longAsk))
		c.asked(2, 1)
		if m := models(t, a.body); len(m) != 1 || !m["other-model"] {
			t.Errorf("the caller is told it was %v", m)
		}
		if x := c.b.Log()[0]; x.Model != "other-model" || x.Header.Get("Authorization") != "Bearer own" {
			t.Errorf("the fallback was asked for %s as %v", x.Model, x.Header)
		}
	})
	t.Run("without", func(t *testing.T) {
		c := coupled(t, "attempt *: status 503", "attempt *: pass")
		a := c.post("/v1/chat/completions", longAsk)
		c.asked(4, 0)
		if a.status != 503 || a.header.Get("x-should-retry") != "false" {
			t.Errorf("%d %v %s", a.status, a.header, a.body)
		}
	})
	t.Run("with a fallback whose key is wrong", func(t *testing.T) {
		c := coupled(t, "attempt *: status 503", "attempt *: status 401", backed)
		a := c.post("/v1/chat/completions", longAsk)
		c.asked(2, 1)
		if a.status != 503 || strings.Contains(a.body, "key") {
			t.Errorf("the original error is masked: %d %s", a.status, a.body)
		}
	})
}

func TestScenarioSilentRoute(t *testing.T) {
	t.Run("accepted and never answered", func(t *testing.T) {
		c := coupled(t, "attempt *: stall before headers", "attempt *: pass", backed)
		c.whole(c.post("/v1/chat/completions", longAsk))
		c.asked(1, 1)
	})
	t.Run("headers at once, and no first token", func(t *testing.T) {
		c := coupled(t, "attempt *: stall at start", "attempt *: pass", backed)
		a := c.whole(c.post("/v1/chat/completions", longAsk))
		c.asked(1, 1)
		if m := models(t, a.body); len(m) != 1 || !m["other-model"] {
			t.Errorf("the caller is told it was %v", m)
		}
		if x := over(t, c.a)[0]; x.Ending != faultinject.ClientClosed || x.Status != 200 {
			t.Errorf("the silent one answered %d and ended as %q", x.Status, x.Ending)
		}
		// The limit is 400 ms of the proxy's clock; a busy provider notes the first
		// request late.
		if g := c.b.Log()[0].Received.Sub(c.a.Log()[0].Received); g < 200*time.Millisecond {
			t.Errorf("given up after %v", g)
		}
	})
}

func TestScenarioFallbackInTheMiddle(t *testing.T) {
	c := coupled(t, "attempt 1: rst after text 40\nattempt 2+: status 503", "attempt *: pass", backed)
	a := c.whole(c.post("/v1/chat/completions", longAsk))
	c.asked(3, 1)
	if m := models(t, a.body); len(m) != 1 || !m["gpt-x"] {
		t.Errorf("the message changed its identity: %v", m)
	}
	if x := c.b.Log()[0]; x.Model != "other-model" || x.Continuation.Manner == "" {
		t.Errorf("the fallback was asked for %s, %+v", x.Model, x.Continuation)
	}
}

func TestScenarioNoMarker(t *testing.T) {
	c := coupled(t, "attempt *: variant no-done", "attempt *: pass", backed)
	a := c.whole(c.post("/v1/chat/completions", longAsk))
	c.asked(1, 0)
	if !strings.HasSuffix(a.body, done) || strings.Count(a.body, `"total_tokens"`) != 1 {
		t.Errorf("%s", a.body)
	}
}

// A refusal that no retry mends is relayed as it came, and nobody else is asked,
// unless the route has a target for just that.
func TestScenarioRefusals(t *testing.T) {
	long := `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`
	filter := `{"error":{"message":"The response was filtered","type":null,"param":"prompt","code":"content_filter","status":400}}`
	good := func(a *asked) { a.stream(); a.chunks(oc("hi"), fr("stop"), done); a.end() }
	refusing := func(body string) *provider { return newProvider(t, func(a *asked) { a.answer(400, body) }) }
	for _, tc := range []struct {
		name, body, kept string
		large            int
	}{
		{"too long, and a larger target", long, ForOverflow, 1},
		{"too long, and another target", long, "", 0},
		{"filtered, and a larger target", filter, ForOverflow, 0},
		{"filtered, and another target", filter, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, large := refusing(tc.body), newProvider(t, good)
			s := start(t, p, func(c *Config) {
				c.Upstreams = append(c.Upstreams, Upstream{Name: "large", URL: large.url(), Credential: upstream.Field{Name: "Authorization", Value: "own"}})
				c.Routes = []Route{{Model: "gpt-*", Targets: []RouteTarget{{Upstream: "openai"}, {Upstream: "large", Model: "gpt-large", For: tc.kept}}}}
			})
			res := dial(t, s.addr).post("/v1/chat/completions", chatAsk, "Authorization: Bearer caller").response()
			got, _ := allOf(res)
			switch {
			case p.hits() != 1 || large.hits() != tc.large:
				t.Errorf("asked %d and %d times, want 1 and %d", p.hits(), large.hits(), tc.large)
			case tc.large == 1 && (res.StatusCode != 200 || text(t, got) != "hi"):
				t.Errorf("%d %s", res.StatusCode, got)
			case tc.large == 0 && (res.StatusCode != 400 || got != tc.body):
				t.Errorf("%d %s", res.StatusCode, got)
			}
		})
	}
}

// The caller never sees the fallback's 400 about prefill.
func TestScenarioFallbackWithoutPrefill(t *testing.T) {
	c := coupled(t, "attempt 1: rst after text 40\nattempt 2+: status 529", "attempt *: pass", func(c *Config) {
		c.Routes = []Route{{Model: "claude-*", Targets: []RouteTarget{{Upstream: "anthropic"}, {Upstream: "backup-anthropic", Model: "claude-opus-4-6"}}}}
	})
	ask := strings.Replace(messagesAsk, `"max_tokens":100`, `"max_tokens":1000`, 1)
	c.whole(c.post("/v1/messages", ask))
	c.asked(3, 2)
	if l := over(t, c.b); l[0].Status != 400 || l[0].Refusal == nil || l[1].Status != 200 {
		t.Errorf("the fallback answered\n%s", exchanges(c.b))
	}
	// Learned: the next turn asks at once as it can.
	c.whole(c.post("/v1/messages", strings.Replace(ask, "Say it", "Say it again", 1)))
	eventually(t, "the fallback is asked as it can be, at once", func() bool {
		l := c.b.Log()
		return len(l) == 3 && l[2].Status == 200
	})
}

// Fail-over accounting: one answer, the fallback's own numbers, and nothing of what
// failed on the way.
func TestScenarioAccounting(t *testing.T) {
	c := coupled(t, "attempt *: status 503", "attempt *: pass", backed)
	a := c.whole(c.post("/v1/chat/completions", longAsk))
	ref := coupled(t, "attempt *: pass", "attempt *: pass")
	want := ref.whole(ref.post("/v1/chat/completions", strings.Replace(longAsk, "gpt-x", "other-model", 1)))
	usage := func(body string) string {
		at := strings.Index(body, `"usage":{`)
		return body[at : at+strings.Index(body[at:], "}")]
	}
	if usage(a.body) != usage(want.body) {
		t.Errorf("usage %s, the fallback said %s", usage(a.body), usage(want.body))
	}
	eventually(t, "the stream is counted", func() bool { return c.Stats().Ended == Ended{Completed: 1} })
	for _, tc := range []struct {
		name, script, path string
		want               Ended
	}{
		{"provider", "attempt *: status 503", "/v1/chat/completions", Ended{Provider: 1}},
		{"request", "attempt *: status 403", "/v1/chat/completions", Ended{Request: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := coupled(t, tc.script, "attempt *: pass", relayed(func(r *relay.Config) { r.Recoveries = -1 }))
			c.post(tc.path, longAsk)
			eventually(t, "it is counted", func() bool { return c.Stats().Ended == tc.want })
		})
	}
	t.Run("client", func(t *testing.T) {
		c := coupled(t, "attempt *: stall after text 20", "attempt *: pass", relayed(func(r *relay.Config) { r.Watch.Idle, r.Watch.Progress = -1, -1 }))
		k := dial(t, c.addr).post("/v1/chat/completions", longAsk, "Authorization: Bearer caller")
		until(t, k.response().Body, `"Sen`)
		k.c.Close()
		eventually(t, "it is counted", func() bool { return c.Stats().Ended == Ended{Client: 1} })
	})
}

// A primary is down for a while, and twenty requests come meanwhile, one after the
// other: all are served by the fallback, what the primary sees is two tries each until
// the breaker opens and a probe now and then, and it is back before as many requests
// have come as come in thirty seconds of life.
func TestScenarioPrimaryGoesAndComesBack(t *testing.T) {
	// 60 s of outage, a request every 4 s, 15 s of rest, back within 30 s: at a 40th.
	const every, rest, back = 100 * time.Millisecond, 375 * time.Millisecond, 750 * time.Millisecond
	var down atomic.Bool
	first := newProvider(t, func(a *asked) {
		if down.Load() {
			a.answer(503, `{"error":{"message":"down"}}`)
			return
		}
		a.stream()
		a.chunks(oc("first"), fr("stop"), done)
		a.end()
	})
	second := newProvider(t, func(a *asked) { a.stream(); a.chunks(oc("second"), fr("stop"), done); a.end() })
	s := start(t, first, func(c *Config) {
		c.Breaker = BreakerConfig{Failures: 5, Window: 5 * time.Second, Open: rest}
		c.Upstreams = append(c.Upstreams, Upstream{Name: "backup", URL: second.url(), Credential: upstream.Field{Name: "Authorization", Value: "own"}})
		c.Routes = []Route{{Model: "gpt-*", Targets: []RouteTarget{{Upstream: "openai"}, {Upstream: "backup"}}}}
	})
	ask := func() string {
		t.Helper()
		res := dial(t, s.addr).post("/v1/chat/completions", chatAsk).response()
		got, err := allOf(res)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%d %v %s", res.StatusCode, err, got)
		}
		return text(t, got)
	}
	if got := ask(); got != "first" {
		t.Fatal(got)
	}
	down.Store(true)
	began, before := time.Now(), first.hits()
	for range 20 {
		if got := ask(); got != "second" {
			t.Errorf("served by %s while the first was down", got)
		}
		time.Sleep(every) // the callers' pace
	}
	// Five failures in fives of a hundred open it; a try that was under way then
	// may still land. Afterwards there is one probe per rest.
	probes := int(time.Since(began)/rest) + 1
	if n := first.hits() - before; n > 6+probes {
		t.Errorf("the primary was asked %d times while it was down, want at most %d", n, 6+probes)
	}
	if n := second.hits(); n != 20 {
		t.Errorf("the fallback was asked %d times, want 20", n)
	}
	down.Store(false)
	tries := 1
	for ; ask() != "first"; tries++ {
		time.Sleep(every)
	}
	if most := int(back/every) + 1; tries > most {
		t.Errorf("back on the primary with request %d, want %d at most", tries, most)
	}
	if got := ask(); got != "first" {
		t.Errorf("and stays there: %s", got)
	}
}
