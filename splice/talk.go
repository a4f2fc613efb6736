package splice

import (
	"strings"
	"unicode"
)

// Bounds of a preamble, in bytes of normalised text.
const (
	talkWindow = 200 // all of it
	talkTail   = 100 // between the lead and the end of its sentence: "of the previous answer, exactly where it ended"
)

// talk reads a preamble: [opener] [lead anything] and the end of the sentence or line. It works on normalised text and
// looks at all of it again for each character, which the bounds keep cheap.
type talk struct {
	text    []byte
	state   fate // found: the preamble is over and what follows it begins
	suspect bool // it began so much like a preamble that it can be nothing else
	dots    bool // it is only an ellipsis, which people put before a quotation: nothing to suspect
	closing bool // its last sentence is over
	firm    bool // it announces a continuation plainly enough to leave it out before a text that repeats nothing
}

// add takes the next rune. When the state turns found, r is already behind the preamble.
func (t *talk) add(r rune) {
	if t.state != alive {
		return
	}
	if t.closing {
		if !strings.ContainsRune("*_.:!…)：。", r) {
			t.state = found
		}
		return
	}
	if len(t.text) == 0 && unicode.IsSpace(r) {
		return
	}
	if len(t.text) == 0 && unicode.IsLower(r) {
		t.state = dead // Assistants begin with a capital; "sure" in mid-sentence is text.
		return
	}
	if t.text = normal(t.text, r); len(t.text) > talkWindow {
		t.state = dead
		return
	}
	t.state = t.judge(string(t.text), r)
}

// normal appends the normalised r.
func normal(text []byte, r rune) []byte {
	switch {
	case r == '*' || r == '_':
		return text
	case r == '’' || r == 'ʼ':
		r = '\''
	case r == '\n':
	case unicode.IsSpace(r):
		if len(text) > 0 && text[len(text)-1] == ' ' {
			return text
		}
		r = ' '
	}
	return append(text, string(unicode.ToLower(r))...)
}

// judge decides about the text so far, whose last rune as it came is r.
func (t *talk) judge(text string, r rune) fate {
	if strings.HasPrefix("...", text) || text == "…" {
		t.dots = true
		t.closing = text == "..." || text == "…"
		return alive
	}
	state := t.lead(text, r, leads)
	if state != dead && strings.ContainsRune(":：…", r) {
		t.firm = true
	}
	t.suspect = t.suspect || state == found // "Continuing from a prefix" may be a heading, too: neither shown nor left out.
	for _, o := range openers {
		state = better(state, t.opened(text, o, r))
	}
	return state
}

// opened judges the text as one that begins with opener.
func (t *talk) opened(text, opener string, r rune) fate {
	rest, ok := strings.CutPrefix(text, opener)
	if !ok || rest == "" {
		return prefixOf(text, opener)
	}
	said := strings.TrimLeft(rest, " !,.:;-–—…。，！：、")
	switch {
	case said == "\n": // "Sure!" on a line of its own.
		t.firm = true
		return found
	case said == "":
		return alive
	case len(said) == len(rest): // The word goes on: another word.
		return dead
	}
	announced := t.lead(said, r, leads)
	state := announced
	if strings.Trim(rest[:len(rest)-len(said)], " ") == "" {
		return state // "Great continuing education": without a mark between them only a clear lead counts.
	}
	for _, h := range hints {
		t.suspect = t.suspect || strings.HasPrefix(said, h)
		state = better(state, prefixOf(said, h))
	}
	announced = better(announced, t.lead(said, r, looseLeads))
	if announced != dead {
		t.firm = true
	}
	return better(state, announced)
}

// lead judges a text as one that begins with one of the phrases and goes on to the end of its sentence or line.
func (t *talk) lead(text string, r rune, phrases []string) fate {
	state := dead
	for _, l := range phrases {
		rest, ok := strings.CutPrefix(text, l)
		if !ok || rest == "" {
			state = better(state, prefixOf(text, l))
			continue
		}
		if first := rest[0]; len(rest) > talkTail || 'a' <= first && first <= 'z' {
			continue // "continuing" is a phrase, "continuingly" is not.
		}
		switch {
		case r == '\n':
			return found
		case strings.ContainsRune(":.…!：。", r):
			t.closing = true
		}
		state = alive
	}
	return state
}

// prefixOf says whether text may still become phrase.
func prefixOf(text, phrase string) fate {
	if strings.HasPrefix(phrase, text) {
		return alive
	}
	return dead
}

// better is the more promising of two fates of one reading.
func better(a, b fate) fate {
	switch {
	case a == found || b == found:
		return found
	case a == alive || b == alive:
		return alive
	}
	return dead
}
