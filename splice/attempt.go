package splice

import "unicode"

// attempt is one place in the continuation from which it is read as text: its start, or behind a preamble or a fence.
type attempt struct {
	kind   Kind   // Preamble, Fence, both or none
	begin  int    // offset from which the exact reading would take it
	trust  bool   // the exact reading is open to it
	marked bool   // what opened the anchor in the instruction stands before it
	line   bool   // a line break stands before its text
	lead   []byte // white space between begin and its text
	spaced bool   // white space stands before its text
	first  rune   // its first solid character, 0 before
	folder folder
	buf    []byte // reused for folded bytes
	tail   tail
	whole  whole
	fence  reopening
	from   int // offset of its first solid character
}

// live reports whether it may still turn out to be a repetition.
func (a *attempt) live() bool {
	return a.first == 0 || a.tail.state == alive || a.whole.state == alive
}

// follows reports whether what it says right now is what was said.
func (a *attempt) follows() bool { return a.first != 0 && a.live() }

// addTo gives a the next rune, read as raw, which ends at offset end of the continuation.
func (s *Seam) addTo(a *attempt, r rune, raw []byte, end int) {
	if a.first == 0 {
		if unicode.IsSpace(r) {
			a.spaced = true
			if a.kind == 0 {
				return // Seam keeps the white space the continuation itself begins with.
			}
			if a.lead = append(a.lead, raw...); r == '\n' {
				a.line, a.begin, a.lead = true, end, a.lead[:0]
			}
			return
		}
		a.first, a.from = r, end-len(raw)
		s.equip(a)
	}
	a.fence.add(r, raw)
	if a.tail.state != alive && a.whole.state != alive {
		return
	}
	out, ok := a.folder.fold(a.buf[:0], r, raw)
	if a.buf = out; !ok {
		a.tail.state, a.whole.state = dead, dead
		return
	}
	if len(out) == 0 {
		return
	}
	a.whole.push(raw, len(out) > len(raw), end)
	for i, b := range out {
		// A folded space ends where the character before it does; a tail never ends with one.
		at := end
		if i < len(out)-1 {
			at = end - len(raw)
		}
		a.tail.push(b, at)
	}
}

// equip decides, now that its first character is known, which readings are open to a and what evidence they need.
func (s *Seam) equip(a *attempt) {
	glues := s.join.glues(a.first) && (!a.spaced || a.kind != 0)
	a.tail.state, a.whole.state, a.fence.state = dead, dead, dead
	if len(s.core) == 0 {
		return
	}
	floor := few
	if glues || s.join.tight(a.first) && !a.spaced {
		floor = glued
	}
	need := min(enough, max(floor, (s.solid+1)/2))
	if a.kind != 0 {
		need = min(need, few) // Whoever announces a continuation or opens the fence again is likely to repeat a line.
	}
	a.whole = whole{said: s.core, need: floor}
	switch s.c.Manner {
	case Prefill:
		if a.kind == 0 && !glues && s.circular {
			a.whole.state = dead
		}
		if !glues && a.kind == 0 {
			return
		}
		need = max(need, few)
	case Echoing:
		a.whole.need = 1
	case Asked:
		if a.kind&Fence == 0 && (s.fenced || s.c.JSON) {
			a.fence.state = alive
		}
	}
	least := leastTail(s.folded, need)
	if s.anchor > 0 {
		least = min(least, s.anchor)
		if s.anchor == len(s.folded) {
			a.whole.need = 1
		}
	}
	if least <= len(s.folded) {
		a.tail = tail{text: s.folded, least: least, anchor: s.anchor, circle: glues}
	}
}

// over says that the continuation has ended.
func (a *attempt) over() {
	if a.tail.state == alive {
		a.tail.end()
	}
}

// repeats returns what a repeated, the offset behind it and whether it is decided that it did. A repeated tail waits for
// the whole answer, which would be a longer repetition, unless the continuation is over; the anchor, which was
// asked for, does not.
func (a *attempt) repeats(over bool) (kind Kind, cut int, ok bool) {
	whole, tail := a.whole.state == found, a.tail.state == found
	switch {
	case whole && (!tail || a.whole.cut >= a.tail.cut()):
		return a.kind | Whole, a.whole.cut, true
	case tail && a.tail.got == a.tail.anchor:
		return a.kind | Anchor, a.tail.cut(), true
	case tail && (over || a.whole.state != alive):
		return a.kind | Overlap, a.tail.cut(), true
	}
	return 0, 0, false
}
