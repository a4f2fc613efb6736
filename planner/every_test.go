package planner

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/turn"
)

// law is one sentence of DESIGN §3 or §7 that holds whatever the facts are.
type law struct {
	says   string
	broken func(f Facts, p Plan) bool
}

var laws = []law{
	{"every plan is a plan of the table", func(_ Facts, p Plan) bool { return p.Kind > WholeRestart }},
	{"every plan has a reason", func(_ Facts, p Plan) bool { return p.Reason == "" }},
	{"the same facts give the same plan", func(f Facts, p Plan) bool { return Decide(f) != p }},

	{"what is finished is finished", func(f Facts, p Plan) bool {
		return f.Finished && (p.Kind != Finish || p.End != turn.Unfinished)
	}},
	{"nobody recovers for a client that left, for a stop of our own, or for nothing", func(f Facts, p Plan) bool {
		k := f.Cause.Kind
		return !f.Finished && (k == interrupt.ClientGone || k == interrupt.Canceled || k == interrupt.None) && p.Kind != Refuse
	}},
	{"a final word is never asked again, unless it was about the manner", func(f Facts, p Plan) bool {
		return !f.Finished && f.Cause.Kind == interrupt.Permanent && !f.MannerOnce && p.Kind.Upstream() && p.To == Here
	}},
	{"the first target's final word is final, but for a prompt that a larger one may take", func(f Facts, p Plan) bool {
		return f.Cause.Kind == interrupt.Permanent && !f.Fallback && !f.MannerOnce && p.Kind.Upstream() && p.To != Larger
	}},
	{"nobody else is asked for what was refused as content", func(f Facts, p Plan) bool {
		return f.Cause.Filtered && !f.Cause.ContextOverflow && p.To != Here
	}},
	{"a target is moved to only if there is one", func(f Facts, p Plan) bool {
		return p.To == Next && !f.Next.Exists || p.To == Larger && !f.Larger.Exists
	}},
	{"only a prompt that is too long goes to the target for those, and to no other", func(f Facts, p Plan) bool {
		return p.Kind.Upstream() && !f.MannerOnce && f.Cause.ContextOverflow != (p.To == Larger) && (f.Larger.Exists || p.To != Here)
	}},
	{"what lasts is not asked again where it lasts", func(f Facts, p Plan) bool {
		return f.Cause.Lasting && p.Kind.Upstream() && p.To == Here && !f.MannerOnce
	}},
	{"whoever moves does not wait", func(_ Facts, p Plan) bool { return p.To != Here && p.Wait != 0 }},
	{"a silent target is not asked again while there is another", func(f Facts, p Plan) bool {
		return f.Cause.Kind == interrupt.FirstTokenTimeout && f.Next.Exists && !f.MannerOnce && !f.Cause.ContextOverflow && !f.Cause.Filtered && p.Kind.Upstream() && p.To == Here
	}},
	{"nor is one that was asked in vain often enough", func(f Facts, p Plan) bool {
		return f.Tries >= MaxTries && f.Next.Exists && !f.MannerOnce && !f.Cause.ContextOverflow && !f.Cause.Filtered && p.Kind.Upstream() && p.To == Here
	}},

	{"asking a provider costs a recovery, unless the manner alone was rejected", func(f Facts, p Plan) bool {
		return p.Kind.Upstream() && f.Recoveries <= 0 && !f.MannerOnce && !p.Free
	}},
	{"only what reached nobody is free, and what was asked for all", func(f Facts, p Plan) bool {
		return p.Free && !f.Cause.NotAsked() && !(f.Probe && f.Visible && f.Cause.Damning())
	}},
	{"no target is asked again at once behind an open breaker", func(f Facts, p Plan) bool {
		return p.Kind.Upstream() && f.Cause.NotAsked() && !f.MannerOnce && p.To == Here && p.Wait < BackoffBase
	}},
	{"a request of which the client has nothing does not wait behind an open breaker", func(f Facts, p Plan) bool {
		return p.Kind.Upstream() && f.Cause.NotAsked() && !f.MannerOnce && p.To == Here && !f.Visible
	}},
	{"what needs no provider needs no budget, no time and no breaker", func(f Facts, p Plan) bool {
		poor := f
		poor.Recoveries, poor.WaitLeft = 0, 0
		return (p.Kind == SynthesizeToolUse || p.Kind == Finish) && Decide(poor) != p
	}},
	{"what needs no provider waits for none", func(_ Facts, p Plan) bool { return !p.Kind.Upstream() && p.Wait != 0 }},

	{"R2 has a complete call", func(f Facts, p Plan) bool { return p.Kind == SynthesizeToolUse && f.Complete == 0 }},
	{"a complete call is not generated again, but for a turn of several choices that nobody has seen", func(f Facts, p Plan) bool {
		return f.Complete > 0 && p.Kind.Upstream() && p.Kind != Resume && (!f.Unsent || f.Choices == 1)
	}},
	{"R1 and R3 go on from words, or from items that the dialect can carry", func(f Facts, p Plan) bool {
		return (p.Kind == ContinueText || p.Kind == TruncateBeforeTool) && !f.Words && !f.Carried
	}},
	{"R3 drops something, R1 behind words does not", func(f Facts, p Plan) bool {
		return p.Kind == TruncateBeforeTool && f.Unfinished == 0 || p.Kind == ContinueText && f.Words && f.Unfinished > 0
	}},
	{"a continuation has a manner", func(f Facts, p Plan) bool {
		return (p.Kind == ContinueText || p.Kind == TruncateBeforeTool) && (p.Manner == turn.NoManner || p.Manner != [...]turn.Manner{f.Manner, f.Next.Manner, f.Larger.Manner}[p.To])
	}},
	{"a continuation carries everything that was asked", func(f Facts, p Plan) bool {
		return (p.Kind == ContinueText || p.Kind == TruncateBeforeTool) && (f.Logprobs || f.Unsplicable != "" || f.Blocked != "" || f.Choices > 1)
	}},
	{"nobody is asked for tokens that the caller does not want", func(f Facts, p Plan) bool {
		return (p.Kind == ContinueText || p.Kind == TruncateBeforeTool) && f.TokensLeft == 0
	}},
	{"nothing that the client does not see is continued", func(f Facts, p Plan) bool {
		return !f.Visible && (p.Kind == ContinueText || p.Kind == TruncateBeforeTool)
	}},
	{"only a provider that holds the generation is re-attached to", func(f Facts, p Plan) bool {
		return p.Kind == Resume && (f.Manner != turn.Provider || p.Manner != turn.Provider || p.To != Here)
	}},

	{"a generation that the provider holds is not generated again", func(f Facts, p Plan) bool {
		return f.Manner == turn.Provider && p.Kind.Upstream() && p.To == Here && p.Kind != Resume
	}},
	{"no other generation gets a name that is kept for one", func(f Facts, p Plan) bool { return p.Kind == WholeRestart && f.Kept }},

	{"words that the client has are not said again, unless it is told", func(f Facts, p Plan) bool {
		return p.Kind == WholeRestart && f.Visible && !f.Unsent && f.Words && !p.Withdraw
	}},
	{"words that nobody has seen are gone on from where that can be", func(f Facts, p Plan) bool {
		whole := f.Unfinished == 0 && f.Complete == 0 && f.Choices == 1 && f.Blocked == "" && f.HostedOpen == "" && !f.Logprobs && f.Unsplicable == "" && f.TokensLeft != 0
		return p.Kind == WholeRestart && f.Unsent && f.Visible && f.Words && whole && f.Manner != turn.NoManner && p.To == Here
	}},
	{"what nobody has seen is asked for again where it may be", func(f Facts, p Plan) bool {
		again := f.Unsent && f.Visible && !f.HostedSeen && !f.HostedTools && !f.Committed
		switch p.Reason {
		case "several_choices", "logprobs", "unsplicable:audio", "unknown_block:mystery", "no_manner":
			return again && p.Kind == Refuse
		}
		return false
	}},
	{"arguments that the client has are not said again, unless it is told", func(f Facts, p Plan) bool {
		return p.Kind == WholeRestart && f.Visible && f.Arguments && !p.Withdraw
	}},
	{"only mode events retracts", func(f Facts, p Plan) bool { return p.Withdraw && !f.Events }},
	{"only a restart retracts", func(_ Facts, p Plan) bool { return p.Withdraw && p.Kind != WholeRestart }},

	{"a provider's tool that ran is not run again", func(f Facts, p Plan) bool { return p.Kind == WholeRestart && f.HostedSeen }},
	{"a declared provider's tool may have run, unless the provider says not", func(f Facts, p Plan) bool {
		said := f.Cause.NotSent || f.Cause.Kind == interrupt.BadStatus && (f.Cause.Status == 429 || f.Cause.Status == 503 || f.Cause.Status == 529)
		return p.Kind == WholeRestart && f.HostedTools && !said
	}},
	{"what joins a history is resumed or refused, unless the provider never began", func(f Facts, p Plan) bool {
		began := f.Visible || f.Complete > 0 || !f.Cause.NotSent && !(f.Cause.Kind == interrupt.BadStatus && (f.Cause.Status == 429 || f.Cause.Status == 503 || f.Cause.Status == 529))
		return f.Committed && began && !f.Finished && p.Kind != Resume && p.Kind != Refuse
	}},
	{"a provider's tool in flight is refused by name", func(f Facts, p Plan) bool {
		inFlight := !f.Finished && f.Cause.Transient() && f.Visible && f.Choices == 1 && f.HostedOpen != "" && f.Manner != turn.Provider
		return inFlight && (p.Kind != Refuse || p.Reason != "hosted_tool:"+f.HostedOpen)
	}},
	{"a finish of our own means something", func(f Facts, p Plan) bool {
		return p.Kind == Finish && !f.Finished &&
			!(p.End == turn.Length && f.TokensLeft == 0 || p.End == turn.Stopped && f.DocumentDone)
	}},

	{"a wait is at least the provider's hint", func(f Facts, p Plan) bool {
		return p.Kind.Upstream() && !f.MannerOnce && p.To == Here && p.Wait < f.Cause.RetryAfter
	}},
	{"a wait is at most the cap or the hint", func(f Facts, p Plan) bool {
		return p.Wait > max(BackoffCap, f.Cause.RetryAfter+2*BackoffBase)
	}},
	{"no hint over a minute is waited for", func(f Facts, p Plan) bool {
		return p.Kind.Upstream() && !f.MannerOnce && !f.Cause.NotAsked() && p.To == Here && f.Cause.RetryAfter > MaxRetryAfter
	}},
	{"a wait fits the time that is left", func(f Facts, p Plan) bool { return p.Wait > f.WaitLeft && p.Wait > 0 }},
	{"the first recovery of a flowing stream goes at once", func(f Facts, p Plan) bool {
		return f.MidStream && f.Retries == 0 && f.Cause.RetryAfter == 0 && !f.Cause.NotAsked() && p.Wait != 0
	}},
	{"a rejected manner is asked in the next one at once", func(f Facts, p Plan) bool { return f.MannerOnce && p.Wait != 0 }},
}

// TestEveryFact runs the laws over the full product of what gives a decision its
// shape; what only prices it (budget, time, hints, jitter) is drawn per case.
func TestEveryFact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	kinds := map[Kind]int{}
	reasons := map[string]int{}
	const shapes = 1 << 18
	for shape := range shapes {
		if !possible(shape) {
			continue
		}
		for k := interrupt.None; k <= interrupt.Canceled; k++ {
			f := facts(shape, k, rng)
			p := Decide(f)
			for _, l := range laws {
				if l.broken(f, p) {
					t.Fatalf("%s: broken by %+v\nfor %+v", l.says, p, f)
				}
			}
			kinds[p.Kind]++
			reasons[p.Reason]++
		}
	}
	for k := Refuse; k <= WholeRestart; k++ {
		if kinds[k] == 0 {
			t.Errorf("no facts lead to %v: the product does not cover the table", k)
		}
	}
	for _, r := range tokens {
		if reasons[r] == 0 {
			t.Errorf("no facts lead to reason %q", r)
		}
		delete(reasons, r)
	}
	for r := range reasons {
		t.Errorf("reason %q is not among the documented tokens", r)
	}
}

// tokens are all reasons that a plan can print.
var tokens = []string{
	"finish_seen", "document_complete", "output_limit",
	"provider_holds_generation", "complete_tool_call", "text_before_unfinished_call", "text", "carried_items",
	"nothing_visible", "reasoning_only", "blank_text_only", "unfinished_call_only",
	"client_gone", "canceled", "permanent", "no_cause",
	"several_choices", "logprobs", "unsplicable:audio", "unknown_block:mystery", "no_manner",
	"identity_kept", "hosted_tool:web", "hosted_tool_ran", "hosted_tools_declared", "conversation",
	"breaker_open", "storm_guard", "lasting_failure", "budget_spent", "wait_spent", "retry_after_too_long",
}

// possible reports whether the facts of shape can be true together; relay never
// tells others.
func possible(shape int) bool {
	f := facts(shape, interrupt.None, rand.New(rand.NewPCG(0, 0)))
	switch {
	case f.HostedOpen != "" && !f.HostedSeen,
		f.Arguments && (!f.Events || f.Unfinished == 0),
		f.DocumentDone && !f.Words:
		return false
	}
	return true
}

// facts reads one bit of shape per yes-or-no fact.
func facts(shape int, k interrupt.Kind, rng *rand.Rand) Facts {
	bit := func() bool {
		b := shape&1 == 1
		shape >>= 1
		return b
	}
	name := func(s string) string {
		if bit() {
			return s
		}
		return ""
	}
	count := func(n int) int {
		if bit() {
			return n
		}
		return 0
	}
	luck := rng.Uint64()
	one := func(n uint64) int {
		i := luck % n
		luck /= n
		return int(i)
	}
	f := Facts{
		Finished: bit(), Words: bit(), Complete: count(2), Unfinished: count(3),
		HostedOpen: name("web"), HostedSeen: bit(), Carried: bit(), Blocked: name("mystery"),
		DocumentDone: bit(), Visible: bit(), Arguments: bit(), Thinking: bit(), Events: bit(),
		Choices: 1 + count(1), Logprobs: bit(), HostedTools: bit(), Unsplicable: name("audio"), MannerOnce: bit(),
		Manner:     turn.Manner(one(4)),
		TokensLeft: [...]int64{-1, 0, 40}[one(3)],
		Tries:      one(4),
		Probe:      one(3) == 0,
		Fallback:   one(2) == 0,
		Kept:       one(3) == 0,
		Committed:  one(4) == 0,
		Next:       Option{one(2) == 0, [...]turn.Manner{turn.NoManner, turn.Prefill, turn.Asked}[one(3)]},
		Larger:     Option{one(3) == 0, [...]turn.Manner{turn.NoManner, turn.Prefill, turn.Asked}[one(3)]},
		Recoveries: one(4),
		Retries:    one(12),
		WaitLeft:   [...]time.Duration{0, 3 * time.Second, 120 * time.Second}[one(3)],
		Jitter:     float64(one(1000)) / 1000,
		MidStream:  one(2) == 0,
	}
	f.Unsent = !f.Events && !f.Kept && one(3) == 0
	f.Cause = interrupt.Cause{
		Kind: k, NotSent: one(3) == 0, RejectsPrefill: f.MannerOnce,
		Status:          [...]int{0, 408, 429, 500, 503, 529}[one(6)],
		ContextOverflow: k == interrupt.Permanent && one(4) == 0,
		Filtered:        k == interrupt.Permanent && one(4) == 0,
		Lasting:         k == interrupt.OpenFailed && one(3) == 0,
		RetryAfter:      [...]time.Duration{0, 0, 2 * time.Second, 60 * time.Second, 61 * time.Second}[one(5)],
	}
	return f
}

// TestBackoffDoublesUpToItsCap pins the curve of DESIGN §7 at both ends of the
// jitter.
func TestBackoffDoublesUpToItsCap(t *testing.T) {
	tops := []time.Duration{250, 500, 1000, 2000, 4000, 8000, 8000, 8000}
	for n, top := range tops {
		t.Run(fmt.Sprintf("retry %d", n), func(t *testing.T) {
			f := Facts{
				Cause:      interrupt.Cause{Kind: interrupt.ConnectionReset},
				TokensLeft: -1, Recoveries: 1, Retries: n, WaitLeft: time.Hour, Jitter: 0.5,
			}
			if got, want := Decide(f).Wait, top*time.Millisecond/2; got != want {
				t.Errorf("before the stream: wait %v, want %v", got, want)
			}
			f.MidStream, f.Visible, f.Words, f.Manner = true, true, true, turn.Prefill
			f.Retries++
			if got, want := Decide(f).Wait, top*time.Millisecond/2; got != want {
				t.Errorf("mid-stream, one later: wait %v, want %v", got, want)
			}
			f.Jitter = 0
			if got := Decide(f).Wait; got != 0 {
				t.Errorf("full jitter reaches down to nothing, got %v", got)
			}
		})
	}
	huge := Facts{Cause: interrupt.Cause{Kind: interrupt.ConnectionReset}, Recoveries: 1, Retries: 1 << 30, WaitLeft: time.Hour, Jitter: 0.999}
	if got := Decide(huge).Wait; got <= 0 || got > BackoffCap {
		t.Errorf("a long history of retries: wait %v", got)
	}
}
