package faultinject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// Every scenario, in each dialect, under every variant: the stream says the
// answer, once.
func TestRenderedStreamsSayTheAnswer(t *testing.T) {
	all := []string{""}
	for name := range variants(&Variant{}) {
		all = append(all, name)
	}
	for _, scenario := range ScenarioNames() {
		a, err := Scenario(scenario, Prompt{Tools: []Tool{{Name: "Bash"}}}, Config{LongTokens: 50})
		if err != nil {
			t.Fatal(err)
		}
		for _, variant := range all {
			o := Options{Seed: 3}
			if variant != "" {
				if err := o.Variant.Set(variant); err != nil {
					t.Fatal(err)
				}
			}
			for _, d := range []Dialect{Chat, Messages, Responses} {
				h := hear(t, d, string(bytes.Join(Raws(Render(d, a, o)), nil)))
				name := fmt.Sprintf("%s/%s/%s", scenario, d, variant)
				if want := spoken(a); variant != "split-pairs" && h.text != want || h.starts < 1 {
					t.Errorf("%s: said %q, want %q", name, h.text, want)
				}
				if h.ended == (variant == "no-done" && d == Chat) || h.finish == "" {
					t.Errorf("%s: ended %v, finish %q", name, h.ended, h.finish)
				}
				var calls []string
				for _, k := range a.Calls() {
					if k.Args == "" && d != Messages {
						k.Args = "{}"
					}
					calls = append(calls, k.Name+" "+k.Args)
				}
				if variant != "split-pairs" && fmt.Sprint(h.calls) != fmt.Sprint(calls) {
					t.Errorf("%s: calls %v, want %v", name, h.calls, calls)
				}
			}
		}
	}
}

// spoken is what a client shows of an answer: text and refusals.
func spoken(a Answer) string {
	s := ""
	for _, k := range a.Blocks {
		if k.Kind == TextBlock || k.Kind == RefusalBlock {
			s += k.Text
		}
	}
	return s
}

func TestTokensKeepCodePointsAndText(t *testing.T) {
	for _, s := range []string{"", " ", shortText, unicodeText, codeText, "\n\n\n", "\xff\xfeoops"} {
		for seed := range uint64(20) {
			toks := tokens(s, seed)
			if got := strings.Join(toks, ""); got != s {
				t.Fatalf("seed %d: %q", seed, got)
			}
			for _, tok := range toks {
				if utf8.ValidString(s) && !utf8.ValidString(tok) {
					t.Fatalf("token %q splits a code point", tok)
				}
			}
		}
	}
}

// FIELD-REPORTS C6: half an escape pair in each of two deltas.
func TestSplitPairsLeaveHalves(t *testing.T) {
	got := strings.Join(splitPairs("a😀b"), "|")
	if want := `"a\ud83d"|"\ude00b"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestChatChoicesInterleave(t *testing.T) {
	events := Render(Chat, say("Hello there."), Options{N: 3, IncludeUsage: true})
	var order []int
	usage := 0
	for _, e := range events {
		var c struct {
			Choices []struct{ Index int }
			Usage   *struct{ CompletionTokens int } `json:"usage"`
		}
		data := strings.TrimPrefix(strings.TrimSpace(string(e.Raw)), "data: ")
		if data == "[DONE]" {
			continue
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatal(err)
		}
		if len(c.Choices) == 1 {
			order = append(order, c.Choices[0].Index)
		} else if c.Usage != nil {
			usage++
		}
	}
	if fmt.Sprint(order[:6]) != "[0 1 2 0 1 2]" || len(order)%3 != 0 || usage != 1 {
		t.Errorf("order %v, %d usage chunks", order, usage)
	}
}

// WIRE 1.1: the bytes of the logprobs, joined, are the text.
func TestLogprobsSpellTheText(t *testing.T) {
	var spelled []byte
	for _, e := range Render(Chat, say(unicodeText), Options{Logprobs: true}) {
		var c struct {
			Choices []struct {
				Logprobs struct {
					Content []struct{ Bytes []int }
				}
			}
		}
		if json.Unmarshal(bytes.TrimPrefix(e.Raw, []byte("data: ")), &c) != nil {
			continue
		}
		for _, ch := range c.Choices {
			for _, tok := range ch.Logprobs.Content {
				for _, b := range tok.Bytes {
					spelled = append(spelled, byte(b))
				}
			}
		}
	}
	if string(spelled) != unicodeText {
		t.Errorf("%q", spelled)
	}
}

func TestRenderedKindsAreTheClassifiedOnes(t *testing.T) {
	for _, scenario := range ScenarioNames() {
		for _, d := range Dialects() {
			a, _ := Scenario(scenario, Prompt{Dialect: d}, Config{LongTokens: 40})
			for i, e := range Render(d, a, Options{IncludeUsage: true, StreamArgs: scenario == "big-tool", Checkpoint: "k", Variant: Variant{Pauses: scenario == "long"}}) {
				if got := d.framing(Options{}).classify(e.Raw); got != e.Kind {
					t.Errorf("%s/%s event %d is %q, classified %q: %s", scenario, d, i+1, e.Kind, got, e.Raw)
				}
			}
		}
	}
}

func TestWholeAnswersMatchTheirStreams(t *testing.T) {
	for _, scenario := range ScenarioNames() {
		a, _ := Scenario(scenario, Prompt{}, Config{LongTokens: 40})
		var chat struct {
			Choices []struct {
				Message struct {
					Content, Refusal string
					ToolCalls        []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				FinishReason string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal(RenderWhole(Chat, a, Options{}), &chat); err != nil {
			t.Fatal(err)
		}
		m := chat.Choices[0].Message
		if m.Content+m.Refusal != spoken(a) || len(m.ToolCalls) != len(a.Calls()) || chat.Choices[0].FinishReason != chatFinish(a.Finish) {
			t.Errorf("%s: %+v", scenario, chat)
		}
		var msgs struct {
			Content []struct {
				Type, Text, Name string
				Input            map[string]any
			}
			StopReason string `json:"stop_reason"`
		}
		if err := json.Unmarshal(RenderWhole(Messages, a, Options{}), &msgs); err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, b := range msgs.Content {
			said += b.Text
		}
		if said != spoken(a) || len(msgs.Content) != len(a.without(SearchBlock).Blocks) || msgs.StopReason != messagesFinish(a.Finish) {
			t.Errorf("%s: %+v", scenario, msgs)
		}
	}
}

func TestLimitsAndStops(t *testing.T) {
	a := limit(say(shortText), 5, 1)
	if a.Finish != FinishLength || !strings.HasPrefix(shortText, a.Text()) || a.tokens(1) != 5 {
		t.Errorf("%+v", a)
	}
	if a := limit(say("Hi"), 500, 1); a.Finish != FinishStop {
		t.Errorf("%+v", a)
	}
	cut := limit(call(weather("Paris")), 3, 1)
	if k := cut.Calls()[0]; cut.Finish != FinishLength || json.Valid([]byte(k.Args)) {
		t.Errorf("a call cut by length keeps its incomplete arguments: %+v", cut)
	}
	a = stopAt(say("one two END three"), []string{"STOP", "END"})
	if a.Text() != "one two " || a.Finish != FinishSequence || a.StopSequence != "END" {
		t.Errorf("%+v", a)
	}
	raw := string(bytes.Join(RenderMessages(a, Options{}), nil))
	if !strings.Contains(raw, `"stop_reason":"stop_sequence","stop_sequence":"END"`) {
		t.Errorf("%s", raw)
	}
}

// The kinds of events in recorded streams are known, so that --target can
// address them.
func TestRecordedEventsAreClassified(t *testing.T) {
	root := os.Getenv("UNBROKEN_CORPUS")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "corpus")
	}
	files, err := filepath.Glob(filepath.Join(root, "anthropic", "t*.sse"))
	more, err2 := filepath.Glob(filepath.Join(root, "openai-chat", "*.sse"))
	files = append(files, more...)
	if err != nil || err2 != nil || len(files) == 0 {
		t.Skip("no recordings: set UNBROKEN_CORPUS to the corpus directory")
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		count := map[Kind]int{}
		for len(raw) > 0 {
			n := FrameLF.eventLen(raw)
			if n == 0 {
				break
			}
			count[classify(raw[:n])]++
			raw = raw[n:]
		}
		if count[KindStart]+count[KindTool] == 0 || count[KindFinish] != 1 || count[KindEnd] != 1 || count[KindText]+count[KindArgs] == 0 {
			t.Errorf("%s: %v", filepath.Base(f), count)
		}
	}
}
