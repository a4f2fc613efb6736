package relay_test

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// docs/SUPPORT.md is what the batteries saw: which plan carried which kind of turn over
// which cause, in which dialect. They note it as they go; TestSupportTableClaimsWhatWasSeen,
// behind them in the order of files, holds the page against it.

var writeSupport = flag.Bool("support", false, "write docs/SUPPORT.md from what the batteries see")

// claim is one thing that was seen to work as it should, or to be refused.
type claim struct {
	family string
	how    string // a plan, or refused and the reason
	turn   string
	cause  interrupt.Kind
}

const refused = "refused: "

// sightings are the claims of this run.
type sightings struct {
	mu     sync.Mutex
	claims map[claim]bool
	done   map[string]bool // batteries that were played to their end
}

var seen = sightings{claims: map[claim]bool{}, done: map[string]bool{}}

// The kinds of turns, as columns.
const (
	ofText       = "text"
	ofTools      = "tools"
	ofReasoning  = "reasoning"
	ofStructured = "structured output"
	ofHosted     = "provider's tools, others"
)

var turns = []string{ofText, ofTools, ofReasoning, ofStructured, ofHosted}

// turnsOf says which columns a turn stands for. One with something in it that no
// continuation carries stands in a column of its own.
func turnsOf(r *dialect.Request, s *turn.Snapshot) (of []string) {
	if r.Structured {
		return []string{ofStructured}
	}
	if r.N > 1 || r.Logprobs || len(r.HostedTools) > 0 || r.Unsplicable != "" && !r.Kept {
		return []string{ofHosted}
	}
	for i := range s.Blocks {
		switch s.Blocks[i].Kind {
		case turn.Call, turn.CustomCall:
			of = append(of, ofTools)
		case turn.Reasoning, turn.Redacted:
			of = append(of, ofReasoning)
		case turn.Hosted, turn.HostedResult, turn.Unknown, turn.Refusal:
			return []string{ofHosted}
		case turn.Prose:
		}
	}
	if of == nil {
		return []string{ofText}
	}
	return of
}

// note notes how a turn went that was judged to be as it should. One that was not
// interrupted says nothing.
func (n *sightings) note(family string, turns []string, res relaytest.Result) {
	at := slices.IndexFunc(res.Notes, func(n relay.Note) bool { return n.Kind == relay.NoteInterrupted })
	if at < 0 {
		return
	}
	how, _, _ := strings.Cut(lastPlan(res), "(")
	if reason, failed := strings.CutPrefix(res.Outcome(), "failed:"); failed {
		how = refused + general(reason)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, of := range turns {
		n.claims[claim{family, how, of, res.Notes[at].Cause.Kind}] = true
	}
}

// general is a reason without the name that a recording gave it.
func general(reason string) string {
	for _, of := range []string{"hosted_tool:", "unknown_block:"} {
		if strings.HasPrefix(reason, of) {
			return of + "NAME"
		}
	}
	return reason
}

func (n *sightings) played(battery string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.done[battery] = true
}

// as is the table that the family's results stand in.
func (f family) as() string {
	if f.table != "" {
		return f.table
	}
	return f.name
}

// section is a table of the page.
type section struct {
	family
	says string
	// more are batteries that fill it, besides those that every dialect has.
	more []string
}

var sections = []section{
	{chat, "Chat Completions", nil},
	{legacy, "Legacy completions: what stands for a trailing assistant turn is the prompt with the words behind it", nil},
	{responses, "Responses", []string{"held"}},
	{messages, "Anthropic Messages", nil},
	{generate, "Gemini generateContent", nil},
	{generateArray, "The same without `alt=sse`: one JSON array", nil},
	{interact, "Gemini Interactions with `store: false`", nil},
	{interactKept, "Gemini Interactions as they are by default: kept by the provider under their id, which nothing else may have", []string{"held"}},
	{converse, "Bedrock ConverseStream", []string{"converse, said twice"}},
	{invoke, "Bedrock InvokeModelWithResponseStream, Anthropic's models", nil},
}

// batteries are what fills the table.
func (s section) batteries() []string {
	by := append([]string{s.name, "composed " + s.name}, s.more...)
	if slices.ContainsFunc(authors, func(a author) bool { return a.as() == s.as() }) {
		by = append(by, "structured "+s.name)
	}
	return by
}

const supportPage = "../docs/SUPPORT.md"

// The page says nothing that the batteries of this run did not see, and has a table for
// every dialect with the words of the code. `make support` writes it.
func TestSupportTableClaimsWhatWasSeen(t *testing.T) {
	var missing []string
	for _, s := range sections {
		for _, b := range s.batteries() {
			if !seen.done[b] && !slices.Contains(missing, b) {
				missing = append(missing, b)
			}
		}
	}
	if *writeSupport {
		if len(missing) > 0 {
			t.Fatalf("not written: these batteries were not played to their end: %v", missing)
		}
		if err := os.WriteFile(supportPage, renderSupport(seen.claims), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(supportPage)
	if err != nil {
		t.Fatal(err)
	}
	told, err := readSupport(string(page))
	if err != nil {
		t.Fatalf("%v; make support writes the page anew", err)
	}
	if got := string(renderSupport(told)); got != string(page) {
		t.Error("the page is not what its claims look like: make support writes it anew")
	}
	for _, c := range slices.SortedFunc(maps.Keys(told), claim.compare) {
		s := sections[slices.IndexFunc(sections, func(s section) bool { return s.as() == c.family })]
		whole := !slices.ContainsFunc(s.batteries(), func(b string) bool { return !seen.done[b] })
		if whole && !seen.claims[c] {
			t.Errorf("%s: a turn of %s, cut by %v, is said to be %s; nobody saw that", c.family, c.turn, c.cause, c.how)
		}
	}
	if len(missing) > 0 {
		t.Logf("not held against what was seen, since they were not played: %v", missing)
	}
}

// Every plan and cause that can stand on the page has its words there.
func TestSupportTableHasWordsForEveryPlan(t *testing.T) {
	for k := planner.Finish; k <= planner.WholeRestart; k++ {
		if plans[k.String()] == "" {
			t.Errorf("no words for %v", k)
		}
	}
	for _, c := range causes {
		if strings.Contains(c.kind.String(), "?") || c.letter == "" {
			t.Errorf("cause %+v", c)
		}
	}
}
