package splice

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// Manner is how the continuation was asked for, and with it how far it is trusted.
type Manner uint8

// The manners (DESIGN §4).
const (
	Prefill Manner = iota // the provider goes on with the assistant's last message
	Echoing               // the same, on a host known to repeat that message
	Asked                 // a user turn asks the model to go on, beginning with the anchor
)

// String names the manner.
func (m Manner) String() string { return [...]string{"prefill", "echoing", "asked"}[m] }

// DefaultWindow is Config.Window when zero, in bytes.
const DefaultWindow = 8 << 10

// Config describes one seam.
type Config struct {
	// Said is the text the client was shown: the whole visible text of the run that is continued, exact bytes. It
	// is not copied and must not change while the seam lives.
	Said []byte
	// Stripped is the number of trailing white space bytes of Said that the continuation request left out.
	Stripped int
	Manner   Manner
	// Anchor is the number of bytes at the end of Said, before the Stripped ones, that the instruction demanded to be
	// repeated verbatim; 0 for none. Only for Asked.
	Anchor int
	// Opens and Closes stood around the anchor in the instruction. Models repeat them with it, whatever they are told.
	// Zero for none. Only for Asked.
	Opens, Closes rune
	// Sentinel is the word an asked continuation answers when nothing is missing; "" for none. Only for Asked.
	Sentinel string
	// Window is the most bytes held while undecided, besides those that repeat what was said; 0 means DefaultWindow.
	Window int
	// JSON says that Said is the beginning of a JSON document: a comma or a colon needs no space behind it there. That
	// the joined text is a document is for a Document to say.
	JSON bool
}

// Seam reads the head of one continuation. It is not safe for concurrent use.
type Seam struct {
	c        Config
	core     []byte // Said without white space at either end
	after    []byte // white space behind core
	folded   []byte // folded tail of core
	anchor   int    // folded length of the anchor
	solid    int    // non-space characters of core, counted up to 2*enough
	circular bool   // core is one piece said over and over
	fenced   bool   // a code fence is open at the end of Said
	join     junction

	part     []byte // incomplete code point at the end of what was pushed
	recent   []byte // bytes pos-len(recent) to pos of the continuation, while a cut may lie in them
	pos      int    // bytes of the continuation read
	lead     []byte // white space it begins with, what a cut may have to compare
	head     []byte // its first solid bytes, for Markdown blocks
	over     bool
	talk     talk
	sentinel sentinel
	attempts []*attempt // best first
	settling *settling  // set once a repetition is decided
	verdict  Verdict
}

// New returns the seam c describes. Its cost is linear in the length of Said.
func New(c Config) *Seam {
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	c.Stripped = min(max(c.Stripped, 0), len(c.Said))
	s := &Seam{c: c, core: bytes.TrimSpace(c.Said), after: trailing(c.Said)}
	s.folded = foldTail(s.core)
	s.solid = solid(s.core, 2*enough)
	s.circular = c.Manner == Prefill && periodic(append(s.folded[:len(s.folded):len(s.folded)], ' '))
	s.sentinel.state, s.talk.state = dead, dead
	if c.Manner == Asked {
		s.fenced = openFence(c.Said)
		s.sentinel = newSentinel(c.Sentinel)
		s.talk.state = alive
		s.anchor = s.foldedAnchor()
	}
	s.join = newJunction(c.Said, s.fenced || c.JSON)
	if c.Manner == Prefill && s.join.inWord() {
		s.talk.state = alive
	}
	s.attempts = []*attempt{{trust: true}}
	return s
}

func (s *Seam) foldedAnchor() int {
	if s.c.Anchor <= 0 {
		return 0
	}
	text := s.c.Said[:len(s.c.Said)-s.c.Stripped]
	at := max(0, len(text)-s.c.Anchor)
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return min(len(foldTail(text[at:])), len(s.folded))
}

// Push takes the next bytes of the continuation's text. They may be cut anywhere, also inside a code point.
func (s *Seam) Push(p []byte) Verdict {
	if s.verdict.State != Holding {
		return s.verdict
	}
	text := p
	if len(s.part) > 0 {
		text = append(s.part, p...)
	}
	for len(text) > 0 && s.verdict.State == Holding {
		if !utf8.FullRune(text) {
			break
		}
		r, size := utf8.DecodeRune(text)
		s.read(r, text[:size])
		text = text[size:]
	}
	s.part = append([]byte(nil), text...)
	return s.verdict
}

// End says that the continuation ended by its own terminal, and decides.
func (s *Seam) End() Verdict {
	for len(s.part) > 0 && s.verdict.State == Holding {
		s.read(utf8.RuneError, s.part[:1])
		s.part = s.part[1:]
	}
	if s.verdict.State == Holding {
		s.over = true
		s.decide()
	}
	if s.verdict.State == Holding {
		panic("BUG: splice: a seam is undecided at its end")
	}
	return s.verdict
}

// Held is the number of bytes it has taken so far, or took, to decide.
func (s *Seam) Held() int {
	if s.verdict.State != Holding {
		return s.pos
	}
	return s.pos + len(s.part)
}

// read takes one rune.
func (s *Seam) read(r rune, raw []byte) {
	s.pos += len(raw)
	if s.settling != nil {
		s.settling.add(r, raw)
		s.decide()
		return
	}
	s.note(r, raw)
	s.sentinel.add(r, raw)
	if s.c.Manner == Prefill && len(s.lead) > 0 {
		s.talk.state = dead // No word is glued, so nothing but the whole answer is looked for.
	}
	if s.talk.add(r); s.talk.state == found && len(s.attempts) == 1 {
		s.attempts = append(s.attempts, &attempt{kind: Preamble, begin: s.pos - len(raw), trust: s.talk.firm})
	}
	for i, n := 0, len(s.attempts); i < n; i++ {
		a := s.attempts[i]
		if s.opens(a, r) {
			s.attempts = append(s.attempts, &attempt{kind: a.kind | Preamble, begin: s.pos, marked: true})
		}
		was := a.fence.state
		s.addTo(a, r, raw, s.pos)
		if was != found && a.fence.state == found {
			lineHead := s.join.lineHead || a.kind == 0 && bytes.IndexByte(s.lead, '\n') >= 0
			trust := a.fence.fence.info || !lineHead || !s.fenced // Else it may close the one that is open.
			s.attempts = append(s.attempts, &attempt{kind: a.kind | Fence, begin: s.pos, trust: trust, line: true})
			break // The line break belongs to the fence, not to what it opens.
		}
	}
	s.decide()
}

// opens reports whether r, which a begins with, is what stood before the anchor in the instruction.
func (s *Seam) opens(a *attempt, r rune) bool {
	return a.first == 0 && !a.marked && s.anchor > 0 && s.c.Opens != 0 && r == s.c.Opens
}

// note keeps the bytes that a later decision may need again.
func (s *Seam) note(r rune, raw []byte) {
	solid := len(s.head) > 0 || !unicode.IsSpace(r)
	switch {
	case !solid && len(s.lead) <= s.c.Window:
		s.lead = append(s.lead, raw...)
	case solid && len(s.head) < 8:
		s.head = append(s.head, raw...)
	}
	for _, a := range s.attempts {
		if a.first == 0 || a.tail.state != dead {
			s.recent = append(s.recent, raw...)
			return
		}
	}
	s.recent = s.recent[:0]
}
