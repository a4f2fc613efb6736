package gauge

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"text/tabwriter"
	"time"
)

// Rates are those at which attempts break: how likely each of them is to be cut, the
// continuations too.
var Rates = []float64{0, 0.05, 0.1, 0.2, 0.3, 0.5}

// RateSize is the scenario faultrate's, for each rate and peer.
var RateSize = Breaks{
	Clients: 20, Turns: 500, Tokens: 60, Pace: 5 * time.Millisecond, Think: 20 * time.Millisecond,
	Warm: 3 * time.Second, Prompt: 2000,
}

// Rated is how a peer fared at one rate.
type Rated struct {
	Peer  string  `json:"peer"`
	Rate  float64 `json:"rate"`
	Turns int     `json:"turns"`
	Whole int     `json:"whole"` // word for word
	// What the provider did for all turns, whole or not.
	Requests int   `json:"requests"`
	Cuts     int   `json:"cuts"` // that it played
	Bytes    int64 `json:"request_bytes"`
	Events   int64 `json:"events"`
	// Took is how long the whole turns took.
	Took   Spread         `json:"took"`
	Faults map[string]int `json:"faults,omitempty"` // why turns are not whole
}

// Completion is the part of the turns that is whole.
func (r Rated) Completion() float64 { return float64(r.Whole) / float64(max(1, r.Turns)) }

// maxDrawn is how many attempts of a turn have a drawn fate; later ones pass.
const maxDrawn = 20

// fates draws how the attempts of a turn fare. It depends on the seed alone, so that every peer
// meets the same ones; where a continuation is cut depends on its length too.
func fates(rate float64, seed uint64, events int) string {
	r := rand.New(rand.NewPCG(seed, 7))
	var lines []string
	for n := 1; n <= maxDrawn; n++ {
		// All is drawn, whatever comes of it, so that a turn that is cut at one rate is cut
		// in the same way at every higher one.
		odds, fault, at := r.Float64(), causes[r.IntN(len(causes)-1)].fault, 2+r.IntN(max(1, events-2))
		if odds >= rate {
			continue
		}
		place := "at random"
		if n == 1 {
			place = fmt.Sprintf("after event %d", at)
		}
		lines = append(lines, fmt.Sprintf("attempt %d: %s %s", n, fault, place))
	}
	return strings.Join(append(lines, "attempt *: pass"), "\n")
}

// FaultRate measures every peer at every rate.
func FaultRate(ctx context.Context, size Breaks, rates []float64, peers []Peer, log io.Writer) (all []Rated, err error) {
	for _, rate := range rates {
		for _, p := range peers {
			if p.Name == directName {
				continue // what is between nobody is what is between a plain proxy
			}
			done := progress(log, "faultrate %2.0f %% %-16s", 100*rate, p.Name)
			r, err := size.rate(ctx, rate, p)
			if err != nil {
				done("failed")
				return all, fmt.Errorf("faultrate %g, %s: %w", rate, p.Name, err)
			}
			done(fmt.Sprintf("%d of %d whole, %d requests", r.Whole, r.Turns, r.Requests))
			all = append(all, r)
		}
	}
	return all, nil
}

func (b Breaks) rate(ctx context.Context, rate float64, p Peer) (r Rated, err error) {
	if p.With == nil {
		b.Warm = 0 // it learns nothing
	}
	s, err := b.open(p)
	if err != nil {
		return r, err
	}
	defer s.close()
	turns, err := s.play(ctx, func(n int) string { return fates(rate, uint64(n), b.Tokens) })
	if err != nil {
		return r, err
	}
	r = Rated{Peer: p.Name, Rate: rate, Turns: len(turns), Faults: map[string]int{}}
	took := newSpread()
	for _, t := range turns {
		r.Requests += len(t.attempts)
		for _, x := range t.attempts {
			r.Bytes += int64(len(x.Body))
			r.Events += int64(x.Events)
			if cut(x) {
				r.Cuts++
			}
		}
		if t.err != nil {
			r.Faults[t.err.Error()]++
			continue
		}
		r.Whole++
		_ = took.RecordValue(t.ended.Sub(t.began).Microseconds())
	}
	r.Took = spreadOf(took)
	return r, nil
}

// rateTable prints what came through, and what it cost: requests, their bytes and the events
// that were generated, for each whole turn, over those of a turn that nothing cuts.
func rateTable(w io.Writer, all []Rated) {
	fmt.Fprintln(w, "\nfaultrate: turns that are whole at their clients, and what each of them cost (×: over a turn that nothing cuts)")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "cut\tpeer\twhole\trequests ×\tprompt bytes ×\tevents ×\ttook p50 ms\tp99\t")
	for _, r := range all {
		fmt.Fprintf(t, "%.0f %%\t%s\t%.1f %%\t%s\t%s\t%s\t%.0f\t%.0f\t\n", 100*r.Rate, r.Peer, 100*r.Completion(),
			r.cost(all, func(r Rated) float64 { return float64(r.Requests) }), r.cost(all, func(r Rated) float64 { return float64(r.Bytes) }),
			r.cost(all, func(r Rated) float64 { return float64(r.Events) }), float64(r.Took.P50)/1e3, float64(r.Took.P99)/1e3)
	}
	_ = t.Flush()
	for _, r := range all {
		if strings.HasPrefix(r.Peer, "unbroken") {
			for _, fault := range counted(r.Faults) {
				fmt.Fprintf(w, "  %.0f %%, %s: %s\n", 100*r.Rate, r.Peer, fault)
			}
		}
	}
}

// cost of a whole turn, over that of the same peer where nothing is cut.
func (r Rated) cost(all []Rated, of func(Rated) float64) string {
	for _, base := range all {
		if base.Peer == r.Peer && base.Rate == 0 && base.Whole > 0 && r.Whole > 0 {
			return fmt.Sprintf("%.2f", of(r)/float64(r.Whole)/(of(base)/float64(base.Whole)))
		}
	}
	return ""
}
