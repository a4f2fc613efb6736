package faultinject

import "strconv"

// An At addresses one moment of a response. Exactly one of the groups is set;
// the zero value is a random event boundary, drawn from the seed.
type At struct {
	Phase Phase // PhaseOpen, PhaseHead or PhaseDone with Fixed
	Fixed bool

	Side  Side
	Event int  // number of the event, from 1
	Kind  Kind // or its kind
	Nth   int  // of that kind, from 1

	Byte    int64 // or this many bytes into the body
	HasByte bool
}

// A Side says where at an event.
type Side uint8

// The sides.
const (
	After  Side = iota // the event is the last one delivered
	Before             // the event is not delivered
	Inside             // half of it is delivered
)

// here reports whether the moment is at p, and how many bytes of the chunk go
// out before it.
func (at At) here(p Position, chunk []byte) (n int, hit bool) {
	if p.Phase != PhaseEvent {
		return 0, at.Fixed && at.Phase == p.Phase
	}
	if at.Fixed {
		return 0, false
	}
	if at.HasByte {
		off := at.Byte - p.Byte
		return int(off), off >= 0 && off < int64(len(chunk))
	}
	if !at.names(p) {
		return 0, false
	}
	switch at.Side {
	case Before:
		return 0, true
	case Inside:
		return max(1, len(chunk)/2), true
	default:
		return len(chunk), true
	}
}

// names reports whether the address means p's event.
func (at At) names(p Position) bool {
	switch {
	case at.Event > 0:
		return p.Event == at.Event
	case at.Kind != "":
		kind := at.Kind
		if kind == KindFinish && p.Dialect.speaker().traits().oneEnd {
			kind = KindEnd
		}
		return p.Kind == kind && p.Nth == max(1, at.Nth)
	default:
		return p.Event == randomEvent(p)
	}
}

// randomEvent draws the event of a random address. The last event is spared: a
// cut after it cuts nothing. Without a known total the first twenty are meant.
func randomEvent(p Position) int {
	span := p.Total - 1
	if span < 1 {
		span = 20
	}
	return 1 + int(hash64("at", p.ID, strconv.FormatUint(p.Seed, 10))%uint64(span))
}

// cut is the common shape of faults that end a response: what precedes the
// moment goes out, then the last steps follow.
func (at At) cut(p Position, chunk []byte, last ...Step) Action {
	n, hit := at.here(p, chunk)
	if !hit {
		return Action{}
	}
	if n == 0 {
		return do(last...)
	}
	return do(append([]Step{{Write: chunk[:n]}}, last...)...)
}

// insert is the common shape of faults that put something into a response and
// let it go on.
func (at At) insert(p Position, chunk []byte, steps ...Step) Action {
	n, hit := at.here(p, chunk)
	if !hit {
		return Action{}
	}
	var all []Step
	if n > 0 {
		all = append(all, Step{Write: chunk[:n]})
	}
	all = append(all, steps...)
	if n < len(chunk) {
		all = append(all, Step{Write: chunk[n:]})
	}
	return do(all...)
}
