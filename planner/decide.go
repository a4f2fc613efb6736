package planner

import (
	"time"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/turn"
)

// Limits of DESIGN §7.
const (
	BackoffBase   = 250 * time.Millisecond
	BackoffCap    = 8 * time.Second
	MaxRetryAfter = 60 * time.Second
	// MaxTries bounds how often one target is asked in vain while there is
	// another.
	MaxTries = 2
)

// Decide returns the plan for f. The order of the rules is the order of the
// table in DESIGN §3: what needs no provider comes first, since it costs nothing
// and cannot fail.
func Decide(f Facts) Plan {
	if f.Finished {
		return Plan{Kind: Finish, Reason: "finish_seen"}
	}
	to := f.where()
	switch f.Cause.Kind {
	case interrupt.ClientGone:
		return refuse("client_gone")
	case interrupt.Canceled:
		return refuse("canceled")
	case interrupt.Permanent:
		if !f.MannerOnce && to == Here {
			return refuse("permanent")
		}
	case interrupt.None:
		return refuse("no_cause")
	}
	switch to {
	case Here:
	case Next:
		f.Manner = f.Next.Manner
	case Larger:
		f.Manner = f.Larger.Manner
	}
	p := f.plan()
	if !p.Kind.Upstream() {
		return p
	}
	paid := f.spend(p, to)
	if paid.Kind == Refuse && p.Kind == Resume {
		// What needs no provider is still to be had.
		f.Manner = turn.NoManner
		if own := f.plan(); own.Kind != Refuse && !own.Kind.Upstream() {
			return own
		}
	}
	return paid
}

// where chooses the target to ask (DESIGN §7). A route is walked in one
// direction, so that it ends.
func (f Facts) where() Where {
	c := f.Cause
	switch {
	case f.MannerOnce:
		return Here
	case c.ContextOverflow:
		// Any other model would refuse it too, unless the route says not.
		if f.Larger.Exists {
			return Larger
		}
		return Here
	case !f.Next.Exists, c.Filtered:
		return Here
	case c.Kind == interrupt.Permanent:
		// The first target's final word is about the request. A fallback's
		// may be about the fallback: its key, its name for the model.
		if f.Fallback {
			return Next
		}
		return Here
	case c.NotAsked(), c.Kind == interrupt.FirstTokenTimeout, c.Slow, c.Lasting, c.RetryAfter > min(MaxRetryAfter, f.WaitLeft), f.Tries >= MaxTries:
		return Next
	case f.Visible && f.Words && f.Manner == turn.NoManner && f.Next.Manner != turn.NoManner:
		return Next
	}
	return Here
}

// plan decides what to do about the turn, whatever it costs. A turn that is of no use,
// and that nobody has seen, is asked for again.
func (f Facts) plan() Plan {
	p := f.turn()
	began := f.Committed || f.HostedTools // whatever came of the last attempt: there is content
	if p.Kind == Refuse && f.Unsent && f.Visible && !began {
		if again := f.restart(p.Reason); again.Kind == WholeRestart {
			return again
		}
	}
	return p
}

func (f Facts) turn() Plan {
	if f.Manner == turn.Provider {
		return Plan{Kind: Resume, Reason: "provider_holds_generation", Manner: turn.Provider}
	}
	if f.Visible && f.Choices > 1 {
		return refuse("several_choices")
	}
	if f.HostedOpen != "" && f.Visible {
		return refuse("hosted_tool:" + f.HostedOpen)
	}
	if f.Committed && (f.Visible || f.Complete > 0) {
		// Not even R2: the calls that its end promised are in no history that
		// their results could be added to.
		return refuse("conversation")
	}
	if f.Complete > 0 {
		return Plan{Kind: SynthesizeToolUse, Reason: "complete_tool_call"}
	}
	if f.Blocked != "" && f.Visible {
		return refuse("unknown_block:" + f.Blocked)
	}
	return f.upstream()
}

// upstream decides among the plans that ask a provider again.
func (f Facts) upstream() Plan {
	switch {
	case !f.Visible:
		return f.restart("nothing_visible")
	case !f.Words && f.Arguments:
		// Only mode events ever shows an unfinished call.
		return f.restartWithdrawn("unfinished_call_only")
	case !f.Words && f.Carried:
		return f.proceed(ContinueText, "carried_items")
	case !f.Words && f.Thinking:
		return f.restart("reasoning_only")
	case !f.Words:
		return f.restart("blank_text_only")
	case f.Unfinished > 0:
		return f.proceed(TruncateBeforeTool, "text_before_unfinished_call")
	}
	return f.proceed(ContinueText, "text")
}

func (f Facts) restart(reason string) Plan {
	if p, no := f.repeatable(); no {
		return p
	}
	return Plan{Kind: WholeRestart, Reason: reason}
}

func (f Facts) restartWithdrawn(reason string) Plan {
	p := f.restart(reason)
	p.Withdraw = p.Kind == WholeRestart
	return p
}

// repeatable refuses to run a provider-side tool twice (DESIGN §3): the identical
// request may go out again only if the provider certainly never began it. It also
// refuses to tell another generation under a name that the provider keeps for the
// first, and to say a request into a history twice.
func (f Facts) repeatable() (Plan, bool) {
	switch {
	case f.Kept:
		return refuse("identity_kept"), true
	case f.HostedSeen:
		return refuse("hosted_tool_ran"), true
	case f.HostedTools && !f.Cause.NotSent && !rejected(f.Cause):
		return refuse("hosted_tools_declared"), true
	case f.Committed && !f.Cause.NotSent && !rejected(f.Cause):
		return refuse("conversation"), true
	}
	return Plan{}, false
}

// rejected reports whether the provider answered that it did not begin: a status
// before the stream is the provider's word that no turn was generated.
func rejected(c interrupt.Cause) bool {
	return c.Kind == interrupt.BadStatus && (c.Status == 429 || c.Status == 503 || c.Status == 529)
}

// proceed continues from what the client has.
func (f Facts) proceed(k Kind, reason string) Plan {
	no := ""
	switch {
	case f.DocumentDone && f.Unfinished == 0:
		return Plan{Kind: Finish, Reason: "document_complete", End: turn.Stopped}
	case f.TokensLeft == 0:
		return Plan{Kind: Finish, Reason: "output_limit", End: turn.Length}
	case f.Logprobs:
		no = "logprobs"
	case f.Unsplicable != "":
		no = "unsplicable:" + f.Unsplicable
	case f.Manner == turn.NoManner:
		no = "no_manner"
	}
	switch {
	case no == "":
		return Plan{Kind: k, Reason: reason, Manner: f.Manner}
	case f.Events:
		return f.restartWithdrawn(no)
	}
	return refuse(no)
}

// spend takes the plan's price from the budget and sets its wait.
func (f Facts) spend(p Plan, to Where) Plan {
	p.To = to
	switch {
	case f.MannerOnce:
		// A target that rejects a manner says so at once and generated
		// nothing: asking it in the next manner is part of the same recovery.
		return p
	case f.Cause.NotAsked():
		return f.aside(p)
	case f.Cause.Lasting && to == Here:
		return refuse("lasting_failure")
	case f.Recoveries <= 0 && !f.probed():
		return refuse("budget_spent")
	}
	p.Free = f.probed()
	switch {
	case to != Here:
		return p // nothing says that this one is in trouble
	}
	p.Wait = f.backoff()
	switch {
	case f.Cause.RetryAfter > MaxRetryAfter:
		return refuse("retry_after_too_long")
	case p.Wait > f.WaitLeft:
		return refuse("wait_spent")
	}
	return p
}

// probed reports whether the last attempt was made on behalf of all streams and
// found the target ill. That is not on the account of the one that made it. It
// cannot go on for ever, since the breaker is open again, and to wait costs time.
func (f Facts) probed() bool { return f.Probe && f.Visible && f.Cause.Damning() }

// aside is what happens to a request that was held back: the next target, else,
// for a turn whose client already has part of it, patience until the breaker
// lets a probe through. A request of which the client has nothing is told at
// once: it can go elsewhere, a broken turn cannot.
func (f Facts) aside(p Plan) Plan {
	p.Free = true
	switch {
	case p.To != Here:
		return p
	case f.Cause.Kind == interrupt.StormGuard:
		return refuse("storm_guard")
	case !f.Visible:
		return refuse("breaker_open")
	}
	p.Wait = max(f.Cause.RetryAfter, BackoffBase) + time.Duration(f.Jitter*float64(BackoffBase))
	if p.Wait > f.WaitLeft {
		return refuse("breaker_open")
	}
	return p
}

// backoff is full jitter over 250 ms·2ⁿ, capped; the first recovery of a stream
// that was already flowing goes at once. A Retry-After hint is a lower bound.
func (f Facts) backoff() time.Duration {
	n := f.Retries
	if f.MidStream {
		n--
	}
	var d time.Duration
	if n >= 0 {
		top := BackoffCap
		if n < 6 {
			top = min(BackoffCap, BackoffBase<<n)
		}
		d = time.Duration(f.Jitter * float64(top))
	}
	return max(d, f.Cause.RetryAfter)
}

func refuse(reason string) Plan { return Plan{Kind: Refuse, Reason: reason} }
