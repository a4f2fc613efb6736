package sse

import "bytes"

// whole is the short way of Next for what nearly every stream consists of: a unit that is in hand as a whole, without a
// CR, and with one data line at most. It works on locals and touches the scanner only when it succeeds, so that giving
// up costs one more look at the unit's lines and nothing else: a unit whose lines were begun is never tried again.
func (s *Scanner) whole() (e Event, ok bool) {
	in, at, lf := s.in, s.unit, s.lf
	for lf < len(in) {
		line, next := in[at:lf], lf+1
		switch {
		case len(line) == 0 || line[0] == ':' && at == s.unit:
			e.Raw = in[s.unit:next]
			if len(e.Raw) > s.limit() {
				return Event{}, false
			}
			s.unit, s.line, s.lf = next, next, following(in, next)
			return e, true
		case len(line) > 5 && string(line[:6]) == "data: " && e.Data == nil:
			e.Data = line[6:]
		case len(line) > 6 && string(line[:7]) == "event: ":
			e.Name = line[7:]
		case line[0] == 'd':
			if from, ok := value(line, "data"); ok {
				if e.Data != nil {
					return Event{}, false
				}
				e.Data = line[from:]
			}
		case line[0] == 'e':
			if from, ok := value(line, "event"); ok {
				e.Name = line[from:]
			}
		}
		at, lf = next, following(in, next)
	}
	return Event{}, false
}

// following is index for LF, without the call when the next line is the blank one.
func following(in []byte, from int) int {
	if from < len(in) && in[from] == '\n' {
		return from
	}
	if i := bytes.IndexByte(in[from:], '\n'); i >= 0 {
		return from + i
	}
	return len(in)
}
