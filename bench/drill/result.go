package main

import (
	"slices"
	"time"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// result is a drill that was played.
type result struct {
	config                       config
	began, died, returned, ended time.Time
	requests                     []time.Time // that reached the provider, or would have
	again                        []time.Time // of them, those of turns that it knew
	turns                        []turnEnd
	samples                      []sample
}

// take reads the provider's side.
func (r *result) take(log []faultinject.Exchange, vain []time.Time) {
	for _, x := range log {
		r.requests = append(r.requests, x.Received)
		if x.Attempt > 1 || x.Continuation.Manner != faultinject.Fresh {
			r.again = append(r.again, x.Received)
		}
	}
	r.requests = append(r.requests, vain...)
	for _, at := range [][]time.Time{r.requests, r.again} {
		slices.SortFunc(at, time.Time.Compare)
	}
}

// numbers are what a drill comes to.
type numbers struct {
	// HealthyRate is the mean, HealthyMost the most requests in one second while
	// all was well and everybody had begun.
	HealthyRate float64 `json:"healthy_rate"`
	HealthyMost int     `json:"healthy_most_in_a_second"`
	// WhileAway is how many requests came in vain.
	WhileAway int `json:"requests_while_away"`
	// MostInASecond is the most requests in any second from the death on, MostRate
	// the most over any ten, in requests a second, which agents that happen to ask
	// at the same moment do not decide.
	MostInASecond int     `json:"most_in_a_second"`
	MostRate      float64 `json:"most_rate"`
	MostOverRate  float64 `json:"most_rate_over_healthy_rate"`
	// Interrupted are the turns of which something was said when the provider died,
	// Recovered those that came to their end, word for word, in the same response.
	// Who had nothing yet was told so, and asked again.
	Interrupted int     `json:"turns_interrupted"`
	Recovered   int     `json:"turns_recovered"`
	LongestTurn float64 `json:"longest_turn_s"`
	// Turns are all; Failed were lost to their agents after all their tries.
	Turns          int     `json:"turns"`
	Failed         int     `json:"turns_failed"`
	Share          float64 `json:"share_completed"`
	MostRecovering int     `json:"most_recoveries_in_flight"`
	MostWaiting    int     `json:"most_waiting_in_line"`
	// CalmAfter is when the last turn that had been interrupted was over, from the
	// return on.
	CalmAfter float64 `json:"recovered_after_s"`
}

// smooth is the span of MostRate.
const smooth = 10 * time.Second

func (r *result) numbers() numbers {
	n := numbers{WhileAway: countIn(r.requests, r.died, r.returned), Turns: len(r.turns)}
	from := r.died.Add(-r.config.Well / 2)
	well := between(r.requests, from, r.died)
	n.HealthyRate = float64(len(well)) / r.died.Sub(from).Seconds()
	n.HealthyMost = mostIn(time.Second, well)
	since := between(r.requests, r.died, r.ended)
	n.MostInASecond = mostIn(time.Second, since)
	n.MostRate = float64(mostIn(smooth, since)) / smooth.Seconds()
	n.MostOverRate = n.MostRate / n.HealthyRate
	for _, t := range r.turns {
		if t.Err != "" {
			n.Failed++
		}
		if t.Seen.IsZero() || !t.Seen.Before(r.died) || t.Ended.Before(r.died) {
			continue
		}
		n.Interrupted++
		n.LongestTurn = max(n.LongestTurn, t.Ended.Sub(t.Began).Seconds())
		if t.Err == "" {
			n.Recovered++
			n.CalmAfter = max(n.CalmAfter, t.Ended.Sub(r.returned).Seconds())
		}
	}
	n.Share = float64(n.Turns-n.Failed) / float64(max(1, n.Turns))
	for _, s := range r.samples {
		n.MostRecovering, n.MostWaiting = max(n.MostRecovering, s.recovering), max(n.MostWaiting, s.waiting)
	}
	return n
}

// between are the times from from up to to.
func between(at []time.Time, from, to time.Time) (in []time.Time) {
	for _, t := range at {
		if !t.Before(from) && t.Before(to) {
			in = append(in, t)
		}
	}
	return in
}

func countIn(at []time.Time, from, to time.Time) int { return len(between(at, from, to)) }

// mostIn is how many of the times, which are in order, lie in one span at most.
func mostIn(span time.Duration, at []time.Time) (n int) {
	first := 0
	for i, t := range at {
		for t.Sub(at[first]) >= span {
			first++
		}
		n = max(n, i-first+1)
	}
	return n
}
