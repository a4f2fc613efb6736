package faultinject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Seam says how the model joins a continuation to what was said (DESIGN §4,
// FIELD-REPORTS D4). The zero value honours the request: it repeats the anchor
// if it was asked to, answers the sentinel if nothing is missing, and goes on.
type Seam struct {
	Name string // one of SeamNames, or empty
	N    int    // echo-tail: how many runes are repeated, 0 is 30
}

// String is the name, with its number if it has one.
func (s Seam) String() string {
	switch {
	case s.Name == "":
		return "honour"
	case s.N > 0:
		return fmt.Sprintf("%s %d", s.Name, s.N)
	}
	return s.Name
}

// join is what a seam works on.
type join struct {
	whole, rest Answer
	c           Continuation
	n           int
	tools       []Tool
}

const preamble = "Sure! Here is the continuation:\n\n"

// seams is the table of behaviours; every function returns the answer that is
// streamed in place of the honest rest.
var seams = map[string]func(join) Answer{
	"":                 honour,
	"honour":           honour,
	"exact":            func(j join) Answer { return j.rest },
	"echo-anchor":      echoAnchor,
	"echo-tail":        func(j join) Answer { return j.rest.prefixText(tailRunes(j.c.Said, j.n)) },
	"echo-sentence":    func(j join) Answer { return j.rest.prefixText(lastSentence(j.c.Said)) },
	"restart":          func(j join) Answer { return j.whole },
	"preamble":         func(j join) Answer { return j.rest.prefixText(preamble) },
	"preamble-restart": func(j join) Answer { return j.whole.prefixText(preamble) },
	"refence":          func(j join) Answer { return j.rest.prefixText(openFence(j.c.Said)) },
	"diverge":          diverge,
	"restart-diverge":  restartDiverge,
	"empty":            func(j join) Answer { return Answer{Finish: FinishStop} },
	"whitespace":       func(j join) Answer { return j.rest.prefixText(" \n") },
	"thinking-first":   thinkingFirst,
	"second-tool":      secondTool,
	"schema-restart":   schemaRestart,
}

// SeamNames returns the names a script may use.
func SeamNames() []string {
	names := make([]string, 0, len(seams))
	for n := range seams {
		if n != "" {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	return names
}

// ParseSeam reads a seam as scripts write it: "restart", "echo-tail 30".
func ParseSeam(text string) (Seam, error) { return parseSeam(strings.Fields(text)) }

// parseSeam reads a seam's name and its number, if any.
func parseSeam(words []string) (Seam, error) {
	if len(words) == 0 {
		return Seam{}, fmt.Errorf("seam needs a name: one of %s", strings.Join(SeamNames(), ", "))
	}
	s := Seam{Name: words[0]}
	if _, ok := seams[s.Name]; !ok || s.Name == "" {
		return s, fmt.Errorf("unknown seam %q: use one of %s", s.Name, strings.Join(SeamNames(), ", "))
	}
	if len(words) > 1 {
		if s.Name != "echo-tail" {
			return s, fmt.Errorf("seam %s takes no number", s.Name)
		}
		if _, err := fmt.Sscanf(words[1], "%d", &s.N); err != nil || s.N < 1 || len(words) > 2 {
			return s, fmt.Errorf("seam echo-tail takes a number of characters, such as echo-tail 30")
		}
	}
	return s, nil
}

// apply returns what is streamed for a continuation.
func (s Seam) apply(j join) Answer {
	j.n = s.N
	if j.n == 0 {
		j.n = 30
	}
	return seams[s.Name](j)
}

func honour(j join) Answer {
	if len(j.rest.Blocks) == 0 && j.c.Sentinel != "" {
		return Answer{Blocks: []Block{{Kind: TextBlock, Text: j.c.Sentinel}}, Finish: FinishStop}
	}
	return j.rest.prefixText(j.c.Anchor)
}

func echoAnchor(j join) Answer {
	anchor := j.c.Anchor
	if anchor == "" {
		anchor = tailRunes(j.c.Said, 40)
	}
	return j.rest.prefixText(anchor)
}

// diverge says something else, from the first word on.
func diverge(j join) Answer {
	return Answer{Finish: FinishStop, Blocks: []Block{{Kind: TextBlock,
		Text: "Zebras graze quietly beside an unrelated river while the umbrella merchant counts seventeen copper kettles."}}}
}

// restartDiverge is the whole answer again, but from the middle of what was
// said it takes another turn.
func restartDiverge(j join) Answer {
	said := strings.TrimRightFunc(j.c.Said, unicode.IsSpace)
	half := len(said) / 2
	for half > 0 && !utf8.RuneStart(said[half]) {
		half--
	}
	a := diverge(j)
	return a.prefixText(said[:half] + " ")
}

func thinkingFirst(j join) Answer {
	a := j.rest.clone()
	a.Blocks = append([]Block{{Kind: ThinkingBlock, Text: "The previous answer was interrupted, so I go on."}}, a.Blocks...)
	return a
}

// secondTool goes on and then calls a tool, a declared one if there is any.
func secondTool(j join) Answer {
	a := j.rest.clone()
	call := Block{Kind: ToolBlock, Name: "get_weather", Args: `{"location":"Paris"}`}
	if calls := j.whole.Calls(); len(calls) > 0 {
		call = calls[0]
	} else if len(j.tools) > 0 {
		call.Name, call.Args = j.tools[0].Name, string(instance(j.tools[0].Schema))
	}
	a.Blocks, a.Finish = append(a.Blocks, call), FinishTool
	return a
}

// schemaRestart is what a grammar engine does that is left on for the
// continuation (WIRE 2.3): the document starts again, in compact form.
func schemaRestart(j join) Answer {
	a := j.whole.clone()
	for i, k := range a.Blocks {
		var b bytes.Buffer
		if k.Kind == TextBlock && json.Compact(&b, []byte(k.Text)) == nil {
			a.Blocks[i].Text = b.String()
		}
	}
	return a
}

func tailRunes(s string, n int) string {
	s = strings.TrimRightFunc(s, unicode.IsSpace)
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

// lastSentence returns the sentence that said ends in the middle of.
func lastSentence(said string) string {
	said = strings.TrimRightFunc(said, unicode.IsSpace)
	cut := strings.LastIndexAny(strings.TrimRight(said, ".!?"), ".!?\n")
	return strings.TrimLeftFunc(said[cut+1:], unicode.IsSpace)
}

// openFence returns the opening line of the code fence said ends in, or a bare
// one when it ends outside of code.
func openFence(said string) string {
	open := ""
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(strings.TrimSpace(line), "```") {
			continue
		}
		if open == "" {
			open = strings.TrimSpace(line) + "\n"
		} else {
			open = ""
		}
	}
	if open == "" {
		return "```\n"
	}
	return open
}
