package splice

import (
	"strings"
	"unicode"
)

// sentinelWrap bounds what may stand around a sentinel, in bytes.
const sentinelWrap = 64

// sentinel reads a text as nothing but the word that says that nothing is missing, whatever quotes, emphasis,
// punctuation and white space stand around it.
type sentinel struct {
	core  string // the word without such marks of its own
	text  []byte
	state fate // found: the word was said; dead behind it (see more) or without it
	more  bool // other text followed the word
}

func newSentinel(word string) sentinel {
	s := sentinel{core: strings.TrimFunc(word, wraps)}
	if s.core == "" {
		s.state = dead
	}
	return s
}

// wraps reports whether r may stand around the word.
func wraps(r rune) bool {
	return unicode.IsSpace(r) || r != '_' && (unicode.IsPunct(r) || unicode.IsSymbol(r))
}

// add takes the next rune, read as raw.
func (s *sentinel) add(r rune, raw []byte) {
	if s.state == dead {
		return
	}
	s.text = append(s.text, raw...)
	said := strings.TrimLeftFunc(string(s.text), wraps)
	switch rest, whole := strings.CutPrefix(said, s.core); {
	case whole && rest != "" && !wraps(first(rest)):
		s.state = dead // The word goes on: it was only the beginning of another.
	case whole && len(rest) <= sentinelWrap && strings.TrimFunc(rest, wraps) == "":
		s.state = found
	case whole:
		s.state, s.more = dead, true
	case !strings.HasPrefix(s.core, said) || len(s.text)-len(said) > sentinelWrap:
		s.state = dead
	}
}

func first(s string) rune {
	for _, r := range s {
		return r
	}
	return 0
}
