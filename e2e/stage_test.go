package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
	"github.com/unbroken-llm/unbroken/upstream"
)

// patience bounds what must happen; only a bug uses it up.
const patience = 90 * time.Second

// stage is a provider, perhaps with a proxy in front of it.
type stage struct {
	provider *faultinject.Server
	base     string // what clients are pointed at
}

// newProvider is the provider itself.
func newProvider(t testing.TB, host faultinject.Host) *stage {
	t.Helper()
	s, err := faultinject.New(faultinject.Config{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Close() })
	return &stage{s, s.URL()}
}

// via says how a proxy reaches its provider, and how patient it is.
type via uint8

const (
	overHTTP1 via = iota
	overHTTP2
	prefilling // HTTP/1.1, and Chat is served by vLLM, which continues a partial turn
	hasty      // HTTP/1.1, and silence is an interruption before two seconds are over
)

// trailing are Gemini's models that take a trailing model turn, at any host; the
// proxy's own table knows them at Google's.
var trailing = []dialect.AbilityRule{{Models: []string{"*gemini-3-*"}, Ability: dialect.Ability{Manners: []turn.Manner{turn.Prefill, turn.Asked}}}}

// newStage is a provider behind a proxy, for one case: what fails for good opens its
// breaker, and the next case would meet that instead of its fault.
func newStage(t testing.TB, v via) *stage {
	t.Helper()
	host := faultinject.OpenAI
	var engine []dialect.AbilityRule
	if v == prefilling {
		rules, ok := dialect.EngineRules("vllm")
		if !ok {
			t.Fatal("vLLM is unknown")
		}
		host, engine = faultinject.VLLM, rules
	}
	st := newProvider(t, host)
	url := st.provider.URL()
	// Clients that do not heed x-should-retry (Vercel's) meet an open breaker in the
	// end, and wait as long as it says.
	cfg := proxy.Config{Breaker: proxy.BreakerConfig{Open: time.Second}}
	switch v {
	case overHTTP2:
		url = st.provider.H2CURL()
	case hasty:
		// A busy machine takes a pause for silence now and then, which must not spend the budget.
		cfg.Relay = relay.Config{Hold: 100 * time.Millisecond, Heartbeat: 50 * time.Millisecond, Recoveries: 12}
		cfg.Relay.Watch = interrupt.Config{
			Headers: 2 * time.Second, FirstToken: 5 * time.Second, Idle: 1500 * time.Millisecond,
			Progress: 1800 * time.Millisecond, ProgressQuiet: 1800 * time.Millisecond,
		}
	}
	cfg.Upstreams = []proxy.Upstream{{Name: "openai", URL: url, Abilities: engine}, {Name: "anthropic", URL: url}, {Name: "gemini", URL: url, Abilities: trailing}, {Name: "bedrock", URL: url}}
	st.base = serve(t, cfg)
	return st
}

// serve runs a proxy for one test and returns its base URL.
func serve(t testing.TB, cfg proxy.Config) string {
	t.Helper()
	out := upstream.New(upstream.Config{Proxy: upstream.NoProxy})
	cfg.Client = out
	s, err := proxy.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_ = s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		out.Close()
	})
	return "http://" + l.Addr().String()
}

// turns tells requests that look alike apart.
var turns atomic.Int64

// play has a client ask for a scenario under a script. An error means that the
// case has no outcome: somebody did not come to an end.
func (st *stage) play(t testing.TB, c client, sc *scenario, script string) (outcome, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	key := fmt.Sprintf("%s %s %d", t.Name(), sc.name, turns.Add(1))
	j := sc.job(c.speaks)
	j.Base = st.base
	j.Headers = map[string]string{faultinject.HeaderScenario: sc.answer, faultinject.HeaderTurn: key}
	if script != "" {
		j.Headers[faultinject.HeaderScript] = script
	}
	got, err := c.run(ctx, j)
	if err != nil {
		return outcome{}, fmt.Errorf("%s under %q: %w; the provider saw: %s", sc.name, script, err, story(st.of(key)))
	}
	_, err = st.provider.WaitLog(ctx, func(l []faultinject.Exchange) bool {
		for _, x := range l {
			if x.Header.Get(faultinject.HeaderTurn) == key && x.Ending == "" {
				return false
			}
		}
		return true
	})
	if err != nil {
		return outcome{}, fmt.Errorf("%s under %q: an exchange did not end: %w; the provider saw: %s", sc.name, script, err, story(st.of(key)))
	}
	return outcome{got, st.of(key)}, nil
}

// of returns the exchanges of a turn.
func (st *stage) of(key string) []faultinject.Exchange {
	var mine []faultinject.Exchange
	for _, x := range st.provider.Log() {
		if x.Header.Get(faultinject.HeaderTurn) == key {
			mine = append(mine, x)
		}
	}
	return mine
}

// story tells exchanges in a line.
func story(xs []faultinject.Exchange) string {
	var b strings.Builder
	for i, x := range xs {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(string(x.Ending))
		if x.Fault != "" {
			b.WriteString(" (" + x.Fault + ")")
		}
		if x.Refusal != nil {
			b.WriteString(" " + x.Refusal.Error())
		}
		if x.Continuation.Manner != faultinject.Fresh {
			b.WriteString(", continuing by " + string(x.Continuation.Manner))
		}
	}
	return b.String()
}
