package faultinject

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// ask is an instruction in the words a proxy of ours uses: it quotes the tail
// between tags, asks for it again, and names a sentinel.
func ask(tail string) string {
	return "Your previous message was cut off by a connection fault before it was complete. It ends with exactly these characters, between the tags:\n<end>" + tail +
		"</end>\nBegin your reply by repeating exactly those characters, without the tags, and go straight on from there. Do not greet, explain, apologise or comment, " +
		"do not start over, do not open a code fence that is already open, and keep to the language, style and format of the message so far: your reply is joined to it as it is. " +
		"If the message was already complete, reply with only [[COMPLETE]]."
}

// askChat is the same in the words of the Chat dialect, which keeps the tail's
// whitespace.
func askChat(tail string) string {
	return "Your previous reply was cut off in transmission. Its last characters are, between the two arrows:\n→" + tail +
		"←\nBegin with exactly these characters again, without the arrows, and go on from there as if it had never stopped: no preamble, no comment, " +
		"no repetition of what comes before them, no newly opened code fence. If nothing is missing, answer only [[COMPLETE]]."
}

// plainAsk quotes nothing and forbids repetition, as WIRE 2.2 words it.
const plainAsk = "Your previous response was interrupted. Continue from exactly where you left off, with no repetition or preamble."

func TestRestIsHonestForEveryCut(t *testing.T) {
	cases := 0
	for _, name := range ScenarioNames() {
		a, err := Scenario(name, Prompt{}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		whole := a.Text()
		for i := 0; i <= len(whole); i++ {
			said := whole[:i]
			rest, ok := Rest(a, said)
			if !ok || said+rest.Text() != whole {
				t.Fatalf("%s cut at %d: %q + %q", name, i, said, rest.Text())
			}
			if i < len(whole) && len(rest.Blocks) == 0 {
				t.Fatalf("%s cut at %d: nothing left", name, i)
			}
			trimmed := strings.TrimRight(said, " \t\r\n")
			if rest, ok := restTrimmed(a, trimmed); !ok || trimmed+rest.Text() != whole {
				t.Fatalf("%s cut at %d, trimmed: %q", name, i, rest.Text())
			}
			cases++
		}
	}
	t.Logf("%d cuts", cases)
}

func TestRestOfBlocks(t *testing.T) {
	a := Answer{Finish: FinishTool, Blocks: []Block{
		{Kind: ThinkingBlock, Text: "hm"}, text("AB"), {Kind: ToolBlock, Name: "f"}, text("CD"), {Kind: ToolBlock, Name: "g"}}}
	for _, tc := range []struct {
		name, said, want string
		ok               bool
	}{
		{"nothing said", "", "think text:AB f text:CD g", true},
		{"inside the first text", "A", "text:B f text:CD g", true},
		{"at a call", "AB", "f text:CD g", true},
		{"in the second text: the call before it is over", "ABC", "text:D g", true},
		{"only a call is missing", "ABCD", "g", true},
		{"another text", "AX", "", false},
		{"more than the text", "ABCDE", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rest, ok := Rest(a, tc.said)
			var got []string
			for _, k := range rest.Blocks {
				switch k.Kind {
				case TextBlock:
					got = append(got, "text:"+k.Text)
				case ThinkingBlock:
					got = append(got, "think")
				default:
					got = append(got, k.Name)
				}
			}
			if strings.Join(got, " ") != tc.want || ok != tc.ok {
				t.Errorf("%v %v", got, ok)
			}
		})
	}
}

// Every event boundary of an answer, continued over the wire in each manner.
func TestContinuedAnswersEqualTheWhole(t *testing.T) {
	question := msg("user", "Go.")
	for _, scenario := range []string{"text", "code", "whitespace", "unicode", "structured"} {
		s := start(t, Config{Scenario: scenario})
		c := &http.Client{Transport: &http.Transport{}}
		t.Cleanup(c.CloseIdleConnections)
		a, _ := Scenario(scenario, Prompt{}, Config{})
		said := ""
		for i, tok := range tokens(a.Text(), 7) {
			said += tok
			partial := strings.TrimRightFunc(said, unicode.IsSpace)
			if partial == "" || i%4 != 0 {
				continue
			}
			trimmedTail := strings.TrimSpace(tailRunes(said, 40))
			for _, m := range []struct {
				name, path, body string
				echo             string
			}{
				{"prefill", messagesPath, messagesBody("claude-sonnet-4-5", question, msg("assistant", partial)), ""},
				{"asked with anchor", messagesPath, messagesBody("claude-opus-4-6", question, msg("assistant", partial), msg("user", ask(trimmedTail))), trimmedTail},
				{"asked with anchor in chat", chatPath, chatBody("gpt-4.1", question, msg("assistant", said), msg("user", askChat(tail(said)))), tail(said)},
				{"asked plainly", chatPath, chatBody("gpt-4.1", question, msg("assistant", partial), msg("user", plainAsk)), ""},
				{"asked with anchor in responses", responsesPath, responsesBody("gpt-5.1", question, msg("assistant", partial), msg("user", ask(trimmedTail))), trimmedTail},
				{"prefill in converse", converseAt(bedrockClaude), converseBody([]string{saying("user", "Go."), saying("assistant", partial)}), ""},
				{"asked with anchor in converse", converseAt(bedrockLater), converseBody([]string{saying("user", "Go."), saying("assistant", partial), saying("user", ask(trimmedTail))}), trimmedTail},
				{"asked plainly in converse", converseAt("us.amazon.nova-pro-v1:0"), converseBody([]string{saying("user", "Go."), saying("assistant", partial), saying("user", plainAsk)}), ""},
				{"prefill in invoke", invokeAt(bedrockClaude), invokeBody([]string{question, msg("assistant", partial)}), ""},
				{"asked with anchor in invoke", invokeAt(bedrockLater), invokeBody([]string{question, msg("assistant", partial), msg("user", ask(trimmedTail))}), trimmedTail},
				{"asked plainly in responses", responsesPath, responsesBody("gpt-5.1", question, msg("assistant", partial), msg("user", plainAsk)), ""},
			} {
				s.Reset()
				got := postWith(t, c, s.URL()+m.path, m.body)
				h := hear(t, speakerFor(received{method: http.MethodPost, path: m.path}).dialect(), got.body)
				heardText, echoed := strings.CutPrefix(h.text, m.echo)
				if partial == a.Text() && h.text == "[[COMPLETE]]" {
					heardText, echoed = "", true
				}
				sent := partial
				if m.name == "asked with anchor in chat" {
					sent = said // with its trailing whitespace
				}
				if got.err != nil || got.status != 200 || !echoed || sent+heardText != a.Text() {
					t.Fatalf("%s/%s after %q: %d %v\n%q", scenario, m.name, partial, got.status, got.err, h.text)
				}
			}
		}
	}
}

// tail is the last 40 bytes or so.
func tail(s string) string {
	at := max(0, len(s)-40)
	for !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}

func TestInstructions(t *testing.T) {
	const said = "It was raining. The quick brown fox jumps over"
	for _, tc := range []struct{ name, said, instruction, anchor, sentinel string }{
		{"our own words", said, ask("quick brown fox jumps over"), "quick brown fox jumps over", "[[COMPLETE]]"},
		{"our own words for chat", said, askChat("fox jumps over"), "fox jumps over", "[[COMPLETE]]"},
		{"a tail that ends in whitespace", said + ":\n\n", askChat(" over:\n\n"), " over:\n\n", "[[COMPLETE]]"},
		{"a tail whose whitespace was not quoted", said + ":\n\n", ask("fox jumps over:"), "fox jumps over:\n\n", "[[COMPLETE]]"},
		{"no repetition wanted", said, plainAsk, "", ""},
		{"quoted but not to be repeated", said, `It ended with "brown fox jumps over". Continue, do not repeat it.`, "", ""},
		{"begin with", said, `Continue. Begin with the last words, "fox jumps over", exactly.`, "fox jumps over", ""},
		{"verbatim, angle brackets", said, "Repeat these characters verbatim first: <<<brown fox jumps over>>> If nothing is missing, answer <<END>>.", "brown fox jumps over", "<<END>>"},
		{"a word for the sentinel", said, "Continue. If it was finished, say UNBROKEN_END.", "", "UNBROKEN_END"},
		{"a quoted sentinel", said, "Continue. If nothing is missing answer `fin` only.", "", "fin"},
		{"a very short tail needs marks", "AB", "Begin by repeating \"AB\" verbatim.", "AB", ""},
		{"a very short tail in prose is none", "the", "Continue with the other repeated words verbatim.", "", ""},
		{"the anchor is no instruction", "when done, run `go run .` and wait", ask("when done, run `go run .` and wait"), "when done, run `go run .` and wait", "[[COMPLETE]]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			anchor, sentinel := readInstruction(tc.said, tc.instruction)
			if anchor != tc.anchor || sentinel != tc.sentinel {
				t.Errorf("anchor %q, sentinel %q", anchor, sentinel)
			}
		})
	}
}

func TestNothingMissing(t *testing.T) {
	question := msg("user", "Go.")
	for _, tc := range []struct{ name, scenario, body, text string }{
		{"prefill: the model just ends", "text", messagesBody("claude-sonnet-4-5", question, msg("assistant", shortText)), ""},
		{"asked: the sentinel", "text", messagesBody("claude-opus-4-6", question, msg("assistant", shortText), msg("user", ask(tailRunes(shortText, 40)))), "[[COMPLETE]]"},
		{"the next question is no continuation", "text", messagesBody("claude-opus-4-6", question, msg("assistant", shortText), msg("user", "And now?")), shortText},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: tc.scenario})
			got := post(t, s, messagesPath, tc.body)
			h := hear(t, Messages, got.body)
			if h.text != tc.text || !h.ended {
				t.Errorf("%d %q ended %v", got.status, h.text, h.ended)
			}
		})
	}
}

func TestCallersOwnPrefillIsNotTheAnswer(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: fin after text 4")})
	question := msg("user", "Go.")
	first := post(t, s, messagesPath, messagesBody("claude-sonnet-4-5", question, msg("assistant", "Once upon a time:")))
	said := hear(t, Messages, first.body).text
	if said == "" || !strings.HasPrefix(shortText, said) {
		t.Fatalf("first attempt said %q", said)
	}
	partial := "Once upon a time:" + strings.TrimRight(said, " ")
	second := post(t, s, messagesPath, messagesBody("claude-sonnet-4-5", question, msg("assistant", partial)))
	if got := partial + hear(t, Messages, second.body).text; got != "Once upon a time:"+shortText {
		t.Errorf("%q", got)
	}
}

// FIELD-REPORTS D4 and DESIGN §4: what a model may do at the seam.
func TestSeams(t *testing.T) {
	const cut = 30
	said := shortText[:cut]
	rest := shortText[cut:]
	for _, tc := range []struct{ seam, want string }{
		{"exact", rest},
		{"honour", tailRunes(said, 20) + rest},
		{"echo-anchor", tailRunes(said, 20) + rest},
		{"echo-tail 12", tailRunes(said, 12) + rest},
		{"echo-sentence", said + rest},
		{"restart", shortText},
		{"preamble", preamble + rest},
		{"preamble-restart", preamble + shortText},
		{"refence", "```\n" + rest},
		{"empty", ""},
		{"whitespace", " \n" + rest},
		{"thinking-first", rest},
		{"second-tool", rest},
		{"schema-restart", shortText},
	} {
		t.Run(tc.seam, func(t *testing.T) {
			s := start(t, Config{Scenario: "text", Script: MustScript("attempt *: seam " + tc.seam)})
			body := messagesBody("claude-opus-4-6", msg("user", "Go."), msg("assistant", said), msg("user", ask(tailRunes(said, 20))))
			got := hear(t, Messages, post(t, s, messagesPath, body).body)
			if got.text != tc.want || !got.ended {
				t.Errorf("%q, want %q", got.text, tc.want)
			}
			if (got.thinking != "") != (tc.seam == "thinking-first") || (len(got.calls) > 0) != (tc.seam == "second-tool") {
				t.Errorf("thinking %q, calls %v", got.thinking, got.calls)
			}
			if list := s.Log(); list[0].Continuation.Manner != Asked || list[0].Seam != tc.seam {
				t.Errorf("log: %+v %s", list[0].Continuation, list[0].Seam)
			}
		})
	}
	t.Run("diverge", func(t *testing.T) {
		j := join{whole: say(shortText), rest: say(rest), c: Continuation{Said: said}}
		if got := diverge(j).Text(); strings.Contains(shortText, got[:8]) {
			t.Errorf("%q", got)
		}
		if got := restartDiverge(j).Text(); !strings.HasPrefix(got, said[:10]) || strings.HasPrefix(got, said) {
			t.Errorf("%q", got)
		}
	})
}

func TestSchemaLeftOnStartsOver(t *testing.T) {
	s := start(t, Config{Scenario: "structured"})
	a, _ := Scenario("structured", Prompt{}, Config{})
	said := a.Text()[:40]
	body := strings.Replace(chatBody("gpt-4.1", msg("user", "Go."), msg("assistant", said), msg("user", plainAsk)), `"stream"`,
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}},"stream"`, 1)
	// The schema changes what the model means to say; the turn remembers it.
	post(t, s, chatPath, chatBody("gpt-4.1", msg("user", "Go.")), HeaderTurn, "t")
	s.turns.mu.Lock()
	s.turns.byID["t/1"] = &turnState{attempts: 1, whole: a}
	s.turns.mu.Unlock()
	got := hear(t, Chat, post(t, s, chatPath, body, HeaderTurn, "t").body).text
	if !strings.HasPrefix(got, `{"title":"A long report"`) {
		t.Errorf("%q", got)
	}
}

func TestTurnsOfConcurrentAgents(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("every stream: fin after text 6 once")})
	done := make(chan error)
	const agents = 8
	for i := range agents {
		go func() { done <- agentTurn(t, s, fmt.Sprintf("Question of agent %d", i)) }()
	}
	for range agents {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// agentTurn is cut once and continues.
func agentTurn(t *testing.T, s *Server, question string) error {
	first := post(t, s, chatPath, chatBody("gpt-4.1", msg("user", question)))
	said := hear(t, Chat, first.body).text
	if !isShort(first.err) || said == "" {
		return fmt.Errorf("first attempt of %q: %v, said %q", question, first.err, said)
	}
	second := post(t, s, chatPath, chatBody("gpt-4.1", msg("user", question), msg("assistant", said), msg("user", plainAsk)))
	if got := said + hear(t, Chat, second.body).text; second.err != nil || got != shortText {
		return fmt.Errorf("second attempt of %q: %v, together %q", question, second.err, got)
	}
	return nil
}

// A client that sends one X-Fault-Turn with all its requests still has turns.
func TestAConstantTurnHeaderKeepsTurnsApart(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: polite after event 3")})
	history := []string{msg("user", "One.")}
	for turn := 1; turn <= 3; turn++ {
		if got := hear(t, Chat, post(t, s, chatPath, chatBody("gpt-4.1", history...), HeaderTurn, "agent 7").body); got.ended {
			t.Errorf("turn %d was not cut", turn)
		}
		history = append(history, msg("assistant", "Whatever."), msg("user", "Next."))
	}
}

func TestACompletedTurnCountsFromOneAgain(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: fin after event 3")})
	path, body := request(Chat)
	for round := range 3 {
		if got := post(t, s, path, body); !isShort(got.err) {
			t.Fatalf("round %d, attempt 1: %v", round, got.err)
		}
		if got := post(t, s, path, body); got.err != nil {
			t.Fatalf("round %d, attempt 2: %v", round, got.err)
		}
	}
}

// What a continuation of a Responses answer may send back besides text: a
// search that is over, reasoning with its finished message, and, where the
// provider has the history, the response before.
func TestResponsesContinuedBehindFinishedItems(t *testing.T) {
	const search = `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"where do foxes rest"}}`
	question, onward := msg("user", "Go."), msg("user", plainAsk)
	for _, tc := range []struct {
		name, scenario string
		said           []string // items
		text           string   // of them
	}{
		{"nothing but a search", "web-search", []string{search}, ""},
		{"a search and some text", "web-search", []string{search, msg("assistant", "The quick")}, "The quick"},
		{"text without the search that led to it", "web-search", []string{msg("assistant", "The quick")}, "The quick"},
		{"reasoning and some text", "thinking", []string{`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"` + Seal("Hm.") + `"}`, msg("assistant", "The quick")}, "The quick"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, named := range []bool{false, true} {
				s := start(t, Config{})
				items, member := append(append([]string{question}, tc.said...), onward), ""
				if named { // the question is in the response before
					first := post(t, s, responsesPath, responsesBody("gpt-5.1", msg("user", "Hello?")), HeaderScenario, "text")
					_, rest, _ := strings.Cut(first.body, `"id":"`)
					id, _, _ := strings.Cut(rest, `"`)
					member = `"previous_response_id":"` + id + `","store":false,`
				}
				got := post(t, s, responsesPath, strings.Replace(responsesBody("gpt-5.1", items...), `"stream"`, member+`"stream"`, 1), HeaderScenario, tc.scenario)
				a, err := Scenario(tc.scenario, Prompt{Dialect: Responses}, Config{})
				if err != nil {
					t.Fatal(err)
				}
				if h := hear(t, Responses, got.body); got.status != 200 || tc.text+h.text != a.Text() || strings.Contains(got.body, `"web_search_call"`) {
					t.Errorf("%d %q", got.status, h.text)
				}
				list := s.Log()
				if x := list[len(list)-1]; x.Continuation.Manner != Asked || x.Continuation.Said != tc.text {
					t.Errorf("%+v", x.Continuation)
				}
			}
		})
	}
}
