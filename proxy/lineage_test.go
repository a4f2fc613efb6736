package proxy

import (
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

const responsesPath = "/v1/responses"

// spliced answers with half of a text under id, and its continuation with the rest
// under an id of its own.
func spliced(id string) (first, rest func(*asked)) {
	return func(a *asked) {
			a.stream()
			a.chunks(respCreated(id), respOpens(id), respSays(id, said))
			a.rst()
		}, func(a *asked) {
			a.stream()
			a.chunk(respCreated(id + "_b"))
			a.chunks(respText(id+"_b", said[len(said)-40:]+left)...)
			a.end()
		}
}

func answered(id string) func(*asked) {
	return func(a *asked) {
		a.stream()
		a.chunk(respCreated(id))
		a.chunks(respText(id, "Fine.")...)
		a.end()
	}
}

// wholeText is the spliced turn as an item of a later request.
const wholeText = `{"type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"` + said + left + `"}]}`

func user(text string) string { return `{"role":"user","content":"` + text + `"}` }

func converse(t *testing.T, s *proxied, body string, header ...string) string {
	t.Helper()
	answer, err := allOf(dial(t, s.addr).post(responsesPath, body, append(header, "Connection: close")...).response())
	if err != nil {
		t.Fatalf("the answer broke off: %v\n%s", err, answer)
	}
	return answer
}

// A turn that was spliced has an id that the provider does not know: the first hop's.
// A later request that names it carries the turn instead, back to one that the
// provider knows.
func TestSplicedIdsAreExpanded(t *testing.T) {
	one, two := spliced("resp_1")
	three, four := spliced("resp_2")
	p := newProvider(t, one, two, three, four, answered("resp_3"), answered("resp_4"), answered("resp_5"))
	s := start(t, p)

	answer := converse(t, s, `{"model":"gpt-x","stream":true,"previous_response_id":"resp_0","input":"Say it"}`, ann)
	if !strings.Contains(answer, `"id":"resp_1"`) || strings.Contains(answer, "resp_1_b") {
		t.Fatalf("the client should have the first hop's id: %s", answer)
	}
	p.next()
	if hop := string(p.next().body); !strings.Contains(hop, `"store":false`) || !strings.Contains(hop, `"previous_response_id":"resp_0"`) {
		t.Errorf("the continuation is stored, or builds on something else: %s", hop)
	}

	converse(t, s, `{"model":"gpt-x","stream":true,"previous_response_id":"resp_1","input":"More"}`, ann)
	want := `{"model":"gpt-x","stream":true,"previous_response_id":"resp_0","input":[` + user("Say it") + `,` + wholeText + `,` + user("More") + `]}`
	if got := string(p.next().body); got != want {
		t.Errorf("the second turn reached the provider as\n%s\nwant\n%s", got, want)
	}
	if hop := string(p.next().body); !strings.Contains(hop, wholeText) || strings.Contains(hop, `"resp_1"`) {
		t.Errorf("its continuation builds on what the provider does not know: %s", hop)
	}

	// The second turn was spliced, too: the third builds on both.
	converse(t, s, `{"model":"gpt-x","stream":true,"previous_response_id":"resp_2","input":[`+user("Last")+`]}`, ann)
	want = `{"model":"gpt-x","stream":true,"previous_response_id":"resp_0","input":[` + user("Say it") + `,` + wholeText + `,` + user("More") + `,` + wholeText + `,` + user("Last") + `]}`
	if got := string(p.next().body); got != want {
		t.Errorf("the third turn reached the provider as\n%s\nwant\n%s", got, want)
	}

	for who, header := range map[string][]string{"another caller": {bob}, "nobody": nil} {
		body := `{"model":"gpt-x","stream":true,"previous_response_id":"resp_1","input":"More"}`
		converse(t, s, body, header...)
		if got := string(p.next().body); got != body {
			t.Errorf("%s's request was altered: %s", who, got)
		}
	}
	if n := s.Stats().Expanded; n != 2 {
		t.Errorf("%d expanded requests are counted, want 2", n)
	}
}

// An id that the provider knows is its own to look up.
func TestKnownIdsStay(t *testing.T) {
	p := newProvider(t, answered("resp_1"), answered("resp_2"))
	s := start(t, p)
	converse(t, s, `{"model":"gpt-x","stream":true,"input":"Say it"}`, ann)
	p.next()
	body := `{"model":"gpt-x","stream":true,"previous_response_id":"resp_1","input":"More"}`
	converse(t, s, body, ann)
	if got := string(p.next().body); got != body {
		t.Errorf("altered: %s", got)
	}
}

// R2 under an id: the results come alone, and are told of, in front of them the turn.
func TestResultsOfASplicedTurnThatIsNamed(t *testing.T) {
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(respCreated("resp_1"), respCall(0, "c1", "look", `{"at":1}`, true), respCall(1, "c2", "send", `{"to":`, false))
		a.rst()
	}, answered("resp_2"))
	s := start(t, p)
	converse(t, s, `{"model":"gpt-x","stream":true,"input":"Go"}`, ann)
	p.next()
	converse(t, s, `{"model":"gpt-x","stream":true,"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"c1","output":"seen"}]}`, ann)
	want := `{"model":"gpt-x","stream":true,"input":[` + user("Go") +
		`,{"type":"function_call","status":"completed","arguments":"{\"at\":1}","call_id":"c1","name":"look"}` +
		`,{"type":"function_call_output","call_id":"c1","output":"seen\n\n` + words + `"}]}`
	if got := string(p.next().body); got != want {
		t.Errorf("it reached the provider as\n%s\nwant\n%s", got, want)
	}
}

// A client that names the items of a turn one by one gets those that only Unbroken
// knows put in place.
func TestItemsOfASplicedTurnThatAreNamed(t *testing.T) {
	one, two := spliced("resp_1")
	p := newProvider(t, one, two, answered("resp_2"))
	s := start(t, p)
	converse(t, s, `{"model":"gpt-x","stream":true,"input":"Say it"}`, ann)
	p.next()
	p.next()
	const refs = `{"type":"item_reference","id":"msg_known"},{"type":"item_reference","id":"msg_resp_1"}`
	body := func(items string) string {
		return `{"model":"gpt-x","stream":true,"input":[` + user("Say it") + `,` + items + `,` + user("More") + `]}`
	}
	converse(t, s, body(refs), ann)
	if got, want := string(p.next().body), body(`{"type":"item_reference","id":"msg_known"},`+wholeText); got != want {
		t.Errorf("it reached the provider as\n%s\nwant\n%s", got, want)
	}
	converse(t, s, body(refs), bob)
	if got := string(p.next().body); got != body(refs) {
		t.Errorf("another caller's was altered: %s", got)
	}
}

func TestWhatIsTooLargeIsNotKept(t *testing.T) {
	one, two := spliced("resp_1")
	p := newProvider(t, one, two, answered("resp_2"))
	s := start(t, p, func(c *Config) { c.MaxKept = 200 })
	converse(t, s, `{"model":"gpt-x","stream":true,"input":"`+strings.Repeat("x", 200)+`"}`, ann)
	p.next()
	p.next()
	body := `{"model":"gpt-x","stream":true,"previous_response_id":"resp_1","input":"More"}`
	converse(t, s, body, ann)
	if got := string(p.next().body); got != body {
		t.Errorf("altered: %s", got)
	}
	if n := s.Stats().Unremembered; n != 1 {
		t.Errorf("%d turns are counted as not remembered, want 1", n)
	}
}

// Another replica than the one that spliced the turn expands its id.
func TestReplicasExpandTheSame(t *testing.T) {
	one, two := spliced("resp_1")
	p := newProvider(t, one, two, answered("resp_2"))
	addr := miniredis.RunT(t).Addr()
	first, second := overRedis(t, p, addr), overRedis(t, p, addr)
	converse(t, first, `{"model":"gpt-x","stream":true,"input":"Say it"}`, ann)
	p.next()
	p.next()
	converse(t, second, `{"model":"gpt-x","stream":true,"previous_response_id":"resp_1","input":"More"}`, ann)
	want := `{"model":"gpt-x","stream":true,"input":[` + user("Say it") + `,` + wholeText + `,` + user("More") + `]}`
	if got := string(p.next().body); got != want {
		t.Errorf("it reached the provider as\n%s\nwant\n%s", got, want)
	}
}

// A request with a conversation is refused rather than sent again: what a second
// attempt says would join it, too.
func TestAConversationIsNeverSentTwice(t *testing.T) {
	const body = `{"model":"gpt-x","stream":true,"conversation":"conv_1","input":"Go"}`
	for name, breaks := range map[string]func(*asked){
		"in its text": func(a *asked) {
			a.stream()
			a.chunks(respCreated("resp_1"), respOpens("resp_1"), respSays("resp_1", said))
			a.rst()
		},
		"behind a whole call": func(a *asked) {
			a.stream()
			a.chunks(respCreated("resp_1"), respCall(0, "c1", "look", `{"at":1}`, true))
			a.rst()
		},
		"before it said anything": func(a *asked) {
			a.stream()
			a.chunk(respCreated("resp_1"))
			a.rst()
		},
		"without a word":      func(a *asked) { a.rst() },
		"by a failed gateway": func(a *asked) { a.answer(502, `{"error":{"message":"bad gateway"}}`) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, breaks, answered("resp_2"))
			s := start(t, p)
			res := dial(t, s.addr).post(responsesPath, body, ann, "Connection: close").response()
			answer, err := allOf(res)
			if res.StatusCode == 200 && err == nil {
				t.Errorf("the turn ended as if it were whole: %s", answer)
			}
			if strings.Contains(answer, "Fine.") {
				t.Errorf("it was sent again: %s", answer)
			}
			if n := p.hits(); n != 1 {
				t.Errorf("the provider was asked %d times", n)
			}
		})
	}
	t.Run("by a refusal to begin", func(t *testing.T) {
		p := newProvider(t, func(a *asked) { a.answer(429, `{"error":{"message":"slow down"}}`) }, answered("resp_2"))
		s := start(t, p)
		if answer := converse(t, s, body, ann); !strings.Contains(answer, "Fine.") || p.hits() != 2 {
			t.Errorf("asked %d times: %s", p.hits(), answer)
		}
	})
}

// A request that declares a provider's tool with effects is not sent twice, in any
// dialect: the tool may have run.
func TestHostedToolsNeverRunTwice(t *testing.T) {
	for name, c := range map[string]struct{ path, body, head string }{
		"chat":            {"/v1/chat/completions", `{"model":"m","stream":true,"tools":[{"type":"mcp"}],"messages":[{"role":"user","content":"Go"}]}`, oc("")},
		"messages":        {"/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"mcp_servers":[{"type":"url","url":"https://x","name":"mail"}],"messages":[{"role":"user","content":"Go"}]}`, ms()},
		"messages, code":  {"/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"tools":[{"type":"code_execution_20250825","name":"code_execution"}],"messages":[{"role":"user","content":"Go"}]}`, ms()},
		"responses":       {responsesPath, `{"model":"m","stream":true,"tools":[{"type":"mcp","server_label":"mail"}],"input":"Go"}`, respCreated("resp_1")},
		"responses, code": {responsesPath, `{"model":"m","stream":true,"tools":[{"type":"code_interpreter","container":{"type":"auto"}}],"input":"Go"}`, respCreated("resp_1")},
		"gemini":          {"/v1beta/models/gemini-x:streamGenerateContent?alt=sse", `{"tools":[{"codeExecution":{}}],"contents":[{"role":"user","parts":[{"text":"Go"}]}]}`, ""},
	} {
		for when, breaks := range map[string]func(*asked){
			"before the stream": func(a *asked) { a.rst() },
			"behind the head": func(a *asked) {
				a.stream()
				if c.head != "" {
					a.chunk(c.head)
				}
				a.rst()
			},
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				p := newProvider(t, breaks)
				s := start(t, p, withGemini(p))
				res := dial(t, s.addr).post(c.path, c.body, ann, "Connection: close").response()
				if answer, err := allOf(res); res.StatusCode == 200 && err == nil {
					t.Errorf("the turn ended as if it were whole: %s", answer)
				}
				if n := p.hits(); n != 1 {
					t.Errorf("the provider was asked %d times", n)
				}
			})
		}
	}
}
