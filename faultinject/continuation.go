package faultinject

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Manner says how a request asks for the rest of an answer (DESIGN §4).
type Manner string

// The manners.
const (
	Fresh   Manner = ""        // it does not: a whole answer is due
	Prefill Manner = "prefill" // its last turn is the partial answer
	Asked   Manner = "asked"   // partial answer, then a user turn that asks to go on
	Resumed Manner = "resumed" // it names where the provider's own generation stands
)

// A Continuation is what a request to go on asks for.
type Continuation struct {
	Manner Manner
	Said   string // the partial answer, as sent

	// Of an asked continuation's instruction:
	Anchor   string // text it asks to begin with, empty if it asks for none
	Sentinel string // what to answer when nothing is missing, empty if it names none
}

// goOn recognises an instruction to continue an interrupted answer.
var goOn = regexp.MustCompile(`(?i)\b(continu|interrupt|cut off|left off|carry on|resum)`)

// mannerOf tells whether p ends in a partial answer, and returns p without it.
// An asked continuation is only recognised here by its shape; whether the
// partial text really is the beginning of the answer is the caller's to check.
func mannerOf(p Prompt, prefills bool) (Manner, Turn, Prompt) {
	n := len(p.Turns)
	base := p
	switch {
	case n > 1 && prefills && p.Turns[n-1].Role == "assistant" && len(p.Turns[n-1].Calls) == 0:
		base.Turns = p.Turns[:n-1]
		return Prefill, p.Turns[n-1], base
	case n > 2 && p.Turns[n-1].Role == "user" && len(p.Turns[n-1].Results) == 0 &&
		p.Turns[n-2].Role == "assistant" && len(p.Turns[n-2].Calls) == 0:
		base.Turns = p.Turns[:n-2]
		return Asked, p.Turns[n-2], base
	}
	return Fresh, Turn{}, base
}

// readInstruction finds the anchor and the sentinel in the user turn of an
// asked continuation. It knows no wording: the anchor is whatever tail of said
// the instruction repeats, if it asks for repeating it; the sentinel is the
// token it names near words for "nothing is missing".
func readInstruction(said, instruction string) (anchor, sentinel string) {
	if asksToRepeat(instruction) {
		anchor = quotedTail(said, instruction)
	}
	if anchor != "" { // it is the model's own text, not an instruction
		instruction = strings.Replace(instruction, strings.TrimSpace(anchor), "", 1)
	}
	return anchor, namedToken(instruction)
}

var (
	repeatAsked  = regexp.MustCompile(`(?i)((begin|start|open)\w*\b[^.]{0,80}\b(repeat\w*|copy\w*|verbatim|with (these|those|the last|the following|this|exactly))|\brepeat (the|these|those|this|exactly|it)\b|verbatim)`)
	repeatDenied = regexp.MustCompile(`(?i)(\bnot|\bnever|n't|\bwithout|\bno)\s+(\w+\s+){0,2}$`)
)

func asksToRepeat(instruction string) bool {
	for _, m := range repeatAsked.FindAllStringIndex(instruction, -1) {
		if !repeatDenied.MatchString(instruction[:m[0]]) {
			return true
		}
	}
	return false
}

// quotedTail returns the longest tail of said that the instruction contains,
// with the whitespace said ends in whether or not the quotation kept it. A tail
// shorter than 8 bytes counts only between marks, or it would be found in any
// prose.
func quotedTail(said, instruction string) string {
	trimmed := strings.TrimRightFunc(said, unicode.IsSpace)
	if trimmed != said {
		if tail := longestTail(said, instruction); strings.TrimSpace(tail) != "" {
			return tail
		}
	}
	if tail := longestTail(trimmed, instruction); tail != "" {
		return tail + said[len(trimmed):]
	}
	return ""
}

func longestTail(said, instruction string) string {
	for i := max(0, len(said)-2000); i < len(said); i++ {
		if !utf8.RuneStart(said[i]) {
			continue
		}
		tail := said[i:]
		at := strings.Index(instruction, tail)
		if at >= 0 && (len(tail) >= 8 || marked(instruction, at, at+len(tail))) {
			return tail
		}
	}
	return ""
}

func marked(s string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:from])
	after, _ := utf8.DecodeRuneInString(s[to:])
	mark := func(r rune) bool {
		return r != utf8.RuneError && (r == '\n' || !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsDigit(r))
	}
	return mark(before) && mark(after)
}

var (
	nothingMissing = regexp.MustCompile(`(?i)\b(nothing|complete|completed|finished|missing|no more|already|done)\b`)
	sentinelToken  = regexp.MustCompile(`\[\[[^\[\]\s]+\]\]|<<[^<>\s]+>>|<\|[^<>\s]+\|>|⟦[^⟧\s]+⟧|\[[A-Z][A-Z_-]{2,}\]|<[A-Z][A-Z_-]{2,}/?>|\b[A-Z]+(_[A-Z]+)+\b|["'` + "`" + `]([^"'` + "`" + `\s]{3,40})["'` + "`" + `]`)
	sentence       = regexp.MustCompile(`[^.!?\n]+[.!?\n]*`)
)

// namedToken returns the sentinel an instruction names, empty if none.
func namedToken(instruction string) string {
	for _, s := range sentence.FindAllString(instruction, -1) {
		if !nothingMissing.MatchString(s) {
			continue
		}
		if m := sentinelToken.FindStringSubmatch(s); m != nil {
			if m[2] != "" {
				return m[2]
			}
			return m[0]
		}
	}
	return ""
}
