package faultinject

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

func TestScriptSelects(t *testing.T) {
	s := MustScript(`
# the first two attempts of the first turn fail
attempt 1 turn 1: rst after event 5
attempt 2-3: status 529 retry-after 1; seam echo-tail 12   # and a seam
attempt 4+ model claude-*: fin at byte 10
attempt *: pass; scenario long; pace 5ms; variant crlf no-done
`)
	for _, tc := range []struct {
		q        Query
		faults   string
		seam     string
		scenario string
	}{
		{Query{1, 1, "m"}, "[{{0 false 0 5  0 0 false}}]", "", "long"},
		{Query{1, 2, "m"}, "[]", "", "long"},
		{Query{3, 1, "m"}, "[{529 1 true 0 0s }]", "echo-tail", "long"},
		{Query{9, 1, "claude-opus-4-6"}, "[{{0 false 0 0  0 10 true}}]", "", "long"},
		{Query{9, 1, "gpt"}, "[]", "", "long"},
	} {
		got := s.For(tc.q)
		if fmt.Sprint(got.Faults) != tc.faults || got.Scenario != tc.scenario || *got.Pace != 5*time.Millisecond || len(got.Variants) != 2 {
			t.Errorf("%+v: %+v", tc.q, got)
		}
		if (got.Seam == nil) != (tc.seam == "") || got.Seam != nil && got.Seam.Name != tc.seam {
			t.Errorf("%+v: seam %+v", tc.q, got.Seam)
		}
	}
}

func TestScriptFaults(t *testing.T) {
	for line, want := range map[string]Fault{
		"rst":                                RST{},
		"rst after event 5":                  RST{At{Event: 5}},
		"cut at event 4":                     FIN{At{Event: 4}},
		"fin before tool args":               FIN{At{Kind: KindArgs, Nth: 1, Side: Before}},
		"fin before tool-args 3":             FIN{At{Kind: KindArgs, Nth: 3, Side: Before}},
		"fin after tool 2":                   FIN{At{Kind: KindTool, Nth: 2}},
		"stall in thinking":                  Stall{At: At{Kind: KindThinking, Nth: 1}},
		"stall 250ms after finish":           Stall{At{Kind: KindFinish, Nth: 1}, 250 * time.Millisecond},
		"stall before headers":               Stall{At: At{Fixed: true, Phase: PhaseOpen}},
		"stall after headers":                Stall{At: At{Fixed: true, Phase: PhaseHead}},
		"polite at end":                      Polite{At{Fixed: true, Phase: PhaseDone}},
		"rst at byte 0":                      RST{At{HasByte: true}},
		"half with rst inside text 2":        Half{At: At{Kind: KindText, Nth: 2, Side: Inside}, End: EndReset},
		"trickle 3 every 2ms":                Trickle{3, 2 * time.Millisecond},
		"pings every 20ms at random":         Keepalive{Every: 20 * time.Millisecond},
		"error timeout as groq after text 2": InBand{At{Kind: KindText, Nth: 2}, "timeout", "groq"},
		"goaway covering CANCEL in text":     GoAway{At{Kind: KindText, Nth: 1}, true, http2.ErrCodeCancel},
		"refused":                            ResetStream{At{Fixed: true}, http2.ErrCodeRefusedStream},
		"content-type text/plain":            Mislabel{"text/plain"},
		"status 503 retry-after date 2s":     Status{Code: 503, RetryDate: 2 * time.Second},
	} {
		s, err := ParseScript([]byte("every stream: " + line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := s.For(Query{Attempt: 1, Turn: 1}).Faults; !reflect.DeepEqual(got, []Fault{want}) {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

func TestOnceMeansTheFirstAttempt(t *testing.T) {
	for _, line := range []string{"every stream: cut at event 4 once", "attempt *: seam restart once"} {
		s := MustScript(line)
		for attempt, want := range map[int]bool{1: true, 2: false} {
			got := s.For(Query{Attempt: attempt, Turn: 1})
			if (len(got.Faults) > 0 || got.Seam != nil) != want {
				t.Errorf("%s, attempt %d: %+v", line, attempt, got)
			}
		}
	}
}

// Every error names the line and what to write instead.
func TestScriptErrors(t *testing.T) {
	for line, says := range map[string]string{
		"rst after event 5":                   "no colon: write SELECTOR: DIRECTIVE",
		"sometimes: rst":                      "begin with attempt N",
		"attempt: rst":                        "attempt needs N, N-M, N+ or *",
		"attempt 0: rst":                      "attempt needs N",
		"attempt 3-2: rst":                    "attempt needs N",
		"attempt 1 turn x: rst":               "turn needs N",
		"attempt 1 model [: rst":              "model needs a pattern",
		"attempt 1 colour red: rst":           "use turn N or model PATTERN",
		"attempt 1:":                          "empty directive",
		"attempt 1: rst;":                     "empty directive",
		"attempt 1: explode":                  "unknown directive \"explode\": use pass",
		"attempt 1: rst after lunch":          "is no place: use an address",
		"attempt 1: cut after supper":         "KIND is one of start, open, thinking,",
		"attempt 1: rst after event":          "event needs a number from 1",
		"attempt 1: rst at event 0":           "event needs a number from 1",
		"attempt 1: rst at byte":              "byte needs a number",
		"attempt 1: rst after event 5 please": "\"please\" is left over",
		"attempt 1: stall for 5s":             "left over",
		"attempt 1: pings every":              "every needs a duration",
		"attempt 1: stall -2s":                "negative",
		"attempt 1: half with grace":          "use fin, polite or rst",
		"attempt 1: error bored after text 1": "unknown error kind \"bored\": use one of api",
		"attempt 1: error api as poem":        "use frame, named",
		"attempt 1: status":                   "status needs a code",
		"attempt 1: status 1000":              "status needs a code",
		"attempt 1: content-type":             "needs a media type",
		"attempt 1: seam":                     "seam needs a name",
		"attempt 1: seam of-gold":             "unknown seam \"of-gold\": use one of diverge",
		"attempt 1: seam echo-tail many":      "takes a number of characters",
		"attempt 1: seam restart 4":           "takes no number",
		"attempt 1: scenario nowhere":         "unknown scenario \"nowhere\": use one of agent",
		"attempt 1: polite before headers":    "before headers there is no body yet: use at start",
		"attempt 1: error api before headers": "use at start",
		"attempt 1: pace fast":                "pace needs a duration",
		"attempt 1: variant plaid":            "unknown variant \"plaid\": use one of ascii",
		"attempt 1: pass; rst after event 1":  "pass and a fault exclude each other",
	} {
		_, err := ParseScript([]byte("# a comment\n\n" + line))
		if err == nil || !strings.HasPrefix(err.Error(), "fault script line 3: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestEveryFaultIsInTheUsage(t *testing.T) {
	for _, e := range catalogue {
		if !strings.HasPrefix(e.usage, e.name) {
			t.Errorf("%s: usage %q", e.name, e.usage)
		}
	}
	if len(FaultUsage()) != len(catalogue) {
		t.Error("usage is short")
	}
}

func TestRandomAddressesAreSeeded(t *testing.T) {
	hits := func(seed uint64) int {
		for n := 1; n <= 40; n++ {
			if _, hit := (At{}).here(Position{Phase: PhaseEvent, Event: n, Total: 40, Seed: seed, ID: "x"}, []byte("x")); hit {
				return n
			}
		}
		return 0
	}
	seen := map[int]bool{}
	for seed := range uint64(50) {
		n := hits(seed)
		if n < 1 || n > 39 || n != hits(seed) {
			t.Fatalf("seed %d: event %d", seed, n)
		}
		seen[n] = true
	}
	if len(seen) < 15 {
		t.Errorf("only %d different events in 50 seeds", len(seen))
	}
}

func TestARequestBringsItsOwnScript(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt *: status 529")})
	path, body := request(Chat)
	own := "attempt 1: fin after event 3 | attempt 2: pass"
	if got := post(t, s, path, body, HeaderScript, own); !isShort(got.err) {
		t.Errorf("attempt 1: %+v", got)
	}
	if got := post(t, s, path, body, HeaderScript, own); got.status != 200 || got.err != nil {
		t.Errorf("attempt 2: %+v", got)
	}
	if got := post(t, s, path, body); got.status != 529 {
		t.Errorf("without: %+v", got)
	}
	if got := post(t, s, path, body, HeaderScript, "attempt 1: explode"); got.status != 400 || !strings.Contains(got.body, "line 1: unknown directive") {
		t.Errorf("a bad one: %+v", got)
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add("attempt 1: rst after event 5\nevery stream: cut at event 4 once")
	f.Add("attempt 2-3 turn 1 model a*: error api as chunk in text; seam echo-tail 3")
	f.Fuzz(func(t *testing.T, src string) {
		s, err := ParseScript([]byte(src))
		if err == nil {
			s.For(Query{Attempt: 1, Turn: 1, Model: "m"})
		} else if !strings.Contains(err.Error(), "line ") {
			t.Errorf("%v", err)
		}
	})
}
