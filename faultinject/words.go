package faultinject

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// words is a cursor over the words of one directive.
type words struct {
	list []string
	bad  error // the first misuse; checked once, by the rule's parser
}

func (w *words) peek() string {
	if len(w.list) == 0 {
		return ""
	}
	return w.list[0]
}

func (w *words) next() string {
	word := w.peek()
	if word != "" {
		w.list = w.list[1:]
	}
	return word
}

// take consumes the next word if it is the given one, whatever its case.
func (w *words) take(word string) bool {
	if !strings.EqualFold(w.peek(), word) || word == "" {
		return false
	}
	w.next()
	return true
}

// number consumes a number if one is next.
func (w *words) number(otherwise int) int {
	n, err := strconv.Atoi(w.peek())
	if err != nil {
		return otherwise
	}
	if n < 0 && w.bad == nil {
		w.bad = fmt.Errorf("%d is negative: use a number from 0", n)
	}
	w.next()
	return n
}

// duration consumes a duration such as 250ms or 2s if one is next.
func (w *words) duration(otherwise time.Duration) time.Duration {
	d, err := time.ParseDuration(w.peek())
	if err != nil {
		return otherwise
	}
	if d < 0 && w.bad == nil {
		w.bad = fmt.Errorf("%v is negative: use a duration such as 250ms", d)
	}
	w.next()
	return d
}

// every consumes "every DURATION" if it is next.
func (w *words) every(otherwise time.Duration) time.Duration {
	if !w.take("every") {
		return otherwise
	}
	d := w.duration(-1)
	if d <= 0 && w.bad == nil {
		w.bad = fmt.Errorf("every needs a duration, such as every 100ms")
	}
	return d
}

func (w *words) wrong(after, use string) error {
	return fmt.Errorf("%s cannot be followed by %q: use %s", after, w.peek(), use)
}

// placeWord reports whether a word begins an address.
func placeWord(word string) bool {
	switch strings.ToLower(word) {
	case "after", "before", "inside", "in", "at", "once":
		return true
	}
	return false
}

const placeHelp = "an address: before|after|inside event N, before|after KIND [N], in KIND, at event N, at byte N, at random, at start, at end, before headers"

// at reads an address; without one it is a random event.
//
//	before headers              nothing was sent
//	at start, after headers     nothing but the headers was sent
//	at event N, after event N   N events were delivered
//	before event N              N-1 events were delivered
//	inside event N              N-1 events and half of the N-th
//	after|before|inside KIND [N]  likewise, for the N-th event of a kind
//	in KIND [N]                 after the N-th event of a kind
//	at byte N                   N bytes were delivered
//	at random                   some event, drawn from the seed
//	at end                      every event was delivered
func (w *words) at() (At, error) {
	at := At{}
	switch {
	case w.take("before"):
		if w.take("headers") {
			return At{Fixed: true, Phase: PhaseOpen}, nil
		}
		at.Side = Before
	case w.take("inside"):
		at.Side = Inside
	case w.take("after"):
		if w.take("headers") {
			return At{Fixed: true, Phase: PhaseHead}, nil
		}
	case w.take("in"):
	case w.take("at"):
		return w.atFixed()
	default:
		return at, nil
	}
	if w.take("event") {
		if at.Event = w.number(0); at.Event < 1 {
			return at, fmt.Errorf("event needs a number from 1, such as after event 5")
		}
		return at, nil
	}
	return w.atKind(at)
}

// atBody reads the address of a fault that sends something, or ends a body: it
// cannot come before the headers.
func (w *words) atBody() (At, error) {
	at, err := w.at()
	if err == nil && at.Fixed && at.Phase == PhaseOpen {
		err = fmt.Errorf("before headers there is no body yet: use at start")
	}
	return at, err
}

func (w *words) atFixed() (At, error) {
	switch {
	case w.take("random"):
		return At{}, nil
	case w.take("start"):
		return At{Fixed: true, Phase: PhaseHead}, nil
	case w.take("end"):
		return At{Fixed: true, Phase: PhaseDone}, nil
	case w.take("byte"):
		n := w.number(-1)
		if n < 0 {
			return At{}, fmt.Errorf("byte needs a number from 0, such as at byte 700")
		}
		return At{HasByte: true, Byte: int64(n)}, nil
	case w.take("event"):
		n := w.number(0)
		if n < 1 {
			return At{}, fmt.Errorf("event needs a number from 1, such as at event 4")
		}
		return At{Event: n}, nil
	}
	return w.atKind(At{})
}

func (w *words) atKind(at At) (At, error) {
	for _, k := range kinds {
		if !w.take(string(k)) {
			continue
		}
		if k == KindTool && w.take("args") {
			k = KindArgs
		}
		at.Kind, at.Nth = k, w.number(1)
		return at, nil
	}
	return at, fmt.Errorf("%q is no place: use %s; KIND is one of %s", w.peek(), placeHelp, strings.Join(names(kinds), ", "))
}
