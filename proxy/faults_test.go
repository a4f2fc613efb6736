package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/upstream"
)

// faulty serves in front of a strict provider that misbehaves by script.
func faulty(t *testing.T, script, transport string, change ...func(*Config)) (*proxied, *faultinject.Server) {
	t.Helper()
	f, err := faultinject.New(faultinject.Config{Script: faultinject.MustScript(script), TLS: transport == "h2", Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	f.Start()
	t.Cleanup(func() { f.Close() })
	url, opts := f.URL(), &upstream.TLSOptions{}
	switch transport {
	case "h2c":
		url = f.H2CURL()
	case "h2":
		opts.RootCAs = f.Roots()
	}
	return start(t, nil, append([]func(*Config){func(c *Config) {
		c.Upstreams = []Upstream{{Name: "openai", URL: url, TLS: opts}, {Name: "anthropic", URL: url, TLS: opts}}
	}, relayed(func(c *relay.Config) {
		c.Grace, c.Watch.Idle, c.Watch.Progress, c.Watch.ProgressQuiet = 300*time.Millisecond, 400*time.Millisecond, 400*time.Millisecond, 400*time.Millisecond
	})}, change...)...), f
}

// Each fault on the first attempt of a turn, over each transport, in both
// dialects: the client reads what it reads without the fault, in one message.
func TestEveryFaultHeals(t *testing.T) {
	scripts := map[string][]string{
		"h1": {
			"rst after event 3", "fin after event 3", "polite after event 3", "half with rst inside event 4", "eof10 after event 3", "stall after event 3", "pings every 50ms after event 3",
			"error overloaded after event 3", "status 503", "status 529 retry-after-ms 10", "empty", "only-comments", "html", "gzip; rst after event 3", "br",
			"content-type application/json", "no-blank-line", "no-terminal", "trickle 1", "warm every 20ms", "after-end",
		},
		"h2c": {"reset-stream after event 3", "goaway after event 3", "refused", "stall after event 3", "polite after event 3", "gzip", "goaway covering after event 3"},
		"h2":  {"reset-stream after event 3", "goaway after event 3", "refused"},
	}
	for transport, faults := range scripts {
		for _, fault := range faults {
			t.Run(transport+", "+fault, func(t *testing.T) {
				t.Parallel()
				s, f := faulty(t, "attempt 1 turn 2: "+fault, transport)
				for _, d := range []struct{ path, ask, end string }{
					{"/v1/chat/completions", chatAsk, done},
					{"/v1/messages", strings.Replace(messagesAsk, `"max_tokens":100`, `"max_tokens":1000`, 1), messageStop},
				} {
					read := func(turn string) (string, string) {
						res := dial(t, s.addr).post(d.path, turn, "Authorization: Bearer k", "x-api-key: k", "anthropic-version: 2023-06-01").response()
						got, err := allOf(res)
						if err != nil || res.StatusCode != http.StatusOK {
							t.Fatalf("%s: %d %v %s\n%s", d.path, res.StatusCode, err, got, exchanges(f))
						}
						return got, text(t, got)
					}
					_, clean := read(d.ask)
					whole := strings.Replace(d.ask, `"messages":[`, `"messages":[{"role":"user","content":"Say it"},{"role":"assistant","content":"x"},`, 1)
					got, healed := read(whole)
					if healed != clean || clean == "" || strings.Count(got, d.end) != 1 {
						t.Errorf("%s: client read %q, without the fault it is %q\n%s", d.path, healed, clean, exchanges(f))
					}
				}
				eventually(t, "the fault strikes once per dialect", func() bool {
					applied := 0
					for _, e := range f.Log() {
						if e.Applied {
							applied++
						}
					}
					return applied == 2
				})
			})
		}
	}
}

func exchanges(f *faultinject.Server) string {
	var b strings.Builder
	for _, e := range f.Log() {
		fmt.Fprintf(&b, "%d %s attempt %d turn %d: %s %s %d %q applied=%v ending=%s refusal=%v\n", e.ID, e.Path, e.Attempt, e.TurnNo, e.Proto, e.Continuation.Manner, e.Status, e.Fault, e.Applied, e.Ending, e.Refusal)
	}
	return b.String()
}
