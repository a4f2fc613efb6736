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
)

// Decide returns the plan for f. The order of the rules is the order of the
// table in DESIGN §3: what needs no provider comes first, since it costs nothing
// and cannot fail.
func Decide(f Facts) Plan {
	if f.Finished {
		return Plan{Kind: Finish, Reason: "finish_seen"}
	}
	switch f.Cause.Kind {
	case interrupt.ClientGone:
		return refuse("client_gone")
	case interrupt.Canceled:
		return refuse("canceled")
	case interrupt.Permanent:
		if !f.MannerOnce {
			return refuse("permanent")
		}
	case interrupt.None:
		return refuse("no_cause")
	}
	if f.Manner == turn.Provider && f.Visible {
		return f.spend(Plan{Kind: Resume, Reason: "provider_holds_generation", Manner: turn.Provider})
	}
	if f.Visible && f.Choices > 1 {
		return refuse("several_choices")
	}
	if f.HostedOpen != "" && f.Visible {
		return refuse("hosted_tool:" + f.HostedOpen)
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
	return f.spend(Plan{Kind: WholeRestart, Reason: reason})
}

func (f Facts) restartWithdrawn(reason string) Plan {
	p := f.restart(reason)
	p.Withdraw = p.Kind == WholeRestart
	return p
}

// repeatable refuses to run a provider-side tool twice (DESIGN §3): the identical
// request may go out again only if the provider certainly never began it.
func (f Facts) repeatable() (Plan, bool) {
	switch {
	case f.HostedSeen:
		return refuse("hosted_tool_ran"), true
	case f.HostedTools && !f.Cause.NotSent && !rejected(f.Cause):
		return refuse("hosted_tools_declared"), true
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
		return f.spend(Plan{Kind: k, Reason: reason, Manner: f.Manner})
	case f.Events:
		return f.restartWithdrawn(no)
	}
	return refuse(no)
}

// spend takes the plan's price from the budget and sets its wait.
func (f Facts) spend(p Plan) Plan {
	if f.MannerOnce {
		// A target that rejects a manner says so at once and generated
		// nothing: asking it in the next manner is part of the same recovery.
		return p
	}
	switch {
	case f.BreakerOpen:
		return refuse("breaker_open")
	case f.Recoveries <= 0:
		return refuse("budget_spent")
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
