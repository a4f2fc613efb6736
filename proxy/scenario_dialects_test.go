package proxy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/turn"
	"github.com/unbroken-llm/unbroken/upstream"
)

// spoken is a dialect as the scenarios speak it.
type spoken struct {
	name, path, ask string
	model, other    string // the fallback's
	// said is the text of an answer, and the models that it says it is of.
	said func(t *testing.T, body string) (text string, models map[string]bool)
}

// fields reads each data line of a stream.
func fields(t *testing.T, body string, each func(data []byte)) {
	t.Helper()
	for line := range strings.SplitSeq(body, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok && data != "[DONE]" {
			if !json.Valid([]byte(data)) {
				t.Fatalf("the client got %q", data)
			}
			each([]byte(data))
		}
	}
}

var allSpoken = []spoken{
	{"chat", "/v1/chat/completions", longAsk, "gpt-x", "other-model", func(t *testing.T, body string) (string, map[string]bool) {
		return text(t, body), models(t, body)
	}},
	{"messages", "/v1/messages", strings.Replace(messagesAsk, `"max_tokens":100`, `"max_tokens":1000`, 1), "claude-sonnet-4-5", "claude-opus-4-5", func(t *testing.T, body string) (string, map[string]bool) {
		of := map[string]bool{}
		fields(t, body, func(data []byte) {
			var e struct{ Message struct{ Model string } }
			if _ = json.Unmarshal(data, &e); e.Message.Model != "" {
				of[e.Message.Model] = true
			}
		})
		return text(t, body), of
	}},
	{"responses", "/v1/responses", `{"model":"gpt-x","stream":true,"store":false,"input":"Tell it"}`, "gpt-x", "other-model", func(t *testing.T, body string) (string, map[string]bool) {
		said, of := "", map[string]bool{}
		fields(t, body, func(data []byte) {
			var e struct {
				Type, Delta string
				Response    struct{ Model string }
			}
			if err := json.Unmarshal(data, &e); err != nil {
				t.Fatal(err)
			}
			if e.Type == "response.output_text.delta" {
				said += e.Delta
			}
			if e.Response.Model != "" {
				of[e.Response.Model] = true
			}
		})
		return said, of
	}},
	{"gemini", "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"Tell it"}]}]}`, "gemini-2.5-pro", "gemini-2.5-flash", func(t *testing.T, body string) (string, map[string]bool) {
		said, of := "", map[string]bool{}
		fields(t, body, func(data []byte) {
			var e struct {
				ModelVersion string
				Candidates   []struct {
					Content struct{ Parts []struct{ Text string } }
				}
			}
			if err := json.Unmarshal(data, &e); err != nil {
				t.Fatal(err)
			}
			for _, c := range e.Candidates {
				for _, p := range c.Content.Parts {
					said += p.Text
				}
			}
			of[e.ModelVersion] = true
		})
		return said, of
	}},
}

// inAll lets two providers speak every dialect, the second as the first one's
// fallback, which takes no prefill.
func inAll(c *Config) {
	url := func(name string) string {
		for _, u := range c.Upstreams {
			if u.Name == name {
				return u.URL
			}
		}
		return ""
	}
	c.Upstreams = append(c.Upstreams, Upstream{Name: "gemini", URL: url("openai")}, Upstream{
		Name: "backup-gemini", URL: url("backup"), Dialect: "gemini", Credential: upstream.Field{Name: "x-goog-api-key", Value: "own"},
		Abilities: []dialect.AbilityRule{{Ability: dialect.Ability{Manners: []turn.Manner{turn.Asked}}}},
	})
}

// fallbacks gives each dialect its fallback, under another model.
func fallbacks(c *Config) {
	for _, s := range allSpoken {
		r := Route{Model: s.model, Targets: []RouteTarget{{Upstream: "openai"}, {Upstream: "backup", Model: s.other}}, FirstToken: 400 * time.Millisecond}
		switch s.name {
		case "responses":
			continue // chat's
		case "messages":
			r.Targets = []RouteTarget{{Upstream: "anthropic"}, {Upstream: "backup-anthropic", Model: s.other}}
		case "gemini":
			r.Targets = []RouteTarget{{Upstream: "gemini"}, {Upstream: "backup-gemini", Model: s.other}}
		}
		c.Routes = append(c.Routes, r)
	}
}

// The main rows of the table in every dialect: how often each provider is asked, and
// what the caller has of it.
func TestScenariosInEveryDialect(t *testing.T) {
	ref, err := faultinject.Scenario("long", faultinject.Prompt{}, faultinject.Config{LongTokens: 60})
	if err != nil {
		t.Fatal(err)
	}
	const primary, fallback = false, true
	for _, row := range []struct {
		name          string
		first, second string // scripts
		routed        bool
		asked         [2]int
		status        int
		from          bool // who the caller is told it was
	}{
		{"429 with a hint", "attempt 1: status 429 retry-after 1", "attempt *: pass", true, [2]int{2, 0}, 200, primary},
		{"429 for ever", "attempt *: status 429", "attempt *: pass", true, [2]int{2, 1}, 200, fallback},
		{"500 once", "attempt 1: status 500", "attempt *: pass", true, [2]int{2, 0}, 200, primary},
		{"503 for ever, a fallback", "attempt *: status 503", "attempt *: pass", true, [2]int{2, 1}, 200, fallback},
		{"503 for ever, none", "attempt *: status 503", "attempt *: pass", false, [2]int{4, 0}, 503, primary},
		{"503 for ever, a fallback that is down too", "attempt *: status 503", "attempt *: status 500", true, [2]int{2, 2}, 503, primary},
		{"reset before the headers", "attempt 1: rst before headers", "attempt *: pass", true, [2]int{2, 0}, 200, primary},
		{"accepted and never answered", "attempt *: stall before headers", "attempt *: pass", true, [2]int{1, 1}, 200, fallback},
		{"a first token that comes too late", "attempt *: stall 1300ms at start", "attempt *: pass", true, [2]int{1, 1}, 200, fallback},
		{"cut after 40 of 60 tokens", "attempt 1: rst after text 40", "attempt *: pass", true, [2]int{2, 0}, 200, primary},
		{"cut, and gone", "attempt 1: rst after text 40\nattempt 2+: status 503", "attempt *: pass", true, [2]int{3, 1}, 200, primary},
		{"silence after 20 tokens", "attempt 1: stall after text 20", "attempt *: pass", true, [2]int{2, 0}, 200, primary},
		{"a malformed event in the middle", "attempt 1: garbage after text 20; pace 5ms", "attempt *: pass", true, [2]int{2, 0}, 200, primary},
		{"400", "attempt *: status 400", "attempt *: pass", true, [2]int{1, 0}, 400, primary},
		{"401", "attempt *: status 401", "attempt *: pass", true, [2]int{1, 0}, 401, primary},
	} {
		for _, s := range allSpoken {
			t.Run(row.name+", "+s.name, func(t *testing.T) {
				t.Parallel()
				change := []func(*Config){inAll}
				if row.routed {
					change = append(change, fallbacks)
				}
				c := coupled(t, row.first, row.second, change...)
				a := c.post(s.path, s.ask)
				c.asked(row.asked[0], row.asked[1])
				for _, x := range c.b.Log() {
					if x.Model != s.other {
						t.Errorf("the fallback was asked for %s", x.Model)
					}
				}
				if a.status != row.status || row.status == 200 && a.err != nil {
					t.Fatalf("%d %v\n%s", a.status, a.err, a.body)
				}
				if row.status != 200 {
					if got := a.header.Get("x-should-retry"); (got == "false") != (row.asked[0]+row.asked[1] > 1) {
						t.Errorf("x-should-retry %q", got)
					}
					return
				}
				said, of := s.said(t, a.body)
				if said != ref.Text() {
					t.Errorf("the caller read\n%q\nwant\n%q\nfirst:\n%s\nsecond:\n%s", said, ref.Text(), exchanges(c.a), exchanges(c.b))
				}
				want := s.model
				if row.from == fallback {
					want = s.other
				}
				if len(of) != 1 || !of[want] {
					t.Errorf("the caller is told it was %v, want %s", of, want)
				}
				if strings.HasPrefix(row.name, "429 with") {
					if g := gap(c.a, 0, 1); g < time.Second {
						t.Errorf("asked again after %v, the hint was a second", g)
					}
				}
			})
		}
	}
}

// A route may leave a provider that drips: too little text over a span is an
// interruption like silence, and for the models of that route only.
func TestScenarioSlowDrip(t *testing.T) {
	ref, err := faultinject.Scenario("long", faultinject.Prompt{}, faultinject.Config{LongTokens: 60})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		model        string
		first, other int
	}{{"gpt-hurried", 1, 1}, {"gpt-patient", 1, 0}} {
		t.Run(tc.model, func(t *testing.T) {
			t.Parallel()
			c := coupled(t, "attempt *: pace 80ms", "attempt *: pass", func(c *Config) {
				for model, floor := range map[string]int{"gpt-hurried": 200, "gpt-patient": 0} {
					c.Routes = append(c.Routes, Route{
						Model: model, Targets: []RouteTarget{{Upstream: "openai"}, {Upstream: "backup", Model: "other-model"}},
						Floor: floor, FloorSpan: time.Second, // the drip has some 70 bytes a second
					})
				}
			})
			a := c.post("/v1/chat/completions", strings.Replace(longAsk, "gpt-x", tc.model, 1))
			if got := text(t, a.body); a.err != nil || got != ref.Text() {
				t.Fatalf("%v %q", a.err, got)
			}
			c.asked(tc.first, tc.other)
			if tc.other > 0 && c.b.Log()[0].Continuation.Manner == faultinject.Fresh {
				t.Errorf("what was said is asked for again: %+v", c.b.Log()[0].Continuation)
			}
			if x := over(t, c.a)[0]; tc.other > 0 && x.Ending != faultinject.ClientClosed {
				t.Errorf("the drip ended as %q", x.Ending)
			}
		})
	}
}
