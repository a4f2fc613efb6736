package relay

import (
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
)

// folding is a client that asked for no stream, where one is read: it gets nothing
// until the turn has ended, and then the ordinary answer. What would leave for it is
// folded into that instead, so that a stream which breaks is healed as every other is,
// and whatever cannot be healed can be asked for again (DESIGN §5). It is sent no signs
// of life: there is no room for them in a JSON answer.
type folding struct {
	fold dialect.Fold // nil: the client gets a stream, or what the provider answers
	scan dialect.Scanner
}

func newFolding(d dialect.Dialect, r *dialect.Request, maxEvent int) (f folding) {
	if up, ok := d.(dialect.Upgrader); ok && r.Upgraded != nil {
		f.fold, f.scan = up.NewFold(), dialect.NewScanner(d, maxEvent)
	}
	return f
}

// on reports whether there is such a client.
func (f *folding) on() bool { return f.fold != nil }

// take takes whole units of the client's message.
func (f *folding) take(b []byte) {
	if len(b) == 0 {
		return
	}
	f.scan.Push(b)
	for e, ok := f.scan.Next(); ok; e, ok = f.scan.Next() {
		f.fold.Add(e)
	}
}

// collect folds what this step would have sent.
func (s *Stream) collect() {
	if s.gate || !s.folding.on() {
		return
	}
	s.folding.take(s.out)
	s.out = s.out[:0]
	if s.phase != finished && s.folding.fold.Size() > s.cfg.MaxTurn {
		s.fail(interrupt.Cause{Kind: interrupt.Malformed, Type: "turn_too_large"}, "turn_too_large", false)
	}
}

// deliver lets the ordinary answer out, of a turn that has ended. It reports whether
// there is one.
func (s *Stream) deliver() bool {
	s.collect()
	body, ok := s.folding.fold.Whole(s.out[:0])
	if !ok {
		s.fx.Turn, s.spliced = nil, false // nobody gets it
		s.fail(interrupt.Cause{Kind: interrupt.Malformed, Type: "unfoldable", Message: "the stream was no whole message"}, "unfoldable", false)
		return false
	}
	status := s.head.Status
	if s.head.Header == nil {
		status = 200 // nobody was asked: the turn was taken over, and had ended
	}
	s.openGate(Head{Status: status, Upstream: s.head.Header, ContentType: "application/json"})
	s.out, s.durable = body, true
	return true
}

// refold begins the client's message anew: nobody has seen it.
func (s *Stream) refold() {
	if s.folding.on() {
		s.folding = newFolding(s.d, s.req, s.cfg.MaxEvent)
		s.visible, s.healing = false, false
	}
}

// downgrade sends the client's own request, if the provider refused it for being asked
// for a stream (a model that has none, a caller who may not have one). The client never
// asked for one, and does not hear of it.
func (s *Stream) downgrade(c interrupt.Cause) bool {
	own := s.req.Upgraded
	if own == nil || c.Kind != interrupt.Permanent || s.contentful() || !strings.Contains(strings.ToLower(c.Message+c.Code+c.Type), "stream") {
		return false
	}
	s.req, s.folding = own, folding{}
	s.plain, s.holds.reworded = own.Body, true
	s.note(Note{Kind: NoteUnprotected, Reason: StreamRefused, Cause: c})
	s.cancel()
	s.open(s.asIs(nil))
	return true
}

// whole tells the client of an upgraded call a turn that another connection drove, when
// it is over.
func (f *Follower) whole(fx *Effects) *Effects {
	if !f.finished() {
		return fx
	}
	f.out = f.out[:0]
	f.tell(true)
	f.finish()
	f.folding.take(f.out)
	body, ok := f.folding.fold.Whole(nil)
	if !ok {
		return f.Fail(f.now, dialect.Failure{Cause: "malformed", Reason: "unfoldable", Status: 502})
	}
	f.out, f.gate, f.sum.Status = body, true, 200
	fx.Head = &Head{Status: 200, ContentType: "application/json"}
	f.told(fx)
	return f.seal(fx)
}

// StreamRefused is the reason of a [NoteUnprotected]: the provider would not stream what
// it was asked to in the client's name.
const StreamRefused = "stream_refused"
