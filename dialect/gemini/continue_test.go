package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/turn"
)

type content struct {
	Role  string
	Parts []struct {
		Text, ThoughtSignature string
		Thought                bool
		FunctionCall           *struct{ Name string }
		ExecutableCode         *struct{ Code string }
		CodeExecutionResult    *struct{ Output string }
		ToolCall, ToolResponse *struct{ ID string }
	}
}

// strict is what the API refuses of a continuation, and what we promise of one. It
// knows nothing of how bodies are built.
func strict(r *dialect.Request, c dialect.Continuation, body []byte) (faults []string) {
	fault := func(format string, a ...any) { faults = append(faults, fmt.Sprintf(format, a...)) }
	var was, now map[string]json.RawMessage
	if err := json.Unmarshal(body, &now); err != nil {
		return []string{"not json: " + err.Error()}
	}
	if err := json.Unmarshal(r.Body, &was); err != nil {
		return []string{"the request is not json: " + err.Error()}
	}
	for k := range was {
		if k != "contents" && k != "generationConfig" && !bytes.Equal(was[k], now[k]) {
			fault("member %s changed to %s", k, now[k])
		}
	}
	for k := range now {
		if _, ok := was[k]; !ok {
			fault("member %s was added", k)
		}
	}
	var old, all []json.RawMessage
	if json.Unmarshal(was["contents"], &old) != nil || json.Unmarshal(now["contents"], &all) != nil || len(all) < len(old) {
		return append(faults, "contents are not the old ones and more")
	}
	for i := range old {
		var m content
		if !bytes.Equal(old[i], all[i]) && (i != len(old)-1 || json.Unmarshal(old[i], &m) != nil || m.Role != "model") {
			fault("content %d changed", i)
		}
	}
	var cs []content
	if err := json.Unmarshal(now["contents"], &cs); err != nil {
		return append(faults, err.Error())
	}
	for i := 1; i < len(cs); i++ {
		if cs[i].Role == "model" && cs[i-1].Role == "model" {
			fault("two model contents in a row")
		}
	}
	at := len(cs) - 1
	if c.Manner == turn.Asked {
		if cs[at].Role != "user" {
			fault("nobody asks")
		}
		at--
	}
	if at < 0 || cs[at].Role != "model" || len(cs[at].Parts) == 0 {
		return append(faults, "no partial model content")
	}
	open := 0
	for i, p := range cs[at].Parts {
		switch {
		case p.FunctionCall != nil:
			fault("functionCall without its functionResponse")
		case p.ExecutableCode != nil, p.ToolCall != nil:
			open++
		case p.CodeExecutionResult != nil, p.ToolResponse != nil:
			open--
		case p.Thought && p.ThoughtSignature == "":
			fault("an unsigned thought")
		case p.Text == "" && p.ThoughtSignature == "":
			fault("an empty part")
		case i == len(cs[at].Parts)-1 && p.Text != strings.TrimRightFunc(p.Text, unicode.IsSpace):
			fault("trailing white space")
		}
		if strings.ContainsRune(p.Text, unicode.ReplacementChar) {
			fault("a character was torn")
		}
	}
	if open != 0 {
		fault("code without a result")
	}
	for _, word := range []string{"responseSchema", "responseJsonSchema", "responseMimeType"} {
		if r.Structured && bytes.Contains(now["generationConfig"], []byte(word)) {
			fault("%s starts its grammar over", word)
		}
	}
	return faults
}

var manners = []turn.Manner{turn.Prefill, turn.Asked}

// Every turn of the golden cases, cut behind every event, gives a request that the
// API takes, or a named refusal.
func TestEveryCutGivesASoundRequest(t *testing.T) {
	built, refused := 0, map[error]int{}
	for _, c := range dialecttest.Golden(t, Dialect{}, "testdata") {
		if slices.Contains(apart, c.Name) && c.Name != "checkpoints" {
			continue
		}
		r := dialecttest.Parse(t, Dialect{}, c.Request)
		units := dialecttest.Units(c.Stream)
		deltas, err := dialecttest.Decode(Dialect{}, r, units)
		if err != nil {
			t.Fatal(err)
		}
		for k := range units {
			s, err := dialecttest.Fold(deltas[:k])
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range manners {
				con := dialect.Continuation{Manner: m, Anchor: 40, Sentinel: "[[COMPLETE]]", MaxTokens: 7}
				body, err := Dialect{}.Continue(r, s, con)
				if err != nil {
					named := false
					for _, e := range []error{ErrNothing, ErrCall, ErrHostedTool, ErrUnknown} {
						if errors.Is(err, e) {
							refused[e]++
							named = true
						}
					}
					if !named {
						t.Errorf("%s cut at %d: %v", c.Name, k, err)
					}
					continue
				}
				built++
				for _, f := range strict(r, con, body) {
					t.Errorf("%s cut at %d, %v: %s\n%s", c.Name, k, m, f, body)
				}
			}
		}
	}
	if built < 50 || refused[ErrNothing] == 0 || refused[ErrCall] == 0 || refused[ErrHostedTool] == 0 || refused[ErrUnknown] == 0 {
		t.Errorf("%d requests, refusals %v", built, refused)
	}
}

func TestContinue(t *testing.T) {
	const q = `{"contents":[{"role":"user","parts":[{"text":"q"}]}`
	const tail = `"modelVersion":"gemini-3-pro","responseId":"A"}`
	ask := `,{"role":"user","parts":[{"text":"…"}]}`
	for _, c := range []struct {
		name, request string
		said          []string
		c             dialect.Continuation
		want          string // of contents and generationConfig; … stands for the question
		err           error
	}{
		{name: "prefill", request: q + `]}`, said: []string{parts(`{"text":"One "}`), parts(`{"text":"two \n"}`)},
			c:    dialect.Continuation{Manner: turn.Prefill},
			want: q + `,{"role":"model","parts":[{"text":"One two"}]}]}`},
		{name: "asked", request: q + `]}`, said: []string{parts(`{"text":"One"}`)},
			c:    dialect.Continuation{Manner: turn.Asked, Anchor: 40},
			want: q + `,{"role":"model","parts":[{"text":"One"}]}` + ask + `]}`},
		{name: "signatures stay in their parts", request: q + `]}`,
			said: []string{parts(`{"text":"Hm.","thought":true},{"text":"One","thoughtSignature":"czE="},{"text":" two"}`), parts(`{"text":"","thoughtSignature":"czI="},{"text":" three"}`)},
			c:    dialect.Continuation{Manner: turn.Prefill},
			want: q + `,{"role":"model","parts":[{"text":"One"},{"text":"","thoughtSignature":"czE="},{"text":" two"},{"text":"","thoughtSignature":"czI="},{"text":" three"}]}]}`},
		{name: "a signed thought comes back", request: q + `]}`, said: []string{parts(`{"text":"Hm.","thought":true,"thoughtSignature":"czA="},{"text":"One"}`)},
			c:    dialect.Continuation{Manner: turn.Prefill},
			want: q + `,{"role":"model","parts":[{"text":"Hm.","thought":true,"thoughtSignature":"czA="},{"text":"One"}]}]}`},
		{name: "another model gets no signatures", request: q + `]}`, said: []string{parts(`{"text":"Hm.","thought":true,"thoughtSignature":"czA="},{"text":"One","thoughtSignature":"czE="},{"text":" two"}`)},
			c:    dialect.Continuation{Manner: turn.Prefill, Model: "gemini-2.5-pro"},
			want: q + `,{"role":"model","parts":[{"text":"One two"}]}]}`},
		{name: "code and its result come back", request: q + `]}`,
			said: []string{parts(`{"executableCode":{"code":"1"},"thoughtSignature":"czE="}`), parts(`{"codeExecutionResult":{"output":"1"}}`)},
			c:    dialect.Continuation{Manner: turn.Prefill},
			want: q + `,{"role":"model","parts":[{"executableCode":{"code":"1"},"thoughtSignature":"czE="},{"codeExecutionResult":{"output":"1"}}]}]}`},
		{name: "an unfinished call is left out", request: q + `]}`, said: []string{parts(`{"text":"One"},{"functionCall":{"name":"f","willContinue":true}}`)},
			c:    dialect.Continuation{Manner: turn.Prefill},
			want: q + `,{"role":"model","parts":[{"text":"One"}]}]}`},
		{name: "half a character is left out", request: q + `]}`, said: []string{parts(`{"text":"One \ud83d"}`)},
			c:    dialect.Continuation{Manner: turn.Prefill},
			want: q + `,{"role":"model","parts":[{"text":"One"}]}]}`},
		{name: "the caller's own model turn is extended", request: `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"Well, "}]}],"generationConfig":{"maxOutputTokens":100,"seed":1}}`,
			said: []string{parts(`{"text":"One"}`)}, c: dialect.Continuation{Manner: turn.Prefill, MaxTokens: 40},
			want: q + `,{"role":"model","parts":[{"text":"Well, One"}]}],"generationConfig":{"maxOutputTokens":40,"seed":1}}`},
		{name: "extended and asked", request: `{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"Well,","thoughtSignature":"cw=="}]}]}`,
			said: []string{parts(`{"text":" One"}`)}, c: dialect.Continuation{Manner: turn.Asked, Anchor: 5},
			want: q + `,{"role":"model","parts":[{"text":"Well,","thoughtSignature":"cw=="},{"text":" One"}]}` + ask + `]}`},
		{name: "structured output loses its grammar", request: `{"contents":[{"role":"user","parts":[{"text":"q"}]}],"generation_config":{"response_mime_type":"application/json","responseSchema":{"type":"OBJECT"},"temperature":0}}`,
			said: []string{parts(`{"text":"{\"a\":"}`)}, c: dialect.Continuation{Manner: turn.Prefill},
			want: q + `,{"role":"model","parts":[{"text":"{\"a\":"}]}],"generation_config":{"temperature":0}}`},
		{name: "from the last checkpoint", request: q + `],"generationConfig":{"maxOutputTokens":100}}`,
			said: []string{parts(`{"text":"One"}`),
				`{"candidates":[{"content":{"parts":[{"text":" two"}]},"continuationToken":"dDE="}],` + tail,
				`{"candidates":[{"content":{"parts":[{"text":" three"}]},"continuationToken":"dDI="}],` + tail, parts(`{"text":" fo"}`)},
			c:    dialect.Continuation{Manner: turn.Provider, MaxTokens: 40},
			want: q + `],"generationConfig":{"maxOutputTokens":100},"continuationToken":"dDI="}`},
		{name: "no checkpoint", request: q + `]}`, said: []string{parts(`{"text":"One"}`)}, c: dialect.Continuation{Manner: turn.Provider}, err: ErrNoCheckpoint},
		{name: "no manner", request: q + `]}`, said: []string{parts(`{"text":"One"}`)}, err: ErrManner},
		{name: "nothing said", request: q + `]}`, said: []string{parts(`{"text":" \n"}`)}, c: dialect.Continuation{Manner: turn.Prefill}, err: ErrNothing},
		{name: "a whole call", request: q + `]}`, said: []string{parts(`{"text":"x"},{"functionCall":{"name":"f","args":{"a":1}}}`)}, c: dialect.Continuation{Manner: turn.Prefill}, err: ErrCall},
		{name: "code without a result", request: q + `]}`, said: []string{parts(`{"text":"x"},{"executableCode":{"code":"1"}}`)}, c: dialect.Continuation{Manner: turn.Prefill}, err: ErrHostedTool},
		{name: "a picture", request: q + `]}`, said: []string{parts(`{"text":"x"},{"inlineData":{"data":"aQ=="}}`)}, c: dialect.Continuation{Manner: turn.Prefill}, err: ErrUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := dialecttest.Parse(t, Dialect{}, []byte(c.request))
			s := dialecttest.Read(t, Dialect{}, r, data(c.said...))
			body, err := Dialect{}.Continue(r, s, c.c)
			if !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			got := string(body)
			if at := strings.Index(got, `{"role":"user","parts":[{"text":"Your previous`); at >= 0 {
				end := at + strings.Index(got[at:], `"}]}`)
				got = got[:at] + `{"role":"user","parts":[{"text":"…` + got[end:]
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestTheQuestionQuotesTheEndAndNamesTheSentinel(t *testing.T) {
	r := dialecttest.Parse(t, Dialect{}, []byte(`{"contents":[{"parts":[{"text":"q"}]}],"generationConfig":{"responseMimeType":"application/json"}}`))
	body, err := Dialect{}.Continue(r, said(t, parts(`{"text":"{\"word\": \"caf\u00e9 "}`)), dialect.Continuation{Manner: turn.Asked, Anchor: 6, Sentinel: "[[DONE]]"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`→\"café←`, "[[DONE]]", "one JSON document"} {
		if !bytes.Contains(body, []byte(want)) {
			t.Errorf("no %q in %s", want, body)
		}
	}
}

// A token belongs to the request that its response answered. What a prefill hop says
// of its own checkpoints must not be taken for the caller's.
func TestACheckpointOfALaterAttemptIsNotTheCallers(t *testing.T) {
	s := said(t, `{"candidates":[{"content":{"parts":[{"text":"a"}]},"continuationToken":"dDE="}],"responseId":"A"}`)
	fold(t, s, turn.Delta{Kind: turn.Open, Of: turn.Prose, Block: len(s.Blocks), Raw: []byte(`{"continuationToken":"dDI=","responseId":"B"}`)})
	body, err := Dialect{}.Continue(request(t), s, dialect.Continuation{Manner: turn.Provider})
	if err != nil || !bytes.Contains(body, []byte(`"continuationToken":"dDE="`)) {
		t.Errorf("%s, %v", body, err)
	}
}
