package telemetry

import (
	"slices"
	"strings"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/splice"
	"github.com/unbroken-llm/unbroken/turn"
)

// Kind is what a metric is to Prometheus.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Metric is one metric: what is scraped, and what METRICS.md says of it.
type Metric struct {
	Name    string
	Kind    Kind
	Help    string
	Labels  []Label
	Buckets []float64 // of a histogram
}

// Label is one label. Its Values are all that it can have; none: the names that the
// configuration gives upstreams, or what the build says.
type Label struct {
	Name   string
	Values []string
}

// other stands for a token that is not in its label's list, which is a bug that
// must not cost cardinality.
const other = "other"

var (
	upstreamLabel = Label{Name: "upstream"}
	dialectLabel  = Label{"dialect", proxy.Dialects()}
	causeLabel    = Label{"cause", named(interrupt.ConnectionReset, interrupt.Canceled)}
	planLabel     = Label{"plan", named(planner.Refuse, planner.WholeRestart)}
	mannerLabel   = Label{"manner", named(turn.NoManner, turn.Asked)}
	whoseLabel    = Label{"whose", named(proxy.Completed, proxy.Request)}

	// reasons are those of plans, without what stands behind a colon.
	reasonLabel = Label{"reason", []string{
		"blank_text_only", "breaker_open", "budget_spent", "canceled", "carried_items", "client_gone", "complete_tool_call",
		"conversation", "document_complete", "finish_seen", "hosted_tool", "hosted_tool_ran", "hosted_tools_declared",
		"identity_kept", "lasting_failure", "logprobs", "no_cause", "no_manner", "nothing_visible", "output_limit", "permanent",
		"provider_holds_generation", "reasoning_only", "retry_after_too_long", "several_choices", "storm_guard", "text",
		"text_before_unfinished_call", "unfinished_call_only", "unknown_block", "unsplicable", "wait_spent",
		other,
	}}
	// outcomes are the first word of a stream's outcome.
	outcomeLabel = Label{"outcome", []string{
		"completed", "healed", "replayed", "followed", "relayed", "relayed_cut",
		"complete_tool_call", "document_complete", "document_end", "output_limit", "stop_sequence_at_seam",
		"refused", "failed", "client_gone", "slow_reader", "fenced", "bug", "unfinished",
		other,
	}}
	// What failed is named by its reason; splice.Blank is spelled as splice.Empty is.
	seamLabel = Label{"kind", append(seamKinds(),
		splice.Diverged, splice.Short, splice.Unanchored, splice.Talk, splice.Chatter, splice.TooLong, other)}
	joinedLabel  = Label{"joined", []string{"true", "false"}}
	refusedLabel = Label{"refused", []string{"true", "false"}}
	directions   = Label{"direction", []string{"in", "out"}}
	stateLabel   = Label{"state", []string{"closed", "half-open", "open"}}
	answerLabel  = Label{"answer", []string{"accepted", "refused"}}
	laterLabel   = Label{"what", []string{"hinted", "expanded", "unremembered"}}
	lossLabel    = Label{"what", []string{"unclaimed", "dropped", "unacked", "unreadable"}}
	entryLabel   = Label{"answer", []string{"saved", "changed", "unconfirmed", "unavailable", other}}
	buildVersion = Label{Name: "version"}
	buildGo      = Label{Name: "go"}
)

var (
	felt  = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	long  = []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}
	seams = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	few   = []float64{1, 2, 3, 4, 6, 8, 16}
)

// What streams are counted by.
var (
	streams = Metric{"unbroken_streams_total", Counter, "Protected streams that ended, by whose doing the end was and its outcome.", []Label{upstreamLabel, dialectLabel, whoseLabel, outcomeLabel}, nil}
	seconds = Metric{"unbroken_stream_seconds", Histogram, "From a request to the end of its stream.", []Label{upstreamLabel, whoseLabel}, long}
	first   = Metric{"unbroken_first_content_seconds", Histogram, "From a request to its first visible content.", []Label{upstreamLabel}, felt}

	interruptions = Metric{"unbroken_interruptions_total", Counter, "Interruptions of attempts: what happened, what was planned, and why.", []Label{upstreamLabel, causeLabel, planLabel, reasonLabel}, nil}
	gap           = Metric{"unbroken_gap_seconds", Histogram, "How long a client saw nothing, from its last content to the first after an interruption.", []Label{causeLabel, planLabel}, felt}
	attempts      = Metric{"unbroken_attempts_total", Counter, "Attempts opened, by how they continue a turn; none: they begin one.", []Label{upstreamLabel, mannerLabel}, nil}
	legs          = Metric{"unbroken_stream_attempts", Histogram, "Attempts that a stream took.", []Label{upstreamLabel}, few}
	demotions     = Metric{"unbroken_demotions_total", Counter, "Manners of continuing that a target turned out not to take.", []Label{upstreamLabel, mannerLabel}, nil}

	seam        = Metric{"unbroken_seams_total", Counter, "Continuations that were joined to what the client had, or not, and how.", []Label{seamLabel, mannerLabel, joinedLabel}, nil}
	seamSeconds = Metric{"unbroken_seam_seconds", Histogram, "From the opening of a continuation until its seam was decided.", []Label{mannerLabel}, seams}
	skipped     = Metric{"unbroken_seam_skipped_bytes_total", Counter, "Bytes of continuations that repeated what the client had, and were left out.", nil, nil}

	repaid = Metric{"unbroken_repaid_tokens_total", Counter, "Prompt tokens sent again for continuations, by the providers' own records.", []Label{upstreamLabel}, nil}
	saved  = Metric{"unbroken_saved_tokens_total", Counter, "Output tokens that a client kept across an interruption and a full retry would have generated again, by estimate.", []Label{upstreamLabel, planLabel}, nil}

	events = Metric{"unbroken_events_total", Counter, "Events read from providers in protected streams.", []Label{upstreamLabel}, nil}
	octets = Metric{"unbroken_bytes_total", Counter, "Bytes of protected streams: in from providers, out to clients.", []Label{upstreamLabel, directions}, nil}
	beats  = Metric{"unbroken_heartbeats_total", Counter, "Signs of life sent to clients in silence.", []Label{upstreamLabel}, nil}
)

// What is read when somebody asks.
var (
	build    = Metric{"unbroken_build_info", Gauge, "1, for the build that runs.", []Label{buildVersion, buildGo}, nil}
	ready    = Metric{"unbroken_ready", Gauge, "1 while new work is wanted, 0 in a drain.", nil, nil}
	live     = Metric{"unbroken_live_requests", Gauge, "Requests in flight, to the end of their bodies.", nil, nil}
	waiting  = Metric{"unbroken_waiting_requests", Gauge, "Requests in line to be let in.", nil, nil}
	requests = Metric{"unbroken_requests_total", Counter, "Requests let in, and turned away for load or because of a drain.", []Label{answerLabel}, nil}
	unsafe   = Metric{"unbroken_unprotected_total", Counter, "Requests relayed unprotected that would have been protected if it had been possible; refused: by their provider, as their own fault, so that there was nothing to protect.", []Label{refusedLabel}, nil}
	orphans  = Metric{"unbroken_unabandoned_total", Counter, "Generations that may go on at a provider though nobody reads them.", nil, nil}

	upstreamLive    = Metric{"unbroken_upstream_live_streams", Gauge, "Protected streams in flight.", []Label{upstreamLabel}, nil}
	upstreamHealing = Metric{"unbroken_upstream_recovering_streams", Gauge, "Of those, the ones that are being recovered.", []Label{upstreamLabel}, nil}
	upstreamWaiting = Metric{"unbroken_upstream_waiting_recoveries", Gauge, "Recoveries that the storm guard has in line.", []Label{upstreamLabel}, nil}
	healthy         = Metric{"unbroken_upstream_healthy_rate", Gauge, "Requests a second that are answered when all is well.", []Label{upstreamLabel}, nil}
	breakers        = Metric{"unbroken_breakers", Gauge, "Breakers that something went wrong with, one per model, by their state.", []Label{upstreamLabel, stateLabel}, nil}
	breakerOpens    = Metric{"unbroken_breaker_opens_total", Counter, "How often breakers opened.", []Label{upstreamLabel}, nil}

	flushes   = Metric{"unbroken_checkpoint_flushes_total", Counter, "Writes handed to the store for checkpoints.", nil, nil}
	losses    = Metric{"unbroken_checkpoint_losses_total", Counter, "Turns without a checkpoint from the start (unclaimed), that lost it (dropped) or could not be read back (unreadable), and closes that left before theirs was acknowledged (unacked).", []Label{lossLabel}, nil}
	reclaimed = Metric{"unbroken_checkpoint_reclaimed_total", Counter, "Unclaimed turns that got their checkpoint when the store was back.", nil, nil}
	takeovers = Metric{"unbroken_takeovers_total", Counter, "Turns carried on for, or replayed to, a new connection.", nil, nil}

	storeAway   = Metric{"unbroken_store_away", Gauge, "1 while the store does not answer.", nil, nil}
	storeLag    = Metric{"unbroken_store_lag_seconds", Gauge, "How long the oldest unwritten byte has waited.", nil, nil}
	storeBehind = Metric{"unbroken_store_behind_bytes", Gauge, "Bytes that wait to be written.", nil, nil}
	storeTurns  = Metric{"unbroken_store_behind_turns", Gauge, "Turns whose bytes wait to be written.", nil, nil}
	storeDrops  = Metric{"unbroken_store_drops_total", Counter, "Turns that the store gave up.", nil, nil}
	storeFenced = Metric{"unbroken_store_fenced_total", Counter, "Writes refused because a turn had a newer owner.", nil, nil}

	reloads       = Metric{"unbroken_config_reloads_total", Counter, "Configurations read while the process served: put in force, or refused for a problem.", []Label{answerLabel}, nil}
	configLoaded  = Metric{"unbroken_config_loaded_timestamp_seconds", Gauge, "When the configuration that is in force was read.", nil, nil}
	configRefused = Metric{"unbroken_config_refused", Gauge, "1 while the configuration that would be read now was refused, and an older one is in force.", nil, nil}
	configPending = Metric{"unbroken_config_pending_settings", Gauge, "Settings whose change waits for a restart.", nil, nil}

	later       = Metric{"unbroken_later_turns_total", Counter, "Requests for which something was done that an earlier turn had left to be done, and turns that could not leave it.", []Label{laterLabel}, nil}
	ledgerLost  = Metric{"unbroken_ledger_lost_total", Counter, "Facts that did not reach the run ledger.", nil, nil}
	ledgerSaves = Metric{"unbroken_ledger_saves_total", Counter, "Writes to the run ledger and how the store answered; changed: another writer was faster.", []Label{entryLabel}, nil}
)

// Metrics are all there are, besides those of the Go runtime and the process.
func Metrics() []Metric {
	return []Metric{
		streams, seconds, first,
		interruptions, gap, attempts, legs, demotions,
		seam, seamSeconds, skipped,
		repaid, saved, events, octets, beats,
		build, ready, live, waiting, requests, unsafe, orphans,
		upstreamLive, upstreamHealing, upstreamWaiting, healthy, breakers, breakerOpens,
		flushes, losses, reclaimed, takeovers,
		storeAway, storeLag, storeBehind, storeTurns, storeDrops, storeFenced,
		reloads, configLoaded, configRefused, configPending,
		later, ledgerLost, ledgerSaves,
	}
}

// token is a label value of what a package calls something: up to a colon, behind
// which details may follow.
func (l Label) token(s string) string {
	s, _, _ = strings.Cut(s, ":")
	if !slices.Contains(l.Values, s) {
		return other
	}
	return s
}

// named are the names of the values from first to last.
func named[K interface {
	~uint8
	String() string
}](first, last K) (all []string) {
	for k := first; k <= last; k++ {
		all = append(all, k.String())
	}
	return all
}

func seamKinds() (all []string) {
	for _, front := range []splice.Kind{0, splice.Preamble, splice.Fence, splice.Preamble | splice.Fence} {
		for k := splice.Exact; k <= splice.Empty; k++ {
			all = append(all, (k | front).String())
		}
	}
	return all
}
