package splice

import (
	"unicode"
	"unicode/utf8"
)

// settling reads on behind a repetition, up to where the new text begins.
type settling struct {
	kind     Kind
	cut      int // offset behind the repetition
	overlap  int
	closes   rune // what may stand behind the repetition, as it did in the instruction; 0 for nothing
	lead     []byte
	solid    bool
	sentinel sentinel
}

func (t *settling) add(r rune, raw []byte) {
	if closes := t.closes; closes != 0 {
		if t.closes = 0; r == closes {
			t.cut += len(raw)
			return
		}
	}
	t.sentinel.add(r, raw)
	if t.solid = t.solid || !unicode.IsSpace(r); !t.solid {
		t.lead = append(t.lead, raw...)
	}
}

// begin settles a repetition that ends at cut, reading again what was read behind it.
func (s *Seam) begin(kind Kind, cut int, a *attempt) {
	s.settling = &settling{kind: kind, cut: cut, overlap: cut - a.from, sentinel: sentinel{state: dead}}
	if a.marked {
		s.settling.closes = s.c.Closes
	}
	if s.c.Manner == Asked {
		s.settling.sentinel = newSentinel(s.c.Sentinel)
	}
	for again := s.recent[len(s.recent)-(s.pos-cut):]; len(again) > 0; {
		r, size := utf8.DecodeRune(again)
		s.settling.add(r, again[:size])
		again = again[size:]
	}
	s.settle()
}

// settle decides once the new text begins, so that white space is neither doubled nor the sentinel shown.
func (s *Seam) settle() {
	t := s.settling
	switch {
	case s.over && t.sentinel.state == found:
		s.joined(t.kind&^base|Sentinel, s.pos, t.overlap)
	case t.sentinel.more:
		s.fail(Chatter)
	case s.over && !t.solid && s.c.Manner == Asked && t.kind.Base() != Whole:
		s.joined(t.kind, t.cut+doubled(s.after, t.lead), t.overlap)
		s.blank()
	case s.over, t.solid && t.sentinel.state == dead, s.c.Manner != Asked && len(t.lead) >= len(s.after):
		s.joined(t.kind, t.cut+doubled(s.after, t.lead), t.overlap)
	case len(t.lead) > s.c.Window:
		s.fail(TooLong)
	}
}
