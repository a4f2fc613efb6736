package proxy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

const gemAsk = `{"contents":[{"role":"user","parts":[{"text":"Go"}]}]}`

// gemChunk is one chunk's JSON.
func gemChunk(id, text, more string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[{"text":` + quote(text) + `}]},"index":0` + more + `}],"responseId":"` + id + `","modelVersion":"gemini-x"}`
}

// gemArray begins an answer without alt=sse.
func gemArray(a *asked) {
	a.say("HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=UTF-8\r\nTransfer-Encoding: chunked\r\n\r\n")
}

const gemStop = `,"finishReason":"STOP"`

// gemText reads a streamed array strictly.
func gemText(t *testing.T, body string) (text string, finishes int) {
	t.Helper()
	var chunks []struct {
		ResponseID string
		Candidates []struct {
			FinishReason string
			Content      struct{ Parts []struct{ Text string } }
		}
	}
	if err := json.Unmarshal([]byte(body), &chunks); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, c := range chunks {
		if c.ResponseID != "g1" {
			t.Errorf("a chunk of response %q: %s", c.ResponseID, body)
		}
		for _, k := range c.Candidates {
			if k.FinishReason != "" {
				finishes++
			}
			for _, p := range k.Content.Parts {
				text += p.Text
			}
		}
	}
	return text, finishes
}

// continues makes all providers ones that take a trailing model turn.
func continues(c *Config) {
	for i := range c.Upstreams {
		c.Upstreams[i].Abilities = []dialect.AbilityRule{{Ability: dialect.Ability{Manners: []turn.Manner{turn.Prefill}}}}
	}
}

// Without alt=sse a stream is one JSON array. It passes byte for byte, and what heals
// it is part of the same array.
func TestGeminiArrayPassesAndHeals(t *testing.T) {
	const path = "/v1beta/models/gemini-x:streamGenerateContent?key=k"
	whole := "[" + gemChunk("g1", "Hello, ", "") + "\n,\r\n" + gemChunk("g1", "world.", gemStop) + "\n]\n"
	p := newProvider(t, func(a *asked) {
		gemArray(a)
		for _, b := range whole {
			a.chunk(string(b))
		}
		a.end()
	}, func(a *asked) {
		gemArray(a)
		a.chunks("["+gemChunk("g1", "Hello, ", ""), "\n,\r\n{\"candidates\": [{\"cont")
		a.rst()
	}, func(a *asked) {
		gemArray(a)
		a.chunks("["+gemChunk("g2", "world", "")+"\n,\r\n", gemChunk("g2", ".", gemStop)+"\n]\n")
		a.end()
	})
	s := start(t, p, withGemini(p), continues)
	res := dial(t, s.addr).post(path, gemAsk).response()
	got, err := allOf(res)
	if err != nil || strings.TrimRight(got, "\n") != strings.TrimRight(whole, "\n") {
		t.Fatalf("%v: %q, want %q", err, got, whole)
	}
	if kind := res.Header.Get("Content-Type"); kind != "application/json; charset=UTF-8" {
		t.Errorf("it is called %s", kind)
	}
	if a := p.next(); a.path != path {
		t.Errorf("asked for %s", a.path)
	}
	got, err = allOf(dial(t, s.addr).post(path, gemAsk).response())
	if err != nil {
		t.Fatal(err)
	}
	if said, ends := gemText(t, got); said != "Hello, world." || ends != 1 {
		t.Errorf("%q with %d ends: %s", said, ends, got)
	}
	p.next()
	if a := p.next(); a.path != path || !strings.Contains(string(a.body), "Hello") {
		t.Errorf("the rest was asked for at %s with %s", a.path, a.body)
	}
}

// An array that cannot be healed stays open: nobody can take it for whole, and what is
// in it is read.
func TestGeminiArrayThatIsGivenUp(t *testing.T) {
	p := newProvider(t, func(a *asked) {
		gemArray(a)
		a.chunks("[" + gemChunk("g1", "Hello, ", ""))
		a.rst()
	}, func(a *asked) { a.answer(400, "{}") })
	s := start(t, p, withGemini(p), continues)
	got, err := allOf(dial(t, s.addr).post("/v1beta/models/gemini-x:streamGenerateContent", gemAsk).response())
	if err == nil {
		t.Error("the end looks like a good one")
	}
	var all []json.RawMessage
	if json.Unmarshal([]byte(got), &all) == nil {
		t.Errorf("the array is closed: %s", got)
	}
	if err := json.Unmarshal([]byte(got+"]"), &all); err != nil || len(all) != 2 || !strings.Contains(string(all[1]), `"error"`) {
		t.Errorf("%v: %s", err, got)
	}
}

// A form of the answer that we do not read is relayed as it comes.
func TestGeminiInAnotherFormIsRelayed(t *testing.T) {
	p := newProvider(t, func(a *asked) {
		a.say("HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nTransfer-Encoding: chunked\r\n\r\n")
		a.chunks("\x0a\x05[{}")
		a.end()
	})
	s := start(t, p, withGemini(p))
	for _, query := range []string{"?alt=proto", "?alt=sse&fields=candidates.content"} {
		res := dial(t, s.addr).post("/v1beta/models/gemini-x:streamGenerateContent"+query, gemAsk).response()
		if got, err := allOf(res); err != nil || got != "\x0a\x05[{}" || res.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s: %q %v", query, got, err)
		}
	}
}

// Gemini's requests name the model in the path: a target's model is written there, for
// the first attempt and for the rest of a turn, and a path without one passes as it is.
func TestTargetsModelGoesIntoTheGeminiPath(t *testing.T) {
	cut := func(a *asked) {
		a.stream()
		a.chunks("data: " + gemChunk("g1", "Hello, ", "") + "\r\n\r\n")
		a.rst()
	}
	first := newProvider(t, cut, func(a *asked) { a.answer(503, "{}") })
	second := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks("data: " + gemChunk("g2", "world.", gemStop) + "\r\n\r\n")
		a.end()
	})
	s := start(t, first, withGemini(first), func(c *Config) {
		c.Upstreams = append(c.Upstreams, Upstream{Name: "backup", URL: second.url() + "/base", Credential: own, Dialect: "gemini"})
		c.Routes = []Route{{Model: "gemini-*", Targets: []RouteTarget{{Upstream: "gemini"}, {Upstream: "backup", Model: "gemini-y"}}}}
	}, continues)
	const path = "/v1beta/models/gemini%2Dx:streamGenerateContent?alt=sse"
	got, err := allOf(dial(t, s.addr).post(path, gemAsk).response())
	if err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if !strings.Contains(got, "Hello, ") || !strings.Contains(got, "world.") || strings.Contains(got, "g2") {
		t.Errorf("got %s", got)
	}
	if a := first.next(); a.path != path {
		t.Errorf("the first target was asked at %s", a.path)
	}
	if a := second.next(); a.path != "/base/v1beta/models/gemini-y:streamGenerateContent?alt=sse" || !strings.Contains(string(a.body), "Hello") {
		t.Errorf("the second was asked at %s for %s", a.path, a.body)
	}
}

// DESIGN §5: in front of the next event Gemini's streams drip, and the client reads
// that event as if nothing had been there.
func TestGeminiDripsThroughSilence(t *testing.T) {
	for name, c := range map[string]struct{ path, first, second, end, drip string }{
		"event stream": {"?alt=sse", "data: " + gemChunk("g1", "Hello, ", "") + "\r\n\r\n", "data: " + gemChunk("g1", "world.", gemStop) + "\r\n\r\n", "", "data:   "},
		"array":        {"", "[" + gemChunk("g1", "Hello, ", ""), ",\r\n" + gemChunk("g1", "world.", gemStop), "]", "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			more := make(chan struct{})
			p := newProvider(t, func(a *asked) {
				a.stream()
				a.chunks(c.first)
				<-more
				a.chunks(c.second, c.end)
				a.end()
			})
			s := start(t, p, withGemini(p), relayed(func(r *relay.Config) { r.Heartbeat = 20 * time.Millisecond }))
			res := dial(t, s.addr).post("/v1beta/models/gemini-x:streamGenerateContent"+c.path, gemAsk).response()
			got := until(t, res.Body, c.first+c.drip)
			close(more)
			rest, err := allOf(res)
			if err != nil {
				t.Fatal(err)
			}
			if name == "array" {
				if said, ends := gemText(t, got+rest); said != "Hello, world." || ends != 1 {
					t.Errorf("%q with %d ends: %s%s", said, ends, got, rest)
				}
				return
			}
			if events := strings.Split(strings.TrimSuffix(got+rest, "\r\n\r\n"), "\r\n\r\n"); len(events) != 2 || !strings.HasPrefix(events[1], "data:    ") {
				t.Errorf("not two events: %q", events)
			}
		})
	}
}

// An error that the proxy puts in place of what a client was about to get is an event
// of that client's stream, wherever it stands.
func TestGeminiErrorInPlaceOfTheRest(t *testing.T) {
	f := dialect.Failure{Status: 409, Message: "newer"}
	for name, d := range map[string]dialect.Dialect{"event stream": generative, "array": generates("/v1beta/models/m:streamGenerateContent")} {
		t.Run(name, func(t *testing.T) {
			req, err := d.Parse([]byte(gemAsk))
			if err != nil {
				t.Fatal(err)
			}
			now := time.Unix(1_800_000_000, 0)
			m, _ := relay.New(relay.Config{}, d, req, req.Body, now)
			m.Step(now, relay.Opened{Attempt: 1, Status: 200})
			chunk := gemChunk("g1", "Hi", "")
			first, next := "data: "+chunk+"\r\n\r\n", "data: "+chunk+"\r\n\r\n"
			if name == "array" {
				first, next = "["+chunk, ","+chunk
			}
			step := func(in relay.Input) string { return string(m.Step(now, in).Client) }
			body := step(relay.Chunk{Attempt: 1, Bytes: []byte(first)})
			now = now.Add(15 * time.Second)
			body += step(relay.Tick{})
			if step(relay.Chunk{Attempt: 1, Bytes: []byte(next)}) == "" {
				t.Fatal("nothing was to be sent")
			}
			body += string(m.Instead(f))
			if name == "array" {
				var all []json.RawMessage
				if err := json.Unmarshal([]byte(body+"]"), &all); err != nil || len(all) != 2 {
					t.Errorf("%v: %q", err, body)
				}
				return
			}
			if events := strings.Split(strings.TrimSuffix(body, "\r\n\r\n"), "\r\n\r\n"); len(events) != 2 || !strings.HasPrefix(events[1], `data:  {"error"`) {
				t.Errorf("got %q", events)
			}
		})
	}
}
