package splice

func (s *Seam) fail(reason string) { s.verdict = Verdict{State: Failed, Reason: reason} }

// blank makes a join that brings no words a failure, which tells where it would have joined.
func (s *Seam) blank() { s.verdict.State, s.verdict.Reason = Failed, Blank }

func (s *Seam) joined(kind Kind, skip, overlap int) {
	s.verdict = Verdict{State: Joined, Skip: skip, Kind: kind, Overlap: overlap}
	s.recent, s.attempts, s.folded = nil, nil, nil
}

// decide looks at the readings in the order of their claim: a repetition that is certain, readings that may still become
// one, what a repetition left half said means, and the exact reading last.
func (s *Seam) decide() {
	if s.settling != nil {
		s.settle()
		return
	}
	if s.over {
		for _, a := range s.attempts {
			a.over()
		}
	}
	for _, a := range s.attempts {
		if kind, cut, ok := a.repeats(s.over); ok {
			if kind.Base() != Whole && a.whole.cut >= cut+enough && a.whole.restarted() && !s.anchorTwice(kind) {
				s.fail(Diverged)
				return
			}
			s.begin(kind, cut, a)
			return
		}
		if a.live() && !s.over {
			s.wait()
			return
		}
	}
	if s.over && s.sentinel.state == found {
		s.joined(Sentinel, s.pos, 0)
		return
	}
	if !s.over && (s.talk.state == alive || s.sentinel.state != dead || s.reopens()) {
		s.wait()
		return
	}
	s.conclude()
}

// anchorTwice reports whether the anchor that was repeated stands in what was said more than once, so that what
// looked like the whole answer again began where it was asked to: an answer that quotes its own beginning.
func (s *Seam) anchorTwice(kind Kind) bool {
	return kind.Base() == Anchor && twice(s.folded, s.folded[len(s.folded)-s.anchor:])
}

// wait goes on holding, within bounds.
func (s *Seam) wait() {
	if s.pos <= s.c.Window {
		return
	}
	for _, a := range s.attempts {
		if a.follows() {
			return
		}
	}
	if s.c.Manner == Asked {
		s.fail(TooLong)
		return
	}
	s.exact()
}

// reopens reports whether the line that may open a fence again is not over yet.
func (s *Seam) reopens() bool {
	for _, a := range s.attempts {
		if a.fence.state == alive {
			return true
		}
	}
	return false
}

// conclude decides when no repetition is left.
func (s *Seam) conclude() {
	if s.sentinel.more {
		s.fail(Chatter)
		return
	}
	for _, a := range s.attempts {
		if reason := s.betrays(a); reason != "" {
			s.fail(reason)
			return
		}
	}
	if s.talk.suspect && !s.talk.firm {
		s.fail(Talk)
		return
	}
	for i := len(s.attempts) - 1; i > 0; i-- {
		a := s.attempts[i]
		if a.first == 0 || !a.trust || !a.line {
			continue
		}
		// Code that begins a line goes on nowhere but at the head of one.
		cutLine := a.kind&Fence != 0 && len(a.lead) > 0 && !s.join.lineHead && !s.c.JSON
		if cutLine || s.join.glues(a.first) || s.join.tight(a.first) {
			s.fail(Unanchored)
			return
		}
		s.joined(a.kind, a.begin+doubled(s.after, a.lead), 0)
		return
	}
	if s.talk.firm {
		s.fail(Talk)
		return
	}
	s.exact()
}

// betrays returns why a, which repeated something and then did not go through with it, cannot be new text.
func (s *Seam) betrays(a *attempt) string {
	reason := Diverged
	if s.over && (a.follows() || a.tail.fit) {
		reason = Short
	}
	if a.whole.said != nil && a.whole.restarted() && !(s.c.Manner == Prefill && s.circular) {
		return reason
	}
	if s.c.Manner != Asked {
		return "" // A line may well come again in the middle of an answer that simply goes on.
	}
	if agreed := a.tail.agreed(s.over); solid(agreed, enough) >= enough && !twice(s.folded, agreed) {
		return reason
	}
	return ""
}

// exact joins the continuation as it is, if that can be defended.
func (s *Seam) exact() {
	a := s.attempts[0]
	if s.c.Manner == Asked {
		if a.first == 0 {
			s.asItIs()
			s.blank()
			return
		}
		if len(s.lead) == 0 {
			if s.join.glues(a.first) || s.join.tight(a.first) {
				s.fail(Unanchored)
				return
			}
			switch s.join.breaksLine(s.head) {
			case yes:
				s.fail(Unanchored)
				return
			case unknown:
				if !s.over {
					return
				}
			}
		}
	}
	s.asItIs()
}

// asItIs joins all of the continuation but the white space that the client has.
func (s *Seam) asItIs() {
	if s.pos == 0 {
		s.joined(Empty, 0, 0)
		return
	}
	skip := s.swallow()
	kind := Exact
	if skip > 0 {
		kind = Whitespace
	}
	s.joined(kind, skip, 0)
}

// swallow counts the leading white space that the client already has.
func (s *Seam) swallow() int {
	if len(s.core) == 0 {
		if len(s.c.Said) == 0 {
			return 0
		}
		return len(s.lead) // DESIGN §3: nothing but white space was said, so the answer begins anew.
	}
	shown := s.after
	if s.c.Manner != Asked {
		shown = s.c.Said[len(s.c.Said)-s.c.Stripped:]
	}
	return doubled(shown, s.lead)
}
