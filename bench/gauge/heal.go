package gauge

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// cause is a way in which a stream breaks in the middle.
type cause struct {
	name, title string
	fault       string // as scripts spell it
	silent      bool   // it is noticed by the clock alone
}

var causes = []cause{
	{name: "reset", title: "connection reset", fault: "rst"},
	{name: "fin", title: "connection closed inside the body", fault: "fin"},
	{name: "eof", title: "a polite end, too early", fault: "polite"},
	{name: "half", title: "reset inside an event", fault: "half with rst"},
	{name: "error", title: "server error inside the stream", fault: "error api"},
	{name: "overloaded", title: "overloaded inside the stream", fault: "error overloaded"},
	{name: "stall", title: "silence", fault: "stall", silent: true},
}

// Healing is the size of the scenario heal, for each cause and proxy.
type Healing struct {
	Breaks
	// Every so many turns one is cut, which is what a bad day looks like: if all were, it
	// would be an outage, and Unbroken would pace its recoveries.
	Every int
	// After so many events.
	After int
}

// HealSize is that of the report: 300 healed turns of each cause.
var HealSize = Healing{Every: 5, After: 20, Breaks: Breaks{
	Clients: 20, Turns: 1500, Tokens: 60, Pace: 5 * time.Millisecond, Think: 20 * time.Millisecond,
	Warm: 3 * time.Second, Idle: time.Second, Prompt: 2000,
}}

// Spread of a time, µs.
type Spread struct {
	P50 int64 `json:"p50_us"`
	P99 int64 `json:"p99_us"`
	Max int64 `json:"max_us"`
}

func spreadOf(h *hdrhistogram.Histogram) Spread {
	return Spread{h.ValueAtPercentile(50), h.ValueAtPercentile(99), h.Max()}
}

func newSpread() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, time.Hour.Microseconds(), 3)
}

// Healed is how a proxy healed one cause.
type Healed struct {
	Peer  string `json:"peer"`
	Cause string `json:"cause"`
	Title string `json:"title"`
	Wire  Wire   `json:"wire"`
	// Turns were asked, Cut of them were cut, Whole of those are whole at their clients.
	Turns int `json:"turns"`
	Cut   int `json:"cut"`
	Whole int `json:"whole"`
	// Measured are those of which the times are: healed at the first try, by going on.
	Measured int `json:"measured"`
	// Gap is what the client feels: from its last text before the break to the first behind it.
	Gap Spread `json:"gap"`
	// First is from the last thing that the provider said to the client's first healed text.
	First Spread `json:"first_healed"`
	// Provider is what it takes to answer: from the continuation's arrival to its first text.
	Provider Spread `json:"provider"`
	// Own is First without Provider, and without the configured silence where that is how the
	// break is noticed: to see it, to plan, to ask, to find the seam, and both ways of the net.
	Own Spread `json:"own"`
	// Repaid, for each healed turn: bytes of the requests that go on, and events that were said
	// beyond those of a whole answer.
	RepaidBytes  float64        `json:"repaid_bytes"`
	RepaidEvents float64        `json:"repaid_events"`
	Faults       map[string]int `json:"faults,omitempty"` // why turns are not whole
}

// Heal measures every cause with every peer that heals.
func Heal(ctx context.Context, size Healing, peers []Peer, log io.Writer) (all []Healed, err error) {
	for _, k := range causes {
		for _, p := range peers {
			if p.With == nil {
				continue
			}
			done := progress(log, "heal %-10s %-16s", k.name, p.Name)
			h, err := size.heal(ctx, k, p)
			if err != nil {
				done("failed")
				return all, fmt.Errorf("heal %s, %s: %w", k.name, p.Name, err)
			}
			done(fmt.Sprintf("%d of %d whole, gap p50 %d µs p99 %d µs, own p50 %d µs p99 %d µs", h.Whole, h.Cut, h.Gap.P50, h.Gap.P99, h.Own.P50, h.Own.P99))
			all = append(all, h)
		}
	}
	return all, nil
}

// unpaced has a continuation come without a pace, so that the tail that it is asked to
// repeat takes no time. Over HTTP/2 turns that nobody cuts need it, too: they share the
// connection of one that is cut.
const unpaced = "attempt 2+: pace 0s"

// script cuts one turn.
func (z Healing) script(k cause) string {
	return fmt.Sprintf("attempt 1: %s after event %d\n%s", k.fault, z.After, unpaced)
}

func (z Healing) heal(ctx context.Context, k cause, p Peer) (h Healed, err error) {
	s, err := z.open(p)
	if err != nil {
		return h, err
	}
	defer s.close()
	turns, err := s.play(ctx, func(n int) string {
		if n%z.Every > 0 {
			return unpaced
		}
		return z.script(k)
	})
	if err != nil {
		return h, err
	}
	h = Healed{Peer: p.Name, Cause: k.name, Title: k.title, Wire: z.Wire, Turns: len(turns), Faults: map[string]int{}}
	var idle time.Duration
	if k.silent {
		idle = z.Idle
	}
	h.take(turns, idle)
	return h, nil
}

// take computes the numbers from the turns. idle is the silence that a break is noticed by.
func (h *Healed) take(turns []played, idle time.Duration) {
	gap, first, provider, own := newSpread(), newSpread(), newSpread(), newSpread()
	whole := 0 // events of an answer that nothing cut
	for _, t := range turns {
		if len(t.attempts) == 1 && t.err == nil {
			whole = t.attempts[0].Events
		}
	}
	note := func(in *hdrhistogram.Histogram, d time.Duration) { _ = in.RecordValue(max(1, d.Microseconds())) }
	for _, t := range turns {
		if t.err != nil {
			h.Faults[t.err.Error()]++
		}
		if len(t.attempts) == 0 || !cut(t.attempts[0]) {
			continue
		}
		h.Cut++
		if t.err != nil {
			continue
		}
		h.Whole++
		events := 0
		for _, x := range t.attempts {
			events += x.Events
		}
		h.RepaidEvents += float64(events - whole)
		for _, x := range t.attempts[1:] {
			h.RepaidBytes += float64(len(x.Body))
		}
		was, on := t.attempts[0], t.attempts[len(t.attempts)-1]
		last, next, ok := t.beyond(len(on.Continuation.Said))
		if !ok || len(t.attempts) != 2 || on.Continuation.Manner == faultinject.Fresh {
			continue // tried more than once, or begun anew: the gap is a policy's
		}
		h.Measured++
		answer := on.Spoke.Sub(on.Received)
		note(gap, next.Sub(last))
		note(first, next.Sub(was.Last))
		note(provider, answer)
		note(own, next.Sub(was.Last)-answer-idle)
	}
	h.Gap, h.First, h.Provider, h.Own = spreadOf(gap), spreadOf(first), spreadOf(provider), spreadOf(own)
	h.RepaidBytes /= float64(max(1, h.Whole))
	h.RepaidEvents /= float64(max(1, h.Whole))
}

// healTable prints what was healed.
func healTable(w io.Writer, all []Healed) {
	fmt.Fprintln(w, "\nheal: turns that their provider cuts in the middle (times in ms)")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "cause\tpeer\twhole\tgap p50\tp99\tfirst healed p50\tp99\tprovider p50\tp99\town p50\tp99\trepaid bytes\tevents\t")
	for _, h := range all {
		cells := []string{h.Cause, h.Peer, fmt.Sprintf("%d/%d", h.Whole, h.Cut)}
		for _, s := range []Spread{h.Gap, h.First, h.Provider, h.Own} {
			cells = append(cells, fmt.Sprintf("%.1f", float64(s.P50)/1e3), fmt.Sprintf("%.1f", float64(s.P99)/1e3))
		}
		cells = append(cells, fmt.Sprintf("%.0f", h.RepaidBytes), fmt.Sprintf("%.1f", h.RepaidEvents))
		fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
	}
	_ = t.Flush()
	for _, h := range all {
		for _, fault := range counted(h.Faults) {
			fmt.Fprintf(w, "  %s, %s: %s\n", h.Cause, h.Peer, fault)
		}
	}
}
