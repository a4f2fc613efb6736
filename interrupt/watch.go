package interrupt

import (
	"strconv"
	"time"
)

// Config holds the limits of a [Watch]. A zero duration means the default, a
// negative one switches that clock off.
type Config struct {
	// Headers bounds the wait for a response head; default 60 s. HeadersWhole
	// does so for a call that does not stream, whose head comes when the answer
	// is ready; default 600 s.
	Headers, HeadersWhole time.Duration
	// FirstToken bounds the wait for visible content, from the start of the
	// attempt; default 600 s.
	FirstToken time.Duration
	// Idle bounds silence in bytes while text or arguments flow; default 60 s.
	Idle time.Duration
	// Progress bounds the time without useful progress once the turn has begun;
	// default 180 s. ProgressQuiet does so while a reasoning or hosted-tool
	// block is open and before the first visible content; default 600 s.
	Progress, ProgressQuiet time.Duration
	// Floor is how many bytes of text or arguments a second must flow, on
	// average over FloorSpan (30 s), while they flow; 0: no floor.
	Floor     int
	FloorSpan time.Duration
}

func (c Config) orDefaults() Config {
	for _, f := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&c.Headers, 60 * time.Second},
		{&c.HeadersWhole, 600 * time.Second},
		{&c.FirstToken, 600 * time.Second},
		{&c.Idle, 60 * time.Second},
		{&c.Progress, 180 * time.Second},
		{&c.ProgressQuiet, 600 * time.Second},
		{&c.FloorSpan, 30 * time.Second},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
	}
	return c
}

// Call is what a watch must know of one attempt.
type Call struct {
	// Whole: the call does not stream. Only the headers clock and, once the
	// body flows, the byte clock run.
	Whole bool
	// Pings: the target is known to ping through silent phases, so that byte
	// silence means a dead connection there too.
	Pings bool
}

// Phase says what the stream is doing, as far as silence is concerned.
type Phase uint8

const (
	// Waiting: the turn has not begun, or nothing is open.
	Waiting Phase = iota
	// Speaking: text or arguments flow.
	Speaking
	// Quiet: a reasoning or hosted-tool block is open; silence is healthy.
	Quiet
	// Done: the semantic end was seen. Nothing is an interruption any more.
	Done
)

// Watch tells silence that is healthy from silence that is not. It runs two
// clocks, since one cannot (FIELD-REPORTS B1): bytes, and useful progress. Pings,
// comments and empty deltas are bytes and never progress.
//
//	until the head                    Headers     from the start       FirstTokenTimeout
//	until visible content             FirstToken  from the start       FirstTokenTimeout
//	Speaking                          Idle        from the last byte   IdleStall
//	Waiting, Quiet on a pinging host  Idle        from the last byte   IdleStall, once there was one
//	begun                             Progress    from the last progress   IdleStall; ProgressQuiet while
//	                                              Quiet or nothing is visible
//	Speaking, visible, with a Floor   FloorSpan   from the start of a span         IdleStall, if too little
//	                                              was said in it
//
// It is a value without pointers: one per attempt, no allocation; what every event
// touches comes first. Its clock may
// be coarse and may be read twice at one instant; a time before the last one
// known is taken for that one.
type Watch struct {
	byteAt   time.Time
	progress time.Time
	said     int // bytes of the span that the floor is measured over
	phase    Phase
	opened   bool
	visible  bool
	heard    bool // a body byte came
	begun    bool // progress was made
	call     Call
	limits   Config
	span     time.Time // when it began
	start    time.Time
}

// NewWatch starts a watch over an attempt that begins now.
func NewWatch(c Config, call Call, now time.Time) Watch {
	return Watch{limits: c.orDefaults(), call: call, start: now, byteAt: now, progress: now}
}

// Opened says that the response head arrived.
func (w *Watch) Opened(now time.Time) {
	w.opened = true
	w.byteAt = later(w.byteAt, now)
}

// Bytes says that body bytes arrived, of whatever meaning.
func (w *Watch) Bytes(now time.Time) {
	w.opened, w.heard = true, true
	w.byteAt = later(w.byteAt, now)
}

// Progress says that something useful arrived: text, arguments, reasoning, the
// opening or the close of a block. Heads and pings are not progress. It implies
// Bytes.
func (w *Watch) Progress(now time.Time) {
	w.Bytes(now)
	w.begun = true
	w.progress = later(w.progress, now)
}

// Visible says that this attempt yielded its first visible content. A
// continuation starts anew: it too has to speak within FirstToken.
func (w *Watch) Visible() { w.visible = true }

// Said says that n bytes of text or arguments arrived; it goes with Progress.
func (w *Watch) Said(n int) { w.said += n }

// Phase sets the phase. Report the bytes and the progress of an event before the
// phase it leads to: a limit that gets shorter counts from the last of them.
func (w *Watch) Phase(p Phase) {
	if p == Speaking && w.phase != Speaking {
		w.span, w.said = w.byteAt, 0
	}
	w.phase = p
}

// clock identifies the limit that comes first.
type clock uint8

const (
	noClock clock = iota
	headersClock
	firstTokenClock
	idleClock
	progressClock
	floorClock
)

// due returns the earliest deadline and the limit it belongs to.
func (w *Watch) due() (at time.Time, which clock, limit time.Duration) {
	arm := func(c clock, from time.Time, d time.Duration) {
		if d < 0 {
			return
		}
		if t := from.Add(d); which == noClock || t.Before(at) {
			at, which, limit = t, c, d
		}
	}
	l := &w.limits
	if w.phase == Done {
		return at, which, limit
	}
	if !w.opened {
		if w.call.Whole {
			arm(headersClock, w.start, l.HeadersWhole)
		} else {
			arm(headersClock, w.start, l.Headers)
		}
	}
	if w.call.Whole {
		if w.opened {
			arm(idleClock, w.byteAt, l.Idle)
		}
		return at, which, limit
	}
	if !w.visible {
		arm(firstTokenClock, w.start, l.FirstToken)
	}
	if w.phase == Speaking || w.call.Pings && w.heard {
		arm(idleClock, w.byteAt, l.Idle)
	}
	if l.Floor > 0 && w.phase == Speaking && w.visible {
		arm(floorClock, w.span, l.FloorSpan)
	}
	if w.begun {
		if w.phase == Quiet || !w.visible {
			arm(progressClock, w.progress, l.ProgressQuiet)
		} else {
			arm(progressClock, w.progress, l.Progress)
		}
	}
	return at, which, limit
}

// Next returns the earliest instant at which Check can find something, as things
// stand. The zero time means never.
func (w *Watch) Next() time.Time {
	at, _, _ := w.due()
	return at
}

// Check returns the interruption that silence means now, or the zero Cause.
func (w *Watch) Check(now time.Time) Cause {
	at, which, limit := w.due()
	if which == noClock || now.Before(at) {
		return Cause{}
	}
	// 504 is what a gateway says of an upstream that fell silent, and Anthropic of its own.
	c := Cause{Kind: IdleStall, Status: 504}
	switch which {
	case headersClock:
		c.Kind, c.Message = FirstTokenTimeout, "no response head within "+limit.String()
	case firstTokenClock:
		c.Kind, c.Message = FirstTokenTimeout, "no visible content within "+limit.String()
	case idleClock:
		c.Message = "no byte for " + limit.String()
	case progressClock:
		c.Message = "no progress for " + limit.String()
	case floorClock:
		if float64(w.said) >= float64(w.limits.Floor)*limit.Seconds() {
			w.span, w.said = now, 0
			return Cause{}
		}
		c.Slow = true
		c.Type, c.Message = "slow_drip", "less than "+strconv.Itoa(w.limits.Floor)+" bytes a second for "+limit.String()
	}
	return c
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
