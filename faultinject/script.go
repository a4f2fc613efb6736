package faultinject

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
)

// A Script says what goes wrong when. The zero value lets everything pass.
type Script struct{ rules []rule }

// rule is one line.
type rule struct {
	text string

	attempts span
	turns    span
	model    string // a path.Match pattern, empty is any

	faults   []Fault
	pass     bool
	seam     *Seam
	scenario string
	pace     *time.Duration
	variants []string
}

// span is an inclusive range; a zero end is open.
type span struct{ from, to int }

func (s span) has(n int) bool { return n >= s.from && (s.to == 0 || n <= s.to) }

// A Query is what rules select by.
type Query struct {
	Attempt int // of this turn, from 1
	Turn    int // of this conversation, from 1
	Model   string
}

// A Treatment is what a script prescribes for one attempt.
type Treatment struct {
	Faults   []Fault
	Text     string // the directive that chose the faults, empty if none did
	Seam     *Seam
	Scenario string
	Pace     *time.Duration
	Variants []string
}

// For returns the treatment of an attempt. Every aspect (faults, seam,
// scenario, pace, variants) is decided by the first matching line that
// mentions it.
func (s Script) For(q Query) Treatment {
	var t Treatment
	decided := false
	for _, r := range s.rules {
		if !r.matches(q) {
			continue
		}
		if !decided && (r.pass || len(r.faults) > 0) {
			decided, t.Faults = true, r.faults
			if !r.pass {
				t.Text = r.text
			}
		}
		if t.Seam == nil {
			t.Seam = r.seam
		}
		if t.Scenario == "" {
			t.Scenario = r.scenario
		}
		if t.Pace == nil {
			t.Pace = r.pace
		}
		if t.Variants == nil {
			t.Variants = r.variants
		}
	}
	return t
}

func (r rule) matches(q Query) bool {
	if !r.attempts.has(q.Attempt) || !r.turns.has(q.Turn) {
		return false
	}
	if r.model == "" {
		return true
	}
	ok, err := path.Match(r.model, strings.ReplaceAll(q.Model, "/", ":"))
	return err == nil && ok
}

// ParseScript reads a script. One rule a line, # begins a comment:
//
//	SELECTOR: DIRECTIVE [; DIRECTIVE]...
//
// A selector is "attempt N", "attempt N-M", "attempt N+", "attempt *" or
// "every stream" (each attempt; with a final "once" in the directive, the
// first attempt of each turn), optionally followed by "turn N", and "model
// PATTERN". A directive is a fault (see FaultUsage), "pass", "seam NAME [N]",
// "scenario NAME", "pace DURATION" or "variant NAME...".
//
// An error names the line and what to write instead.
func ParseScript(src []byte) (Script, error) {
	var s Script
	n := 0
	for line := range strings.Lines(string(src)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		r, err := parseRule(line)
		if err != nil {
			return Script{}, fmt.Errorf("fault script line %d: %w", n, err)
		}
		s.rules = append(s.rules, r)
	}
	return s, nil
}

// MustScript is ParseScript for scripts written in tests; it panics on errors.
func MustScript(src string) Script {
	s, err := ParseScript([]byte(src))
	if err != nil {
		panic(err)
	}
	return s
}

func parseRule(line string) (rule, error) {
	selector, rest, ok := strings.Cut(line, ":")
	if !ok {
		return rule{}, fmt.Errorf("%q has no colon: write SELECTOR: DIRECTIVE, such as attempt 1: rst after event 5", line)
	}
	r := rule{text: strings.TrimSpace(rest), turns: span{from: 1}}
	if err := r.parseSelector(&words{list: strings.Fields(selector)}); err != nil {
		return rule{}, err
	}
	for directive := range strings.SplitSeq(rest, ";") {
		w := &words{list: strings.Fields(directive)}
		if w.peek() == "" {
			return rule{}, fmt.Errorf("empty directive: write a fault, or pass")
		}
		if err := r.parseDirective(w); err != nil {
			return rule{}, err
		}
		if w.bad != nil {
			return rule{}, w.bad
		}
		if w.take("once") {
			r.attempts = span{1, 1}
		}
		if w.peek() != "" {
			return rule{}, fmt.Errorf("%q is left over in %q: separate directives by semicolons, or give %s", strings.Join(w.list, " "), strings.TrimSpace(directive), placeHelp)
		}
	}
	if r.pass && len(r.faults) > 0 {
		return rule{}, fmt.Errorf("pass and a fault exclude each other: keep one")
	}
	return r, nil
}

func (r *rule) parseSelector(w *words) error {
	var err error
	switch {
	case w.take("attempt"):
		if r.attempts, err = parseSpan(w.next()); err != nil {
			return fmt.Errorf("attempt %w", err)
		}
	case w.take("every") && w.take("stream"):
		r.attempts = span{from: 1}
	default:
		return fmt.Errorf("unknown selector %q: begin with attempt N, attempt N-M, attempt N+, attempt * or every stream", strings.Join(w.list, " "))
	}
	for w.peek() != "" {
		switch {
		case w.take("turn"):
			if r.turns, err = parseSpan(w.next()); err != nil {
				return fmt.Errorf("turn %w", err)
			}
		case w.take("model"):
			r.model = strings.ReplaceAll(w.next(), "/", ":")
			if _, err := path.Match(r.model, ""); err != nil || r.model == "" {
				return fmt.Errorf("model needs a pattern, such as model claude-*")
			}
		default:
			return fmt.Errorf("unknown selector word %q: use turn N or model PATTERN", w.peek())
		}
	}
	return nil
}

// parseSpan reads N, N-M, N+ or *.
func parseSpan(word string) (span, error) {
	bad := fmt.Errorf("needs N, N-M, N+ or *, not %q", word)
	if word == "*" {
		return span{from: 1}, nil
	}
	from, to, ranged := strings.Cut(word, "-")
	open := strings.HasSuffix(from, "+") && !ranged
	n, err := strconv.Atoi(strings.TrimSuffix(from, "+"))
	if err != nil || n < 1 {
		return span{}, bad
	}
	switch {
	case open:
		return span{from: n}, nil
	case !ranged:
		return span{n, n}, nil
	}
	m, err := strconv.Atoi(to)
	if err != nil || m < n {
		return span{}, bad
	}
	return span{n, m}, nil
}

func (r *rule) parseDirective(w *words) error {
	name := strings.ToLower(w.next())
	switch name {
	case "pass":
		r.pass = true
		return nil
	case "seam":
		once := len(w.list) > 0 && w.list[len(w.list)-1] == "once"
		args := w.list
		if once {
			args = args[:len(args)-1]
		}
		s, err := parseSeam(args)
		r.seam, w.list = &s, w.list[len(args):]
		return err
	case "scenario":
		r.scenario = w.next()
		if _, ok := scenarios[r.scenario]; !ok {
			return fmt.Errorf("unknown scenario %q: use one of %s", r.scenario, strings.Join(ScenarioNames(), ", "))
		}
		return nil
	case "pace":
		d := w.duration(-1)
		if d < 0 {
			return fmt.Errorf("pace needs a duration, such as pace 20ms")
		}
		r.pace = &d
		return nil
	case "variant":
		r.variants = append(r.variants, w.list...)
		w.list = nil
		var v Variant
		for _, name := range r.variants {
			if err := v.Set(name); err != nil {
				return err
			}
		}
		return nil
	}
	f, known, err := parseFault(name, w)
	if !known {
		return fmt.Errorf("unknown directive %q: use pass, seam, scenario, pace, variant, or a fault: %s", name, strings.Join(faultNames(), ", "))
	}
	if err != nil {
		return err
	}
	r.faults = append(r.faults, f)
	return nil
}
