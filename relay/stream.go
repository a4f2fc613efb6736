package relay

import (
	"math/rand/v2"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/splice"
	"github.com/unbroken-llm/unbroken/turn"
)

type phase uint8

const (
	opening  phase = iota // an attempt was asked for, no response head yet
	reading               // event bytes of a 2xx
	refused               // collecting the body of an error status
	whole                 // collecting a body that is not an event stream
	raw                   // relaying a body as it comes, unprotected
	queued                // an attempt waits its turn (Queued)
	waiting               // back-off before the next attempt
	closing               // semantic end seen; grace for late usage and the terminator
	finished              // nothing more
)

// Stream is one client stream. It is not safe for concurrent use; one driver
// owns it.
//
// Its fields, and those of what it holds by value, stand in the order of how often
// they are touched. A stream is one of thousands, and the caches have lost it when its
// next event comes: what an event costs is how many cache lines it touches, here and
// behind pointers, more than what it computes. What every event touches comes first,
// close together; what belongs to an interruption last.
type Stream struct {
	// one step
	now     time.Time
	attempt int
	phase   phase

	gate    bool // the response head is out
	visible bool // content beyond replayable head events was let out
	holding bool // held is in use
	ends    bool // the semantic end was let out
	counted bool // so was a usage record with or after it
	healing bool // an interruption is not yet healed
	durable bool // what leaves now would make the client act
	flush   bool // an interruption or the end: the log is to be whole (DESIGN §14)

	fx    Effects
	out   []byte // for the client in this step, or until the gate opens
	lent  []byte // what out is, where that is the provider's bytes in their own memory (pass); else nil
	spare []byte // out's own memory meanwhile
	notes []Note
	log   []byte // for the checkpoint in this step

	size   int // bytes of what was said
	dirty  int // bytes of it that are newer than the checkpoint
	offset int64
	tries  int // attempts at the target since it last brought something

	lastOut, lastNew, flushedAt time.Time

	pulse   pulse   // signs of life
	folding folding // the client gets no stream of it
	watch   interrupt.Watch
	hop     hop
	said    turn.Snapshot // the message as the client has it, plus what is held
	cfg     Config        // immutable, as are the next
	sum     Summary
	mark    turn.Mark

	// From here on: rarely.
	d      dialect.Dialect
	traits dialect.Traits
	req    *dialect.Request
	rng    rand.PCG

	// the client's side
	held   []byte    // behind an unfinished call or an unclosed signature
	shown  extent    // while holding: how much of said the client has
	holds  provision // what the provider holds of it
	odd    string    // why this stream can be relayed but not spliced; "": it can
	tokens tally     // output and prompt tokens over the hops
	taken  bool      // over from another process, whose attempt was the first

	// the attempts
	target   int
	body     []byte // of an error status or a whole answer
	partial  bool   // it was cut
	head     Opened // of the current attempt
	first    refusal
	askAt    time.Time // the soonest that a breaker lets somebody be asked; zero: none is open
	plan     pendingPlan
	manners  []turn.Manner // left on the target, best first
	plain    []byte        // the first attempt's body, before a target's model name
	left     int           // recoveries left
	earned   int
	retries  int
	waitLeft time.Duration
	probing  bool // the attempt is a breaker's probe
	// overflowed: the prompt was too long for a target.
	overflowed bool
	// spliced: the provider does not know the client's message by its id.
	spliced bool
	// dropped are the names of the calls that R2 took out.
	dropped []string
	scratch []byte
	// schema is the caller's, compiled when it is first needed (schemed); nil: it
	// cannot be checked here.
	schema  *splice.Schema
	schemed bool

	began, holdFrom, wakeAt, graceAt, linedUp time.Time
}

// refusal is the first interruption of a request and what the provider said
// with it; it is what the client is told if nothing helps.
type refusal struct {
	set    bool
	cause  interrupt.Cause
	status int
	header Header
	body   []byte // of an error status
	raw    []byte // in-band error event data
}

// pendingPlan is what the next attempt is to be.
type pendingPlan struct {
	how    joinMode
	manner turn.Manner
}

// New returns the stream of one request; its first Effects ask for the first
// attempt. body is what goes upstream first (the client's own bytes unless its
// history needed repair).
func New(c Config, d dialect.Dialect, req *dialect.Request, body []byte, now time.Time) (*Stream, Effects) {
	s := newStream(c, d, req, now)
	s.plain = body
	s.begin(now)
	s.open(s.asIs(body))
	return s, s.end()
}

func newStream(c Config, d dialect.Dialect, req *dialect.Request, now time.Time) *Stream {
	c = c.withDefaults()
	s := &Stream{
		cfg: c, d: d, traits: d.Traits(), req: req, pulse: pulse{d: d},
	}
	s.rng.Seed(c.Seed, c.Seed^0x9e3779b97f4a7c15)
	s.folding = newFolding(d, req, c.MaxEvent)
	s.cfg.Events = c.Events && s.traits.EventsMode && !s.folding.on()
	s.left, s.waitLeft = max(0, c.Recoveries), c.WaitBudget
	s.began, s.lastOut, s.lastNew = now, now, now
	s.manners = s.mannersOf(0)
	return s
}

// Deadline is when the next Tick is due. The zero time means never.
func (s *Stream) Deadline() time.Time {
	var d time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (d.IsZero() || t.Before(d)) {
			d = t
		}
	}
	switch s.phase {
	case opening, reading, refused, whole:
		sooner(s.watch.Next())
	case queued:
		sooner(s.linedUp.Add(s.waitLeft))
	case waiting:
		sooner(s.wakeAt)
	case closing:
		sooner(s.graceAt)
	case finished:
		return time.Time{}
	case raw:
	}
	if s.gate && s.phase != raw {
		sooner(s.lastOut.Add(s.cfg.Heartbeat))
	} else if s.phase == reading && !s.folding.on() {
		sooner(s.holdFrom.Add(s.cfg.Hold))
	}
	if (s.gate || s.folding.on()) && s.dirty > 0 {
		sooner(s.flushedAt.Add(s.cfg.Flush))
	}
	return d
}

// Done reports whether the stream has ended.
func (s *Stream) Done() bool { return s.phase == finished }

// Attempt is the number of the current attempt, from 1.
func (s *Stream) Attempt() int { return s.attempt }

// firstHop reports whether the current attempt is the first that anybody made for
// this turn, so that nothing is paid again.
func (s *Stream) firstHop() bool {
	n := s.sum.Attempts - s.holds.attached
	if s.taken {
		n++
	}
	return n <= 1
}

// Visible reports whether the client has seen content.
func (s *Stream) Visible() bool { return s.visible }

// Step takes one input at a time not before the last.
func (s *Stream) Step(now time.Time, in Input) Effects {
	s.begin(now)
	if s.phase == finished {
		return s.end()
	}
	switch in := in.(type) {
	case Opened:
		if in.Attempt == s.attempt && s.phase == opening {
			s.opened(in)
		}
	case Chunk:
		if in.Attempt == s.attempt {
			s.chunk(in.Bytes)
		}
	case Ended:
		if in.Attempt == s.attempt {
			s.ended(in.End)
		}
	case Queued:
		if in.Attempt == s.attempt && s.phase == opening {
			s.lineUp()
		}
	case Began:
		if in.Attempt == s.attempt {
			s.sent(in.Probe)
		}
	case Tick:
		s.tick()
	case Gone:
		s.stop(interrupt.Cause{Kind: interrupt.ClientGone}, "client_gone")
	case Stop:
		s.stopped(in.Reason)
	}
	return s.end()
}

// Feed is Step with a Chunk, without the allocation that putting one into an
// Input costs: the path of every event.
func (s *Stream) Feed(now time.Time, attempt int, b []byte) Effects {
	s.begin(now)
	if s.phase != finished && attempt == s.attempt {
		s.chunk(b)
	}
	return s.end()
}

func (s *Stream) begin(now time.Time) {
	s.now = now
	s.fx = Effects{}
	s.notes = s.notes[:0]
	s.log = s.log[:0]
	s.durable, s.flush = false, false
	s.pulse.begin(s.seq())
	if s.gate {
		if s.lent != nil {
			s.out, s.lent = s.spare, nil
		}
		s.out = s.out[:0]
	}
}

// end seals the step: what is due for the checkpoint, what is due for the client.
func (s *Stream) end() Effects {
	if s.collect(); s.gate {
		s.beat()
		if len(s.out) > 0 {
			s.fx.Client = s.out
			s.sum.BytesOut += int64(len(s.out))
			if n := len(s.notes); n > 0 && s.notes[n-1].Kind == NoteEnd {
				s.notes[n-1].Summary.BytesOut = s.sum.BytesOut
			}
			s.lastOut = s.now
		}
		s.persist()
	} else if s.said.Held != "" || s.folding.on() {
		s.durable = false // nothing leaves
		s.persist()       // whoever takes it over need not ask again
	}
	if len(s.notes) > 0 {
		s.fx.Notes = s.notes
	}
	return s.fx
}

// persist adds what is new since the last flush when that is due: at once when
// the client would act on what leaves now or the attempt is over, else by time or
// size (DESIGN §8).
func (s *Stream) persist() {
	if s.dirty == 0 && !s.durable && !s.flush {
		return
	}
	// What comes after a pause goes at once: to be roused for it later would cost a slow
	// stream as much as its events do.
	if !s.durable && !s.flush && s.dirty < s.cfg.FlushBytes && s.now.Before(s.flushedAt.Add(s.cfg.Flush)) {
		return
	}
	if !s.caughtUp() {
		s.fx.Persist = Persist{Offset: s.offset, Durable: s.durable}
		return // the log says as much already
	}
	s.log = s.said.AppendSince(s.log, &s.mark)
	s.fx.Persist = Persist{Offset: s.offset, Log: s.log, Durable: s.durable}
	s.offset += int64(len(s.log))
	s.dirty, s.flushedAt = 0, s.now
}

// touch says that n bytes of said are newer than the checkpoint.
func (s *Stream) touch(n int) { s.dirty += n }

func (s *Stream) note(n Note) {
	n.At, n.Attempt, n.Target = s.now, s.attempt, s.target
	s.notes = append(s.notes, n)
}

func (s *Stream) open(a *Attempt) {
	s.attempt++
	s.sum.Attempts++
	s.tries++
	s.probing = false
	a.N, a.Target, a.Whole = s.attempt, s.target, !s.req.Stream
	s.phase = opening
	s.body = s.body[:0]
	s.watchTarget()
	s.fx.Open = a
	s.note(Note{Kind: NoteAttempt, Manner: s.plan.manner})
}

// cancel drops the current attempt.
func (s *Stream) cancel() { s.fx.Cancel = true }

// openGate lets the response head out, with whatever was collected behind it.
func (s *Stream) openGate(h Head) {
	if s.gate || h.Stream && s.folding.on() {
		return
	}
	s.gate = true
	s.sum.Status = h.Status
	if h.Stream {
		h.ContentType = streamType(s.d)
	}
	s.fx.Head = &h
}
