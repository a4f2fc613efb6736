package faultinject

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
)

// Cuts: what arrives, and how a raw client sees the end.
func TestCuts(t *testing.T) {
	full := func(d Dialect) []Event {
		return Render(d, say(shortText), Options{})
	}
	for _, tc := range []struct {
		name, script string
		kept         int // events delivered whole, -1 is not checked
		end          func(error) bool
		ending       Ending
	}{
		{"reset", "attempt 1: rst after event 5", 5, isReset, CutReset},
		{"fin", "attempt 1: fin after event 5", 5, isShort, CutFIN},
		{"cut at event", "every stream: cut at event 4 once", 4, isShort, CutFIN},
		{"before an event", "attempt 1: fin before event 5", 4, isShort, CutFIN},
		{"polite end", "attempt 1: polite after event 5", 5, isNil, CutPolite},
		{"delimited by the close", "attempt 1: eof10 after event 5", 5, isNil, CutPolite},
		{"short of the announced length", "attempt 1: length; fin after event 5", 5, isShort, CutFIN},
		{"half an event", "attempt 1: half inside event 5", 4, isShort, CutFIN},
		{"half an event, polite", "attempt 1: half with polite inside event 5", 4, isNil, CutPolite},
		{"by kind", "attempt 1: rst after text 3", -1, isReset, CutReset},
		{"by byte", "attempt 1: fin at byte 700", -1, isShort, CutFIN},
		{"before headers", "attempt 1: rst before headers", -1, isReset, CutReset},
		{"after headers", "attempt 1: fin after headers", 0, isShort, CutFIN},
		{"no terminal", "attempt 1: no-terminal", -1, isNil, CutPolite},
		{"at the end", "attempt 1: rst at end", -1, isReset, CutReset},
	} {
		for _, d := range Dialects() {
			t.Run(tc.name+"/"+string(d), func(t *testing.T) {
				s := start(t, Config{Script: MustScript(tc.script), Scenario: "text"})
				path, body := request(d)
				got := post(t, s, path, body)
				if !tc.end(got.err) {
					t.Errorf("end: %v", got.err)
				}
				if n := wholeEvents(d, got.body); tc.kept >= 0 && n != tc.kept {
					t.Errorf("%d whole events of %d arrived, want %d", n, len(full(d)), tc.kept)
				}
				if tc.script == "attempt 1: fin at byte 700" && len(got.body) != 700 {
					t.Errorf("%d bytes arrived", len(got.body))
				}
				list, err := s.WaitLog(patience(t), allEnded(1))
				if err != nil || list[0].Ending != tc.ending || !list[0].Applied {
					t.Errorf("log: %v applied %v, %v", list[0].Ending, list[0].Applied, err)
				}
			})
		}
	}
}

func request(d Dialect) (path, body string) {
	switch d {
	case Messages:
		return messagesPath, messagesBody("claude-sonnet-4-5", msg("user", "Tell me something."))
	case Responses:
		return responsesPath, responsesBody("gpt-5.1", msg("user", "Tell me something."))
	case Gemini:
		return geminiPath, geminiBody([]string{says("user", "Tell me something.")})
	case Interactions:
		return interactionsPath, interactionBody("gemini-2.5-flash", []string{step("user_input", "Tell me something.")})
	case Converse:
		return converseAt(bedrockClaude), converseBody([]string{saying("user", "Tell me something.")})
	case Invoke:
		return invokeAt(bedrockClaude), invokeBody([]string{msg("user", "Tell me something.")})
	case Completions:
		return completionsPath, completionBody("Tell me something.")
	}
	return chatPath, chatBody("gpt-4.1", msg("user", "Tell me something."))
}

func allEnded(n int) func([]Exchange) bool {
	return func(list []Exchange) bool {
		for _, x := range list {
			if x.Ending == "" {
				return false
			}
		}
		return len(list) >= n
	}
}

func isNil(err error) bool   { return err == nil }
func isShort(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

// Places named by what happens there, in an answer that has everything.
func TestPlacesByKind(t *testing.T) {
	for _, tc := range []struct{ place, has, lacks string }{
		{"before tool args", `"name":"get_weather"`, "partial_json"},
		{"after tool args 2", "partial_json", `Paris\"`},
		{"before tool", `"text_delta"`, "get_weather"},
		{"in thinking", "thinking_delta", "signature_delta"},
		{"after signature", "signature_delta", "content_block_stop"},
		{"before close", "signature_delta", "content_block_stop"},
		{"after finish", `"stop_reason":"tool_use"`, "message_stop"},
		{"before finish", "partial_json", `"stop_reason":"tool_use"`},
	} {
		t.Run(tc.place, func(t *testing.T) {
			s := start(t, Config{Scenario: "thinking-tool", Script: MustScript("attempt 1: fin " + tc.place)})
			path, body := request(Messages)
			got := post(t, s, path, body)
			if !isShort(got.err) || !strings.Contains(got.body, tc.has) || strings.Contains(got.body, tc.lacks) {
				t.Errorf("%v\n%s", got.err, got.body)
			}
		})
	}
}

func TestClosedBeforeTheHeaders(t *testing.T) {
	s := start(t, Config{Script: MustScript("attempt 1: fin before headers")})
	path, body := request(Chat)
	if got := post(t, s, path, body); !errors.Is(got.err, io.EOF) {
		t.Errorf("%+v", got)
	}
}

// A fault whose place is never reached is not applied, and the log says so.
func TestUnreachedPlaces(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: rst before tool args")})
	path, body := request(Chat)
	got := post(t, s, path, body)
	list, err := s.WaitLog(patience(t), allEnded(1))
	if err != nil || got.err != nil || list[0].Applied || list[0].Fault != "rst before tool args" || list[0].Ending != Complete {
		t.Errorf("%v %+v %v", got.err, list[0], err)
	}
}
