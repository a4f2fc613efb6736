package faultinject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const geminiArrayPath = "/v1beta/models/gemini-3-pro-preview:streamGenerateContent"

// samples is one use of every fault of the catalogue, in the middle of a text, and
// how the log says it ended.
var samples = map[string]struct {
	directive string
	ending    Ending
	until     []string // one of these is seen: the client leaves, since nothing ends
}{
	"rst":           {"rst after event 4", CutReset, nil},
	"fin":           {"fin after event 4", CutFIN, nil},
	"cut":           {"cut at event 4", CutFIN, nil},
	"polite":        {"polite after event 4", CutPolite, nil},
	"eof10":         {"eof10 after event 4", CutPolite, nil},
	"half":          {"half inside event 4", CutFIN, nil},
	"stall":         {"stall 1h after text 1", ClientClosed, anEvent},
	"pings":         {"pings every 1ms after event 4", ClientClosed, signsOfLife},
	"keepalives":    {"keepalives every 1ms after event 4", ClientClosed, signsOfLife},
	"warm":          {"warm every 1ms", ClientClosed, []string{": hb", "}\r\n\r\n\r\n", "event comment"}},
	"trickle":       {"trickle 50", Complete, nil},
	"error":         {"error api after event 4", CutPolite, nil},
	"reset-stream":  {"reset-stream after event 4", CutStream, nil},
	"goaway":        {"goaway after event 4", CutGoAway, nil},
	"refused":       {"refused", CutStream, nil},
	"status":        {"status 503", Replied, nil},
	"garbage":       {"garbage after event 4", Complete, nil},
	"duplicate":     {"duplicate after event 4", Complete, nil},
	"no-blank-line": {"no-blank-line", Complete, nil},
	"no-terminal":   {"no-terminal", CutPolite, nil},
	"after-end":     {"after-end", ClientClosed, []string{"ZZ"}},
	"empty":         {"empty", Replied, nil},
	"only-comments": {"only-comments", Replied, nil},
	"only-done":     {"only-done", Replied, nil},
	"only-blank":    {"only-blank", Replied, nil},
	"html":          {"html", Replied, nil},
	"content-type":  {"content-type text/plain", Complete, nil},
	"gzip":          {"gzip", Complete, nil},
	"br":            {"br", Complete, nil},
	"bad-crc":       {"bad-crc after event 4", Complete, nil},
	"length":        {"length; fin after event 4", CutFIN, nil},
}

var (
	// signsOfLife are what the dialects have of them; an array has white space.
	signsOfLife = []string{": keepalive", "event: ping", `"keepalive"`, `{"usageMetadata": {"promptTokenCount": 1,`, "}\r\n\r\n\r\n", "event comment"}
	// anEvent is the first piece of text.
	anEvent = []string{`"Th"`}
)

// Every fault of the catalogue happens to every dialect, over a socket, and leaves
// the next attempt alone.
func TestEveryFaultInEveryDialect(t *testing.T) {
	type wayIn struct {
		name       string
		dialect    Dialect
		path, body string
	}
	var ways []wayIn
	for _, d := range Dialects() {
		path, body := request(d)
		ways = append(ways, wayIn{string(d), d, path, body})
	}
	_, body := request(Gemini)
	ways = append(ways, wayIn{"gemini array", Gemini, geminiArrayPath, body})
	for _, e := range catalogue {
		use, ok := samples[e.name]
		if !ok {
			t.Errorf("%s has no sample", e.name)
			continue
		}
		for _, way := range ways {
			if e.name == "no-blank-line" && way.name == "gemini array" {
				continue // an array has no blank lines
			}
			if e.name == "bad-crc" && way.dialect.framing(Options{}) != FrameBinary {
				continue // TestTextHasNoChecksums
			}
			t.Run(e.name+"/"+way.name, func(t *testing.T) {
				s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: " + use.directive)})
				client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
				url := s.URL()
				f, err := ParseScript([]byte("attempt 1: " + use.directive))
				if err != nil {
					t.Fatal(err)
				}
				if unmet(f.For(Query{Attempt: 1, Turn: 1}).Faults, HTTP1, way.dialect.framing(Options{})) != nil {
					client, url = h2client(t), "http"+strings.TrimPrefix(s.H2CURL(), "h2c")
				}
				strike(t, client, url+way.path, way.body, use.until)
				list, err := s.WaitLog(patience(t), allEnded(1))
				if err != nil || !list[0].Applied || list[0].Ending != use.ending || list[0].Dialect != way.dialect {
					t.Fatalf("%v applied %v ending %q of %q", err, list[0].Applied, list[0].Ending, list[0].Dialect)
				}
				s.Reset()
				script := "attempt *: pass"
				got := post(t, s, way.path, way.body, HeaderScript, script)
				if got.status != 200 || got.err != nil || !strings.Contains(unframed(got.body), "tree.") {
					t.Errorf("the next attempt: %d %v %s", got.status, got.err, got.body)
				}
			})
		}
	}
}

// strike sends a request and reads what comes; from a fault that never ends it
// leaves when it has seen it.
func strike(t *testing.T, c *http.Client, url, body string, until []string) {
	t.Helper()
	req, err := http.NewRequestWithContext(patience(t), http.MethodPost, url, unrepeatable{strings.NewReader(body)})
	if err != nil {
		t.Fatal(err)
	}
	req.Header = credentials()
	res, err := c.Do(req)
	if err != nil {
		return // the fault
	}
	defer res.Body.Close()
	if until == nil {
		io.Copy(io.Discard, res.Body)
		return
	}
	var seen []byte
	buf := make([]byte, 4096)
	for !slices.ContainsFunc(until, func(mark string) bool { return strings.Contains(unframed(string(seen)), mark) }) {
		n, err := res.Body.Read(buf)
		if seen = append(seen, buf[:n]...); err != nil {
			t.Fatalf("after %s: %v", seen, err)
		}
	}
	c.CloseIdleConnections()
}

// FIELD-REPORTS E1: an error inside the stream, in each of the ways Google says it.
func TestGoogleInBandErrors(t *testing.T) {
	const object = `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`
	const pretty = "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"The model is overloaded. Please try again later.\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n"
	for _, tc := range []struct {
		name    string
		dialect Dialect
		path    string
		script  string
		last    string
	}{
		{"a data frame", Gemini, geminiPath, "error after text 2", "\r\n\r\ndata: " + object + "\r\n\r\n"},
		{"a data frame behind LF", Gemini, geminiPath, "error after text 2; variant lf", "\n\ndata: " + object + "\n\n"},
		{"before anything", Gemini, geminiPath, "error at start", "data: " + object + "\r\n\r\n"},
		{"a body in place of a frame", Gemini, geminiPath, "error as raw after text 2", "\r\n\r\n" + pretty},
		{"an element of the array", Gemini, geminiArrayPath, "error after text 2", "}\n,\r\n" + object + "\n]"},
		{"the only element", Gemini, geminiArrayPath, "error at start", "[" + object + "\n]"},
		{"instead of the first element", Gemini, geminiArrayPath, "error before event 1", "[" + object + "\n]"},
		{"quota", Gemini, geminiPath, "error quota after text 2", `"status":"RESOURCE_EXHAUSTED"}}` + "\r\n\r\n"},
		{"an event", Interactions, interactionsPath, "error after text 2", "\n\nevent: error\ndata: {\"error\":{\"message\":\"The model is overloaded. Please try again later.\",\"code\":\"unavailable\"},\"event_type\":\"error\"}\n\n"},
		{"a bad request as an event", Interactions, interactionsPath, "error invalid after text 2", `"code":"invalid_request"},"event_type":"error"}` + "\n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: " + tc.script)})
			_, body := request(tc.dialect)
			got := post(t, s, tc.path, body)
			if got.status != 200 || got.err != nil || !strings.HasSuffix(got.body, tc.last) {
				t.Errorf("%d %v %q", got.status, got.err, got.body)
			}
			if tc.path == geminiArrayPath && !json.Valid([]byte(got.body)) {
				t.Errorf("no JSON: %s", got.body)
			}
		})
	}
}

func TestGoogleStatuses(t *testing.T) {
	s := start(t, Config{Script: MustScript("attempt 1: status 429 retry-after 7")})
	for _, tc := range []struct {
		dialect    Dialect
		path, says string
	}{
		{Gemini, geminiPath, "{\n  \"error\": {\n    \"code\": 429,\n    \"message\": \"Resource has been exhausted (e.g. check quota).\",\n    \"status\": \"RESOURCE_EXHAUSTED\"\n  }\n}\n"},
		{Interactions, interactionsPath, `{"error":{"message":"Resource has been exhausted (e.g. check quota).","code":"resource_exhausted"}}`},
	} {
		_, body := request(tc.dialect)
		if got := post(t, s, tc.path, body); got.status != 429 || got.body != tc.says || got.header.Get("Retry-After") != "7" {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
	}
}

// What is not asked for with alt=sse is one JSON array, an element a chunk, and a
// refusal is the array's only element.
func TestGeminiArrays(t *testing.T) {
	s := start(t, Config{Scenario: "parallel"})
	_, body := request(Gemini)
	got := post(t, s, geminiArrayPath, body)
	events := post(t, s, geminiPath, body)
	var elements []json.RawMessage
	if err := json.Unmarshal([]byte(got.body), &elements); err != nil {
		t.Fatalf("%v: %s", err, got.body)
	}
	var h heard
	for _, e := range elements {
		h.gemini(t, string(e))
	}
	want := hear(t, Gemini, events.body)
	if fmt.Sprint(h) != fmt.Sprint(want) || !h.ended || got.header.Get("Content-Type") != "application/json; charset=UTF-8" {
		t.Errorf("%v\n%+v\n%+v", got.header, h, want)
	}
	refused := post(t, s, geminiArrayPath, `{}`)
	var errs []struct{ Error struct{ Status string } }
	if err := json.Unmarshal([]byte(refused.body), &errs); err != nil || len(errs) != 1 || errs[0].Error.Status != "INVALID_ARGUMENT" {
		t.Errorf("%v %s", err, refused.body)
	}
}

// Every variant of the frame is one the stream's readers may meet; the answer is
// the same.
func TestGoogleVariants(t *testing.T) {
	for name := range variants(&Variant{}) {
		for _, d := range []Dialect{Gemini, Interactions, Completions} {
			for _, scenario := range []string{"thinking-tool", "unicode"} {
				a, _ := Scenario(scenario, Prompt{Dialect: d}, Config{})
				o := Options{Seed: 3, Model: "gemini-3-pro-preview"}
				if err := o.Variant.Set(name); err != nil {
					t.Fatal(err)
				}
				h := hear(t, d, string(bytes.Join(Raws(Render(d, a, o)), nil)))
				if want := shown(a); name != "split-pairs" && h.text != want || h.finish == "" {
					t.Errorf("%s/%s/%s: %q, want %q; finish %q", d, scenario, name, h.text, want, h.finish)
				}
				if h.ended == (name == "no-done" && d != Gemini) {
					t.Errorf("%s/%s/%s: ended %v", d, scenario, name, h.ended)
				}
			}
		}
	}
}

// Arguments that stream are the ones that come whole.
func TestGeminiStreamedArguments(t *testing.T) {
	s := start(t, Config{Scenario: "big-tool"})
	body := geminiBody([]string{says("user", "Write.")}, `"toolConfig":{"functionCallingConfig":{"mode":"AUTO","streamFunctionCallArguments":true}}`)
	got := post(t, s, geminiPath, body)
	var path, mode string
	bits, ends := 0, 0
	for _, line := range strings.Split(got.body, "\r\n") {
		var c struct {
			Candidates []struct {
				Content struct {
					Parts []struct {
						FunctionCall *struct {
							Name         string
							WillContinue bool
							PartialArgs  []struct {
								JSONPath    string
								StringValue *string
								NumberValue *float64
							}
						}
					}
				}
			}
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &c) != nil {
			continue
		}
		for _, p := range c.Candidates[0].Content.Parts {
			switch f := p.FunctionCall; {
			case f == nil:
			case f.Name == "" && len(f.PartialArgs) == 0 && !f.WillContinue:
				ends++
			default:
				for _, a := range f.PartialArgs {
					if bits++; a.StringValue != nil && a.JSONPath == "$.content" {
						path += *a.StringValue
					}
					if a.NumberValue != nil {
						mode += fmt.Sprint(a.JSONPath, *a.NumberValue, " ")
					}
				}
			}
		}
	}
	if path != longText(120) || mode != "$.mode.bits[0]6 $.mode.bits[1]4 $.mode.bits[2]4 " || ends != 1 || bits < 50 {
		t.Errorf("%d bits, %d ends, %q %q", bits, ends, mode, path)
	}
}

func TestGoogleSideEndpoints(t *testing.T) {
	s := start(t, Config{})
	for _, tc := range []struct {
		name, method, path string
		status             int
		says               string
	}{
		{"models", "GET", "/v1beta/models", 200, `{"models": [{"name": "models/gemini-2.5-flash"`},
		{"a model", "GET", "/v1beta/models/gemini-3-pro-preview", 200, `{"name": "models/gemini-3-pro-preview"`},
		{"count tokens", "POST", "/v1beta/models/gemini-2.5-flash:countTokens", 200, `{"totalTokens": 1,`},
		{"another method", "POST", "/v1beta/models/gemini-2.5-flash:embedContent", 404, "is not supported for embedContent"},
		{"nothing known", "GET", "/v1beta/tunes", 404, `"status": "NOT_FOUND"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, body := fetch(t, s, tc.method, tc.path)
			if status != tc.status || !strings.Contains(body, tc.says) {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

// A fault that is put on a real stream of Gemini stands in the frames that stream
// has, and is placed by what its events are.
func TestFaultsOnAGeminiTarget(t *testing.T) {
	real := start(t, Config{Scenario: "tool"})
	for _, tc := range []struct{ script, last string }{
		{"error before tool", "Let me look that up."},
		{"error after tool", "get_weather"},
		{"garbage before finish", "get_weather"},
	} {
		u, err := url.Parse(real.URL())
		if err != nil {
			t.Fatal(err)
		}
		s := start(t, Config{Target: u, Script: MustScript("attempt 1: " + tc.script)})
		path, body := request(Gemini)
		got := post(t, s, path, body)
		list, err := s.WaitLog(patience(t), allEnded(1))
		if err != nil || !list[0].Applied || list[0].Dialect != Gemini || list[0].Model != "gemini-3-pro-preview" {
			t.Errorf("%s: %v %+v", tc.script, err, list[0])
		}
		if n := strings.Count(got.body, "\r\n\r\n"); n != strings.Count(got.body, "data: ") || strings.Count(got.body, "\n\n") != 0 {
			t.Errorf("%s: frames of two kinds: %q", tc.script, got.body)
		}
		if strings.Contains(got.body, "get_weather") != (tc.last == "get_weather") {
			t.Errorf("%s: %s", tc.script, got.body)
		}
	}
}
