package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/turn"
)

// ordinary is a call that does not stream, in one dialect. In a scenario behind a ~
// a cut turn may end with the calls that were whole (DESIGN §3, R2).
type ordinary struct {
	name, path, ask string
	scenarios       []string
}

var ordinaries = []ordinary{
	{"chat", "/v1/chat/completions", `{"model":"gpt-4o","messages":[{"role":"user","content":"Say it"}]}`,
		[]string{"text", "unicode", "tool", "~parallel", "thinking-tool", "refusal"}},
	{"several choices", "/v1/chat/completions", `{"model":"gpt-4o","n":3,"messages":[{"role":"user","content":"Say it"}]}`,
		[]string{"parallel"}},
	{"completions", "/v1/completions", `{"model":"gpt-4o","max_tokens":1000,"prompt":"Say it"}`,
		[]string{"text", "whitespace"}},
	{"messages", "/v1/messages", `{"model":"claude-opus-4-1","max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":2048},"messages":[{"role":"user","content":"Say it"}]}`,
		[]string{"unicode", "~parallel", "thinking-tool", "redacted"}},
	{"responses", "/v1/responses", `{"model":"gpt-5.1","input":"Say it","reasoning":{"summary":"auto"},"include":["reasoning.encrypted_content"]}`,
		[]string{"unicode", "custom-tool", "thinking-tool"}},
	{"gemini", "/v1beta/models/gemini-2.5-pro:generateContent", `{"contents":[{"role":"user","parts":[{"text":"Say it"}]}]}`,
		[]string{"text", "unicode", "tool", "~parallel", "thinking"}},
	{"converse", atModel + "converse", `{"messages":[{"role":"user","content":[{"text":"Say it"}]}],"inferenceConfig":{"maxTokens":4096}}`,
		[]string{"unicode", "~parallel", "thinking-tool"}},
	{"invoke", atModel + "invoke", `{"anthropic_version":"bedrock-2023-05-31","max_tokens":4096,"messages":[{"role":"user","content":"Say it"}]}`,
		[]string{"thinking-tool"}},
}

// upgrading is a server that serves ordinary calls from streams, in front of a strict
// provider.
func upgrading(t *testing.T, change ...func(*Config)) (*proxied, *faultinject.Server) {
	t.Helper()
	f, err := faultinject.New(faultinject.Config{Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	f.Start()
	t.Cleanup(func() { f.Close() })
	return start(t, nil, append([]func(*Config){func(c *Config) {
		for _, name := range []string{"openai", "anthropic", "gemini", "bedrock"} {
			// Asked: the older models prefill, and everybody is asked alike here.
			c.Upstreams = append(c.Upstreams, Upstream{Name: name, URL: f.URL(), Upgrade: true,
				Abilities: []dialect.AbilityRule{{Ability: dialect.Ability{Manners: []turn.Manner{turn.Asked}}}}})
		}
		c.Relay.Grace = 300 * time.Millisecond
	}}, change...)...), f
}

// call makes one and returns the answer.
func (o ordinary) call(t *testing.T, base, scenario, script, turn string, header ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, base+o.path, strings.NewReader(o.ask))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range append([]string{"Content-Type: application/json", "Authorization: Bearer k", "x-api-key: k", "x-goog-api-key: k", "anthropic-version: 2023-06-01",
		faultinject.HeaderScenario + ": " + scenario, faultinject.HeaderScript + ": " + script, faultinject.HeaderTurn + ": " + turn}, header...) {
		name, val, _ := strings.Cut(h, ": ")
		r.Header.Set(name, val)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return &http.Response{Header: http.Header{}}, nil
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Errorf("%s: %v behind %s", o.name, err, b)
	}
	return res, b
}

// alike is an answer without what no two answers share. counts keeps what was counted.
func alike(t *testing.T, b []byte, counts bool) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Errorf("%v: %s", err, b)
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				strip(e)
			}
		case map[string]any:
			for k, e := range v {
				switch k {
				case "id", "call_id", "toolUseId", "responseId", "created", "created_at", "completed_at", "encrypted_content", "store":
					delete(v, k)
				case "usage", "usageMetadata", "metrics":
					if !counts {
						v[k] = e != nil
					}
				}
				strip(e)
			}
		}
	}
	strip(v)
	return v
}

// An ordinary call that is served from a stream gets the answer that the provider gives
// to ordinary calls, to the last member, in every scenario that it knows.
func TestUpgradedCallIsTheOrdinaryAnswer(t *testing.T) {
	s, f := upgrading(t)
	for _, o := range ordinaries {
		for _, scenario := range faultinject.ScenarioNames() {
			if scenario == "web-search" && o.name == "responses" {
				continue // ids in the middle of texts
			}
			_, want := o.call(t, f.URL(), scenario, "attempt *: pass", "direct "+scenario)
			res, got := o.call(t, "http://"+s.addr, scenario, "attempt *: pass", "upgraded "+scenario)
			if res.Header.Get(headerUpgrade) != "on" || res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s, %s: %d %v", o.name, scenario, res.StatusCode, res.Header)
			}
			if !reflect.DeepEqual(alike(t, got, true), alike(t, want, true)) {
				t.Errorf("%s, %s:\ngot  %s\nwant %s", o.name, scenario, got, want)
			}
			if x := f.Log()[len(f.Log())-1]; !streams(x) {
				t.Errorf("%s, %s: no stream was asked for: %s %s", o.name, scenario, x.Path, x.Body)
			}
		}
	}
}

// streams reports whether an exchange asked for a stream.
func streams(x faultinject.Exchange) bool {
	return strings.Contains(x.Path, ":streamGenerateContent") || strings.HasSuffix(x.Path, "-stream") || bytes.Contains(x.Body, []byte(`"stream":true`))
}

// The stream under an ordinary call is cut behind each of its events in turn: the
// caller gets the answer that it gets without a cut, and none of it twice.
func TestUpgradedCallSurvivesACutBehindEveryEvent(t *testing.T) {
	for _, o := range ordinaries {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel() // they wait more than they work
			type pair struct {
				s *proxied
				f *faultinject.Server
			}
			var lanes [6]pair // as many, because each paces its recoveries
			for i := range lanes {
				lanes[i].s, lanes[i].f = upgrading(t)
			}
			cuts, more := 0, 0
			for _, scenario := range o.scenarios {
				scenario, ended := strings.CutPrefix(scenario, "~")
				_, want := o.call(t, "http://"+lanes[0].s.addr, scenario, "attempt *: pass", "whole "+scenario)
				log := lanes[0].f.Log()
				events := log[len(log)-1].Events
				var all sync.WaitGroup
				for i, l := range lanes {
					all.Go(func() {
						for n := 1 + i; n < events; n += len(lanes) {
							script := fmt.Sprintf("attempt 1 turn 1: fin after event %d", n)
							res, got := o.call(t, "http://"+l.s.addr, scenario, script, scenario+script)
							if ended && bytes.Count(got, []byte("get_weather")) == 1 {
								got = append(got[:0], want...)
							}
							if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" || !reflect.DeepEqual(alike(t, got, false), alike(t, want, false)) {
								t.Errorf("%s, cut behind event %d of %d: %d\ngot  %s\nwant %s", scenario, n, events, res.StatusCode, got, want)
							}
						}
					})
				}
				all.Wait()
				cuts += events - 1
			}
			for _, l := range lanes {
				for _, x := range l.f.Log() {
					if x.Refusal != nil {
						t.Errorf("refused: %v of %s", x.Refusal, x.Body)
					}
					if x.Continuation.Manner != faultinject.Fresh {
						more++
					}
				}
			}
			t.Logf("%d cuts, %d continuations", cuts, more)
			if more == 0 && o.name != "several choices" {
				t.Error("nothing was gone on from: every cut began anew")
			}
		})
	}
}

// What a stream would not tell exactly is asked for as the caller asked, with the
// reason; a break is then a new try.
func TestCallThatIsNotUpgradedSaysWhy(t *testing.T) {
	for _, c := range []struct{ name, path, ask, why string }{
		{"speech", "/v1/chat/completions", `{"model":"gpt-4o","modalities":["text","audio"],"audio":{"voice":"alloy","format":"wav"},"messages":[]}`, "audio"},
		{"the best of several", "/v1/completions", `{"model":"m","prompt":"x","best_of":3}`, "best_of"},
		{"an option that is for streams", "/v1/chat/completions", `{"model":"m","messages":[],"stream_options":{"include_usage":true}}`, "stream_options"},
		{"background", "/v1/responses", `{"model":"m","input":"x","background":true}`, "background"},
		{"averages", "/v1beta/models/m:generateContent", `{"contents":[],"generationConfig":{"responseLogprobs":true}}`, "logprobs"},
		{"Gemini's speech", "/v1beta/models/m:generateContent", `{"contents":[],"generation_config":{"response_modalities":["AUDIO"]}}`, "audio"},
		{"streamed arguments", "/v1beta/models/m:generateContent", `{"contents":[],"toolConfig":{"functionCallingConfig":{"streamFunctionCallArguments":true}}}`, "streamFunctionCallArguments"},
		{"a guardrail", "/model/amazon.nova/converse", `{"messages":[],"guardrailConfig":{"guardrailIdentifier":"g"}}`, "guardrail"},
		{"Interactions", "/v1beta/interactions", `{"model":"m","input":"x"}`, "dialect"},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := func(a *asked) { a.answer(200, `{"is":"whole"}`) }
			p := newProvider(t, func(a *asked) { a.rst() }, whole)
			s := start(t, p, func(cfg *Config) {
				cfg.Upstreams = []Upstream{{Name: "openai", URL: p.url(), Upgrade: true}, {Name: "gemini", URL: p.url(), Upgrade: true}, {Name: "bedrock", URL: p.url(), Upgrade: true}}
			})
			res := dial(t, s.addr).post(c.path, c.ask, "Authorization: Bearer k").response()
			got, err := allOf(res)
			if err != nil || got != `{"is":"whole"}` || res.Header.Get(headerUpgrade) != "off; reason="+c.why {
				t.Errorf("%v %v %s", err, res.Header, got)
			}
			for range 2 {
				if a := p.next(); string(a.body) != c.ask || a.path != c.path {
					t.Errorf("the provider was asked %s %s", a.path, a.body)
				}
			}
		})
	}
}

// A provider that will not stream (an organization that is not verified, a model that
// has no streams) is sent the caller's own request, and is not asked again.
func TestStreamThatIsRefusedIsTakenBack(t *testing.T) {
	const ask = `{"model":"o9-pro","messages":[{"role":"user","content":"x"}]}`
	whole := func(a *asked) { a.answer(200, `{"choices":[]}`) }
	p := newProvider(t, func(a *asked) {
		a.answer(400, `{"error":{"message":"Your organization must be verified to stream this model.","type":"invalid_request_error","param":"stream","code":"unsupported_value"}}`)
	}, whole, whole)
	s := start(t, p, func(c *Config) { c.Upstreams[0].Upgrade = true })
	for i := range 2 {
		res := dial(t, s.addr).post("/v1/chat/completions", ask, "Authorization: Bearer k").response()
		got, err := allOf(res)
		if err != nil || got != `{"choices":[]}` || res.Header.Get(headerUpgrade) != "off; reason=stream_refused" {
			t.Errorf("call %d: %v %v %s", i, err, res.Header, got)
		}
	}
	if a := p.next(); !strings.Contains(string(a.body), `"stream":true`) {
		t.Errorf("the first request: %s", a.body)
	}
	for range 2 {
		if a := p.next(); string(a.body) != ask {
			t.Errorf("the provider was sent %s", a.body)
		}
	}
}

// Who asks for a stream gets one, with the option as without.
func TestUpgradeLeavesStreamsAlone(t *testing.T) {
	s, f := upgrading(t)
	o := slices.Clone(ordinaries)[0]
	o.ask = strings.Replace(o.ask, `{`, `{"stream":true,`, 1)
	res, got := o.call(t, "http://"+s.addr, "text", "attempt *: pass", "t")
	if res.Header.Get(headerUpgrade) != "" || !bytes.HasPrefix(got, []byte("data: ")) || string(f.Log()[0].Body) != o.ask {
		t.Errorf("%v %s", res.Header, got)
	}
}

// An error is the provider's own, with its status, whether it came instead of the
// stream or inside of it.
func TestUpgradedCallFailsAsAnOrdinaryOne(t *testing.T) {
	s, _ := upgrading(t, func(c *Config) { c.Relay.Recoveries = -1 })
	for _, c := range []struct {
		name, script string
		status       int
	}{
		{"a status", "attempt *: status 500", 500},
		{"a stream that breaks again and again", "attempt *: rst after event 1", 502},
		{"an error before content", "attempt *: error overloaded at event 1", 503},
	} {
		for _, o := range ordinaries {
			res, got := o.call(t, "http://"+s.addr, "thinking", c.script, c.name)
			if res.StatusCode < c.status || res.StatusCode > 529 || !json.Valid(got) || !bytes.Contains(got, []byte("error")) && !bytes.Contains(got, []byte(`Exception"`)) {
				t.Errorf("%s, %s: %d %v %s", o.name, c.name, res.StatusCode, res.Header, got)
			}
		}
	}
}
