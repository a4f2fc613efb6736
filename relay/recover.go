package relay

import (
	"math/rand/v2"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/turn"
)

// interrupted is where every failure of an attempt arrives: decide, then act.
func (s *Stream) interrupted(c interrupt.Cause) {
	s.cancel()
	s.flush = true
	s.barred(c)
	s.remember(c)
	if s.visible && !s.healing {
		s.healing = true
	}
	demoted := s.demote(c)
	f := s.facts(c)
	f.MannerOnce = demoted
	p := planner.Decide(f)
	s.note(Note{Kind: NoteInterrupted, Cause: c, Plan: p, Manner: p.Manner, Said: s.said.EstimateTokens()})
	if left := s.holds.left; left != nil && p.Kind != planner.Resume && !s.gate {
		s.letGo()
		s.carryOn(left)
		return
	}
	if abandons(p) {
		s.letGo()
		s.disinherit()
	}
	if p.Kind.Upstream() && !demoted {
		if !p.Free {
			s.sum.Recoveries++
			s.left--
			s.retries++
		}
		s.waitLeft -= p.Wait
		s.turnTo(p.To)
	}
	s.act(p, c)
}

// barred notes when a target that is left alone may be asked again.
func (s *Stream) barred(c interrupt.Cause) {
	if at := s.now.Add(c.RetryAfter); c.Kind == interrupt.BreakerOpen && c.RetryAfter > 0 && (s.askAt.IsZero() || at.Before(s.askAt)) {
		s.askAt = at
	}
}

// remember keeps the first cause: it is what the client is told if nothing helps,
// not the last thing that went wrong on the way (FIELD-REPORTS D5).
func (s *Stream) remember(c interrupt.Cause) {
	if s.first.set && (!s.first.cause.NotAsked() || c.NotAsked() || !c.Transient()) {
		return // that nobody was asked explains less than what a provider said
	}
	s.first.set, s.first.cause = true, c
	if s.phase == refused && !s.partial {
		s.first.status, s.first.header = s.head.Status, s.head.Header
		s.first.body = cloned(s.body)
	}
}

// demote drops the manner that the target has just rejected, and reports whether
// another one is left to ask in.
func (s *Stream) demote(c interrupt.Cause) bool {
	if s.plan.manner == turn.Provider {
		if yes, free := s.disowned(c); yes {
			return free
		}
	}
	if c.Kind == interrupt.SeamFailed && len(s.manners) > 1 && s.plan.manner == s.manners[0] {
		// A text that repeats its own beginning cannot be told from a host
		// that starts over; asked for an anchor, a model can tell us.
		s.manners = s.manners[1:]
		return false
	}
	if !c.RejectsPrefill || s.plan.how != joinText || len(s.manners) == 0 || s.plan.manner != s.manners[0] {
		return false
	}
	s.note(Note{Kind: NoteDemoted, Manner: s.plan.manner, Cause: c})
	s.manners = s.manners[1:]
	return len(s.manners) > 0
}

func (s *Stream) facts(c interrupt.Cause) planner.Facts {
	f := planner.Facts{
		Cause:       c,
		Finished:    s.ends,
		Visible:     s.visible,
		Events:      s.cfg.Events && s.traits.EventsMode,
		Choices:     max(s.req.N, len(s.said.Ends)),
		Logprobs:    s.req.Logprobs,
		HostedTools: len(s.req.HostedTools) > 0,
		Unsent:      s.folding.on(),
		Committed:   s.req.Committed,
		Unsplicable: s.req.Unsplicable,
		Kept:        s.req.Kept && s.gate && s.said.Head != nil,
		TokensLeft:  s.tokensLeft(),
		Recoveries:  s.left,
		Retries:     s.retries,
		WaitLeft:    s.waitLeft,
		Jitter:      rand.New(&s.rng).Float64(),
		MidStream:   s.visible,
		Tries:       s.tries,
		Probe:       s.probing,
		Fallback:    s.target > 0,
		Next:        s.option(planner.Next),
		Larger:      s.option(planner.Larger),
	}
	f.Manner = s.manner()
	f.Complete, f.Unfinished = s.said.Calls()
	for i := range s.said.Blocks {
		s.blockFacts(&f, i)
	}
	if s.odd != "" {
		// What was folded is not all that the client has: nothing can be
		// rendered as part of it.
		f.Complete, f.Blocked = 0, s.odd
	}
	if doc := s.document(); f.Words && doc != nil {
		f.DocumentDone = doc.State() == jsonwalk.Complete
	}
	return f
}

func (s *Stream) blockFacts(f *planner.Facts, i int) {
	b := &s.said.Blocks[i]
	if b.Withdrawn {
		return
	}
	switch b.Kind {
	case turn.Prose:
		f.Words = f.Words || b.HasWords()
	case turn.Reasoning, turn.Redacted:
		f.Thinking = true
	case turn.Hosted:
		f.HostedSeen = true
		if f.HostedOpen = b.Name; f.HostedOpen == "" {
			f.HostedOpen = "hosted"
		}
	case turn.HostedResult:
		// A result stands behind its call, or is an item of both: the call is
		// done.
		f.HostedSeen = true
		f.HostedOpen = ""
		if b.Closed {
			f.Carried = true
		} else {
			f.HostedOpen = b.Name
		}
	case turn.Refusal:
		if len(b.Text) > 0 {
			f.Blocked = "refusal"
		}
	case turn.Unknown:
		f.Blocked = b.Name
		if b.Name == "" {
			f.Blocked = "unnamed"
		}
	case turn.Call, turn.CustomCall:
		f.Arguments = f.Arguments || s.cfg.Events && !b.Complete()
	}
}

// tokensLeft is what is left of the caller's output limit; -1: no limit.
func (s *Stream) tokensLeft() int64 {
	if s.req.MaxTokens <= 0 {
		return -1
	}
	return max(0, s.req.MaxTokens-max(s.said.EstimateTokens(), s.tokens.hop.Output+s.tokens.delivered))
}

func (s *Stream) act(p planner.Plan, c interrupt.Cause) {
	switch p.Kind {
	case planner.Refuse:
		s.fail(c, p.Reason, false)
	case planner.Finish:
		if p.End != turn.Unfinished {
			s.spliced = true
			s.retreat()
			s.finishLocally(p.End, "", p.Reason)
			return
		}
		s.endAsGiven()
	case planner.SynthesizeToolUse:
		s.spliced = true
		s.synthesize()
	case planner.Resume:
		s.resume(p)
	case planner.ContinueText, planner.TruncateBeforeTool:
		s.spliced = true
		s.retreat()
		s.wait(p, joinText)
	case planner.WholeRestart:
		s.restart(p)
	}
}

// retreat forgets what the client has not seen, and announces as retracted, in
// mode events, what it has seen of unfinished calls.
func (s *Stream) retreat() {
	s.dropHeld()
	s.hop.queue, s.hop.torn = nil, nil
	for i := range s.said.Blocks {
		if b := &s.said.Blocks[i]; b.IsCall() && b.Live() && !b.Complete() {
			s.scratch = s.d.Retract(s.scratch[:0], &s.said, i, s.first.cause.Kind.String())
			s.emit(s.scratch)
			b.Withdrawn = true
		}
	}
	s.touch(1)
}

// dropHeld forgets what was held back.
func (s *Stream) dropHeld() {
	if !s.holding {
		return
	}
	s.recede(s.shown)
	s.held, s.holding, s.shown = s.held[:0], false, extent{}
}

// synthesize is R2: the turn ends as tool use with every complete call, in
// order. What was unfinished never was; what came behind an unfinished call is
// dropped, since nothing but calls may follow a call (FIELD-REPORTS D20).
func (s *Stream) synthesize() {
	s.dropped = s.interruptedCalls()
	var whole []turn.Block
	if s.holding {
		for i := s.shown.blocks; i < len(s.said.Blocks); i++ {
			if b := &s.said.Blocks[i]; b.IsCall() && b.Complete() {
				whole = append(whole, *b)
			}
		}
	}
	s.retreat()
	for _, b := range whole {
		b.Index = s.said.NextIndex(s.traits.IndexCallsOnly)
		s.closeOpen()
		s.said.Blocks = append(s.said.Blocks, b)
		n := len(s.said.Blocks) - 1
		s.scratch = s.d.Emit(s.scratch[:0], s.req, &s.said, n)
		s.emit(oneLine(s.d, s.scratch))
		s.said.Blocks[n].Closed = true
	}
	if !s.visible {
		s.show()
	}
	s.finishLocally(turn.ToolUse, "", "complete_tool_call")
}

// restart is R4: the identical request again. If the client has nothing yet, the
// new attempt passes as if it were the first.
func (s *Stream) restart(p planner.Plan) {
	if !s.gate {
		s.said = turn.Snapshot{}
		s.mark.Recede(&s.said)
		s.refold()
		s.out, s.held, s.holding, s.shown = s.out[:0], s.held[:0], false, extent{}
		s.ends, s.counted, s.odd, s.spliced = false, false, "", false
		s.tokens.hop = turn.Usage{}
		s.wait(p, pass)
		return
	}
	s.retreat()
	if p.Withdraw && s.visible {
		s.withdrawAll(p.Reason)
	}
	for i := range s.said.Blocks {
		b := &s.said.Blocks[i]
		if b.Kind != turn.Reasoning || b.Closed || b.Withdrawn || s.goesOn(b) {
			continue
		}
		s.scratch = s.d.DropReasoning(s.scratch[:0], &s.said, i)
		s.emit(s.scratch)
		b.Closed, b.Withdrawn = true, true
		b.Signature = append(b.Signature[:0], turn.DropMark...)
	}
	how := joinAnew
	if begun := s.hop.framed && s.said.Seq > 0; s.said.Head == nil && len(s.said.Blocks) == 0 && !begun {
		how = pass
	}
	s.spliced = how == joinAnew
	s.wait(p, how)
}

// withdrawAll announces that nothing of what was shown counts any more.
func (s *Stream) withdrawAll(reason string) {
	live := false
	for i := range s.said.Blocks {
		b := &s.said.Blocks[i]
		live = live || b.Live() && !b.IsCall() && len(b.Text) > 0
		if b.Live() && !b.Closed && !b.IsCall() {
			s.scratch = s.d.CloseBlock(s.scratch[:0], &s.said, i)
			s.emit(s.scratch)
			b.Closed = true
		}
		b.Withdrawn = true
	}
	if live {
		s.scratch = s.d.Retract(s.scratch[:0], &s.said, -1, reason)
		s.emit(s.scratch)
	}
}

// wait schedules the next attempt, or opens it at once.
func (s *Stream) wait(p planner.Plan, how joinMode) {
	kept := how == joinText
	if how != reattach {
		s.tokens.turnOver(s.firstHop(), s.said.EstimateTokens(), kept)
	}
	s.plan = pendingPlan{how: how, manner: p.Manner}
	s.phase = waiting
	s.wakeAt = s.now.Add(p.Wait)
	if p.Wait <= 0 {
		s.next()
	}
}

// next opens the attempt that was planned.
func (s *Stream) next() {
	t := s.cfg.Targets[s.target]
	switch s.plan.how {
	case joinText:
	case reattach:
		s.attach()
		return
	default:
		s.open(s.asIs(nil))
		return
	}
	// The caller's limit is shared by the hops; 0 means that it set none.
	left := max(0, s.tokensLeft())
	body, err := s.d.Continue(s.req, &s.said, dialect.Continuation{
		Manner:    s.plan.manner,
		Flags:     t.Ability.Flags,
		Anchor:    s.cfg.Anchor,
		Sentinel:  s.cfg.Sentinel,
		MaxTokens: left,
		Model:     t.Model,
	})
	if err != nil {
		s.fail(interrupt.Cause{Kind: interrupt.SeamFailed, Message: err.Error()}, "no_continuation", false)
		return
	}
	s.open(&Attempt{Body: body, Derived: true})
}
