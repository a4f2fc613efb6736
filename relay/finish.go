package relay

import (
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/turn"
)

// finishLocally ends the turn with a finish of our own making: a plan really
// completed it.
func (s *Stream) finishLocally(why turn.Why, stop, reason string) {
	s.cancel()
	s.render(dialect.Ending{Why: why, Stop: stop})
	for i := range max(1, len(s.said.Ends)) {
		// The log holds the end too: what was finished is not continued by
		// whoever takes the turn over.
		_ = s.said.Fold(turn.Delta{Kind: turn.Finish, Choice: i, Why: why})
	}
	s.durable = true
	s.fx.Turn = &s.said
	s.show()
	s.finalize(Clean, reason)
}

// complete ends a stream whose terminal has just passed. Nothing that comes after
// it is forwarded (FIELD-REPORTS A8).
func (s *Stream) complete() {
	s.cancel()
	s.fx.Settled = true
	s.finalize(Clean, s.outcome())
}

// endAsGiven ends the turn as the provider ended it: what is held goes out as it is,
// and only the terminator is ours.
func (s *Stream) endAsGiven() {
	s.release()
	s.seal()
	s.terminate()
}

// terminate renders the terminator that the provider did not send, after its
// semantic end was passed on (FIELD-REPORTS A2, A3).
func (s *Stream) terminate() {
	s.cancel()
	s.render(dialect.Ending{Why: s.said.End().Why, Reason: s.said.End().Reason, FinishSent: true, UsageSent: s.counted})
	s.finalize(Clean, s.outcome())
}

func (s *Stream) outcome() string {
	if s.sum.Recoveries > 0 {
		return "healed"
	}
	return "completed"
}

func (s *Stream) render(e dialect.Ending) {
	if !e.UsageSent {
		e.Usage = s.tokens.final(s.firstHop(), s.said.EstimateTokens(), int64(len(s.req.Body)/4))
	}
	if e.FinishSent && !s.said.Usage.Known && !s.folding.on() {
		// The provider finished without a record: it is not ours to invent. An
		// ordinary answer has one, though, and its readers rely on it.
		e.Usage = turn.Usage{}
	}
	s.scratch = s.d.Finish(s.scratch[:0], s.req, &s.said, e)
	s.emit(s.scratch)
}

// fail gives the turn up. With nothing sent, the client gets the provider's own
// answer, or an error status in the dialect's shape; else the dialect's error
// event, then an abort, so that nobody takes the end for a good one.
func (s *Stream) fail(c interrupt.Cause, reason string, more bool) {
	s.cancel()
	s.remember(c)
	if s.gate {
		s.dropHeld()
		s.scratch = s.d.Fail(s.scratch[:0], &s.said, s.failure(reason))
		s.emit(s.scratch)
		s.finalize(Abort, "failed:"+reason)
		return
	}
	s.out, s.held, s.holding = s.out[:0], s.held[:0], false
	// Tries of our own are spent, or no try can help, or the provider asked for a
	// longer wait than anybody should sleep through: SDKs obey a Retry-After of hours.
	final := s.sum.Attempts > 1 || c.Lasting || reason == "retry_after_too_long"
	var after time.Duration
	if reason == "breaker_open" {
		after = max(0, s.askAt.Sub(s.now))
	}
	if c.Kind == interrupt.Permanent && s.phase == refused && s.plan.how == pass &&
		(s.target == 0 || s.sum.Attempts == 1 && !aboutTheTarget(c)) {
		// The provider's final word on the client's own request outranks
		// what went wrong on the way to it.
		s.first = refusal{}
		s.remember(c)
	}
	switch f := &s.first; {
	case more && s.phase == refused:
		// Longer than any provider's error: hand it on as it comes.
		s.fx.Cancel = false
		s.unprotected("long_error_body")
	case f.status != 0:
		s.openGate(Head{Status: f.status, Upstream: f.header, Final: final, RetryAfter: after})
		s.out = append(s.out, f.body...)
		s.finalize(Clean, "refused:"+reason)
	case f.cause.Kind == interrupt.Permanent && f.raw != nil && !s.folding.on():
		s.openGate(Head{Status: s.head.Status, Upstream: s.head.Header, Stream: true})
		none := turn.Snapshot{Head: s.said.Head} // the client has no event
		s.out = s.d.Fail(s.out, &none, s.failure(reason))
		s.finalize(Abort, "refused:"+reason)
	default:
		f := s.failure(reason)
		if f.Code == "" {
			f.Code = f.Cause // no stream was interrupted
		}
		status, body := s.d.ErrorBody(f)
		s.openGate(Head{Status: status, ContentType: "application/json", Final: final, RetryAfter: after})
		s.out = append(s.out, body...)
		s.finalize(Clean, "failed:"+reason)
	}
}

func (s *Stream) failure(reason string) dialect.Failure {
	c := s.first.cause
	f := dialect.Failure{
		Cause: c.Kind.String(), Reason: reason, Status: c.Status,
		Type: c.Type, Code: c.Code,
	}
	switch c.Kind {
	case interrupt.OpenFailed, interrupt.Permanent, interrupt.BadStatus, interrupt.Provider5xxMidStream, interrupt.Canceled,
		interrupt.BreakerOpen, interrupt.StormGuard:
		f.Message = c.Message
	default:
		// What a broken socket says, with its ports, helps nobody who reads an SDK's
		// error: cause and reason say it, and the log has the rest.
	}
	if c.Kind == interrupt.Permanent {
		f.Raw = s.first.raw
	}
	return f
}

// finalize ends the stream.
func (s *Stream) finalize(e End, outcome string) {
	if e == Clean && s.folding.on() && !s.gate && !s.deliver() {
		return
	}
	s.phase, s.flush = finished, true
	s.fx.End = e
	s.sum.Usage = s.said.Usage
	if e == Clean {
		s.fx.Memo = s.memo()
	}
	s.sum.Repaid = s.tokens.paidAgain(s.firstHop())
	s.note(Note{Kind: NoteEnd, Reason: outcome, End: e, Summary: s.sum, Cause: s.first.cause, Estimated: s.tokens.estimated})
}

// stop ends the stream because nobody is there to read it.
func (s *Stream) stop(c interrupt.Cause, outcome string) {
	s.cancel()
	s.letGo()
	s.remember(c)
	s.out, s.held, s.holding = s.out[:0], s.held[:0], false
	s.gate = true // nothing is owed to anybody
	s.finalize(Abort, outcome)
}

// stopped ends the stream because this process must not, or may not, go on.
func (s *Stream) stopped(reason string) {
	switch s.phase {
	case closing:
		// The turn is over; only its end marker was still awaited.
		s.terminate()
		return
	case raw:
		// Nothing of ours belongs into a body that is the provider's.
		s.cancel()
		s.finalize(Abort, "relayed_cut")
		return
	case opening, reading, refused, whole, queued, waiting, finished:
	}
	c := interrupt.Cause{Kind: interrupt.Canceled, Status: 503, Type: "", Message: "the proxy is stopping"}
	// What was read of a refusal so far is nobody's answer.
	s.first = refusal{set: true, cause: c}
	s.fail(c, reason, false)
}

func (s *Stream) tick() {
	switch s.phase {
	case opening, reading, refused, whole:
		if c := s.watch.Check(s.now); c.Kind != interrupt.None {
			if s.phase == refused {
				s.partial = true
				s.judge(false)
				break
			}
			s.interrupted(c)
		}
	case queued:
		if !s.now.Before(s.linedUp.Add(s.waitLeft)) {
			s.crowdedOut()
		}
	case waiting:
		if !s.now.Before(s.wakeAt) {
			s.next()
		}
	case closing:
		if !s.now.Before(s.graceAt) {
			s.terminate()
		}
	case raw, finished:
	}
	if s.phase == finished {
		return
	}
	if !s.gate && s.phase == reading && !s.now.Before(s.holdFrom.Add(s.cfg.Hold)) {
		s.openGate(Head{Status: s.head.Status, Upstream: s.head.Header, Stream: true})
	}
	if s.gate && s.phase != raw && len(s.out) == 0 && !s.now.Before(s.lastOut.Add(s.cfg.Heartbeat)) {
		s.pulse.beat(s.ends)
	}
}
