package splice

import "bytes"

// Stops looks for a stop sequence that begins in the text the client has and ends in the continuation. The provider of
// the continuation never saw the two together; sequences wholly inside one of them are the providers' to find
// (FIELD-REPORTS D13). It is fed what the client would see, behind Verdict.Skip.
type Stops struct {
	open []begun // sequences that may still be completed
	seen int     // bytes pushed
	hit  string
}

// begun is a stop sequence of which the first at bytes were said.
type begun struct {
	stop string
	at   int
}

// NewStops returns the search for stops behind tail, the end of what was said; as much of it as the longest stop is enough.
func NewStops(stops []string, tail []byte) Stops {
	var s Stops
	for _, stop := range stops {
		for n := min(len(stop)-1, len(tail)); n > 0; n-- {
			if bytes.HasSuffix(tail, []byte(stop[:n])) {
				s.open = append(s.open, begun{stop, n})
			}
		}
	}
	return s
}

// Push takes the next bytes. Until it is decided (ok), nothing may be shown: at most as long as the longest stop less one
// byte. Then either hit is the stop sequence that was completed, and nothing of the continuation is for the client
// (keep is 0 and the turn is over with the dialect's stop reason), or keep, all that was pushed so far, and what follows
// may be shown. Of several the one that is complete first counts, and of those the one that began first.
func (s *Stops) Push(p []byte) (keep int, hit string, ok bool) {
	for _, c := range p {
		if s.hit != "" || len(s.open) == 0 {
			break
		}
		next := s.open[:0]
		for _, b := range s.open {
			if b.stop[b.at] != c {
				continue
			}
			if b.at++; b.at == len(b.stop) {
				if len(b.stop) > len(s.hit) {
					s.hit = b.stop
				}
				continue
			}
			next = append(next, b)
		}
		s.open = next
	}
	if s.hit != "" {
		return 0, s.hit, true
	}
	s.seen += len(p)
	if len(s.open) > 0 {
		return 0, "", false
	}
	return s.seen, "", true
}

// End says that the continuation is over: a stop that was only begun is text.
func (s *Stops) End() (keep int, hit string, ok bool) {
	if s.hit == "" {
		s.open = nil
	}
	return s.Push(nil)
}
