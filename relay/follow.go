package relay

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

// Follower shows a client a turn that another connection drives, from the turn's
// log: what was said is replayed, what is added is told as it comes. If the other
// one is lost, [Follower.Resume] carries the turn on where the client is.
//
// Like a [Stream] it is a machine without a clock, owned by one driver, and obeys
// the same laws: one message, whole events, no call that is not complete. A text is
// told as it grows; any other block when it is whole. What would make the client
// act comes alone, marked Durable, for the driver to ask first whether this
// connection is still the newest of its turn.
type Follower struct {
	// immutable
	cfg    Config
	d      dialect.Dialect
	traits dialect.Traits
	req    *dialect.Request

	// the log
	mark turn.Mark
	src  turn.Snapshot
	rest []byte // the beginning of a chunk
	over bool   // nothing will be added
	anew bool   // it is not to be told but asked for again

	// the client's side
	said  turn.Snapshot // the message as the client has it
	place []int         // of each block of src: its ordinal in said, -1: the client does not have it
	gate  bool
	ended bool
	out   []byte
	sum   Summary

	folding               folding // the client gets no stream of it
	pulse                 pulse
	now, lastOut, graceAt time.Time
}

// Follow returns a follower that has read nothing yet.
func Follow(c Config, d dialect.Dialect, req *dialect.Request, now time.Time) *Follower {
	c = c.withDefaults()
	return &Follower{
		cfg: c, d: d, traits: d.Traits(), req: req, folding: newFolding(d, req, c.MaxEvent),
		pulse: pulse{d: d}, now: now, lastOut: now,
	}
}

// Size is how much of the log was read, in bytes: where the next read begins.
func (f *Follower) Size() int64 { return f.mark.Size() + int64(len(f.rest)) }

// Started reports whether the client has anything.
func (f *Follower) Started() bool { return f.gate }

// Done reports whether the stream has ended.
func (f *Follower) Done() bool { return f.ended }

// Deadline is when [Follower.Next] has something to do by time alone; zero: never.
func (f *Follower) Deadline() time.Time {
	switch {
	case f.ended || !f.gate && f.graceAt.IsZero():
		return time.Time{}
	case !f.graceAt.IsZero():
		return f.graceAt
	}
	return f.lastOut.Add(f.cfg.Heartbeat)
}

// Read takes what was added to the log. settled says that nothing more will be:
// the turn ended, or the connection that drove it did. An error means that the
// client cannot be told the rest: the log is damaged, or takes back what the client
// has.
func (f *Follower) Read(more []byte, settled bool) error {
	f.over = f.over || settled
	if len(f.rest) > 0 {
		more = append(f.rest, more...)
	}
	n, err := f.mark.Extend(&f.src, more)
	if err != nil {
		return fmt.Errorf("follow turn: %w", err)
	}
	f.rest = append(f.rest[:0:0], more[n:]...)
	for i, at := range f.place {
		if at < 0 {
			continue
		}
		if i >= len(f.src.Blocks) {
			return errTakenBack
		}
		b, has := &f.src.Blocks[i], &f.said.Blocks[at]
		if b.Kind != has.Kind || len(b.Text) < len(has.Text) || !has.Closed && !bytes.HasPrefix(b.Text, has.Text) {
			return errTakenBack
		}
	}
	f.place = f.place[:min(len(f.place), len(f.src.Blocks))]
	for len(f.place) < len(f.src.Blocks) {
		f.place = append(f.place, -1)
	}
	return f.whetherTold(settled)
}

// whetherTold refuses a turn of which something was not kept: a poorer answer that
// looks whole is none. If nobody carries it on and this client has nothing of it, it may
// be asked for again instead.
func (f *Follower) whetherTold(settled bool) error {
	lost, again := untold(&f.src)
	f.anew = again && settled && !f.gate
	if lost && !f.anew {
		return ErrUntold
	}
	return nil
}

// ErrUntold: the turn holds something that was too much to be kept
// ([dialect.KeepLimit]), so that it cannot be told again as it was.
var ErrUntold = errors.New("follow turn: a part of it is too large to be told again")

// untold reports whether said lacks what its first client had, and if so whether the
// turn may be asked for again: it has not ended, and no call of it can have run.
func untold(said *turn.Snapshot) (lost, again bool) {
	lost = slices.ContainsFunc(said.Blocks, func(b turn.Block) bool { return b.Live() && b.Stage&turn.Untold != 0 })
	calls, _ := said.Calls()
	return lost, lost && calls == 0 && !said.Finished()
}

var errTakenBack = fmt.Errorf("follow turn: the turn took back what this client has")

// Next returns what the client is to get now, one batch at a time, until there is
// nothing more. Slices are valid until the next call.
func (f *Follower) Next(now time.Time) *Effects {
	fx := new(Effects)
	f.now = now
	if f.ended || f.anew {
		return fx
	}
	f.out = f.out[:0]
	f.pulse.begin(f.said.Seq)
	if f.folding.on() {
		return f.whole(fx)
	}
	durable := f.tell(false)
	if len(f.out) == 0 && durable {
		f.tell(true)
		fx.Persist.Durable = true
	}
	if len(f.out) == 0 && f.finished() {
		f.finish()
		f.told(fx)
	}
	if len(f.out) == 0 && f.gate && !now.Before(f.lastOut.Add(f.cfg.Heartbeat)) {
		f.pulse.beat(false)
		f.lastOut = now // where a framing has none, too: the next is due later
	}
	return f.seal(fx)
}

// told is the turn's end, all of which the client has with fx.
func (f *Follower) told(fx *Effects) {
	fx.Turn, fx.Again = &f.src, true
	fx.Persist.Durable, fx.End = true, Clean
}

// seal adds the response head and what was rendered.
func (f *Follower) seal(fx *Effects) *Effects {
	var alone bool
	if f.out, alone = f.pulse.write(f.out, f.req, &f.said, fx.End == Clean); alone {
		f.sum.Heartbeats++
	}
	if len(f.out) == 0 {
		return fx
	}
	if !f.gate {
		f.gate = true
		fx.Head = &Head{Status: 200, Stream: true, ContentType: streamType(f.d)}
		f.sum.Status = 200
	}
	fx.Client = f.out
	f.lastOut = f.now
	f.sum.BytesOut += int64(len(f.out))
	if fx.End != Open {
		f.ended = true
		fx.Notes = []Note{{Kind: NoteEnd, At: f.now, Reason: "followed", End: fx.End, Summary: f.sum}}
	}
	return fx
}

// Fail ends the stream with the dialect's error, or with an error status if the
// client has nothing yet.
func (f *Follower) Fail(now time.Time, why dialect.Failure) *Effects {
	fx := new(Effects)
	f.now = now
	if f.ended {
		return fx
	}
	fx.End = Abort
	f.pulse.begin(f.said.Seq)
	if f.gate {
		f.out = f.d.Fail(f.out[:0], &f.said, why)
	} else {
		status, body := f.d.ErrorBody(why)
		f.gate, f.sum.Status = true, status
		fx.Head, fx.End = &Head{Status: status, ContentType: "application/json"}, Clean
		f.out = append(f.out[:0], body...)
	}
	f.seal(fx)
	fx.Notes[0].Reason = "failed:" + why.Reason
	return fx
}

// Leave ends the stream without a word: the client left.
func (f *Follower) Leave(now time.Time) *Effects {
	f.ended = true
	return &Effects{End: Abort, Notes: []Note{{Kind: NoteEnd, At: now, Reason: "client_gone", End: Abort, Summary: f.sum}}}
}

// Resume carries the turn on, which nobody drives any more: the effects are those
// of a stream that goes on with this client's message. All of the log must have
// been read, and told by Next.
func (f *Follower) Resume(now time.Time) (*Stream, *Effects) {
	s := newStream(f.cfg, f.d, f.req, now)
	f.ended = true
	s.mark, s.offset, s.taken = f.mark, f.mark.Size(), true
	s.begin(now)
	s.holds.grip = dialect.Grip{ID: f.src.Held}
	if !f.gate && s.grip().Held() {
		s.holds.left, s.healing = &f.src, true
		s.goOn()
		return s, s.end()
	}
	if f.folding.on() && !f.anew {
		s.carryOn(f.src.Clone())
		return s, s.end()
	}
	s.tokens.count(f.src.Usage)
	none := turn.Snapshot{Head: f.src.Head, Usage: f.src.Usage}
	s.mark.Recede(&none) // what this client does not have is no part of the turn any more
	if !f.gate {
		s.startOver()
		return s, s.end()
	}
	s.gate, s.visible, s.healing = true, true, true
	s.said = f.said
	s.pulse.open = f.pulse.open
	s.pulse.begin(f.said.Seq)
	s.said.Usage, s.said.Held = f.src.Usage, f.src.Held
	s.holds.same = f.samePlaces()
	s.lastOut, s.sum = f.lastOut, f.sum
	s.touch(1)
	s.goOn()
	return s, s.end()
}
