package gauge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// Target is a provider, or a proxy in front of one, of which nothing is known but its URL.
type Target struct {
	Wire     Wire
	URL      string // base, as SDKs take it
	Key      string
	Model    string
	Requests int // in all
	Parallel int
	Tokens   int // most of each answer; 0: as many as it likes
}

// aimPrompt asks for an answer that is long enough to have gaps, and the same for all.
const aimPrompt = "Count from 1 to 100 in words, one number a line. Write nothing else."

// Aimed is what was measured of a target.
type Aimed struct {
	Wire     Wire           `json:"wire"`
	URL      string         `json:"url"`
	Model    string         `json:"model"`
	Requests int            `json:"requests"`
	Whole    int            `json:"whole"` // with their terminal
	First    Spread         `json:"first"` // from the request to the first text
	Gaps     Spread         `json:"gaps"`  // between two events of text
	Took     Spread         `json:"took"`  // of the whole ones
	Events   int            `json:"events"`
	Bytes    int            `json:"text_bytes"`
	Faults   map[string]int `json:"faults,omitempty"`
}

// Aim makes the requests and measures what comes.
func Aim(ctx context.Context, c Target, log io.Writer) (a Aimed, err error) {
	ask, err := newAsker(c.Wire, c.URL, c.Key, c.Parallel)
	if err != nil {
		return a, err
	}
	defer ask.close()
	limit := "as many output tokens as the model likes"
	if c.Tokens > 0 {
		limit = fmt.Sprintf("at most %d output tokens each", c.Tokens)
	}
	done := progress(log, "%d requests to %s, %d at a time, %s", c.Requests, ask.named(), c.Parallel, limit)
	body := c.Wire.body(c.Model, true, aimPrompt, c.Tokens)
	due := make(chan struct{}, c.Requests)
	for range c.Requests {
		due <- struct{}{}
	}
	close(due)
	var (
		mu  sync.Mutex
		all []*told
		wg  sync.WaitGroup
	)
	for range c.Parallel {
		wg.Go(func() {
			for range due {
				if ctx.Err() != nil {
					return
				}
				t := ask.ask(ctx, body, nil)
				mu.Lock()
				all = append(all, t)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	a = Aimed{Wire: c.Wire, URL: ask.named(), Model: c.Model, Requests: len(all), Faults: map[string]int{}}
	a.take(all)
	done(fmt.Sprintf("%d whole", a.Whole))
	return a, ctx.Err()
}

func (a *Aimed) take(all []*told) {
	first, gaps, took := newSpread(), newSpread(), newSpread()
	for _, t := range all {
		if d, ok := t.first(); ok {
			_ = first.RecordValue(d.Microseconds())
		}
		for i := 1; i < len(t.beats); i++ {
			_ = gaps.RecordValue(max(1, t.beats[i].at.Sub(t.beats[i-1].at).Microseconds()))
		}
		a.Events += len(t.beats)
		a.Bytes += t.text.Len()
		if t.err != nil {
			a.Faults[t.err.Error()]++
			continue
		}
		a.Whole++
		_ = took.RecordValue(t.ended.Sub(t.began).Microseconds())
	}
	a.First, a.Gaps, a.Took = spreadOf(first), spreadOf(gaps), spreadOf(took)
}

// Empty reports that nothing came that could be measured.
func (a Aimed) Empty() bool { return a.Whole == 0 && a.Events == 0 }

// Err is an error if no stream is whole. Where there is no table that would, it tells why, a
// line for each reason.
func (a Aimed) Err() error {
	if a.Whole > 0 || a.Requests == 0 {
		return nil
	}
	found := []error{fmt.Errorf("no stream of %s came to its end", a.URL)}
	if a.Empty() {
		for _, line := range counted(a.Faults) {
			found = append(found, errors.New(line))
		}
	}
	return errors.Join(found...)
}

// unknown reports that somebody was refused who is not known.
func (a Aimed) unknown() bool {
	for why := range a.Faults {
		if strings.HasPrefix(why, fmt.Sprintf("status %d", http.StatusUnauthorized)) {
			return true
		}
	}
	return false
}

// Table prints it. Of what nothing came there is no time.
func (a Aimed) Table(w io.Writer) {
	fmt.Fprintf(w, "\n%s, %q: %d of %d streams whole, %d events, %d bytes of text\n", a.URL, a.Model, a.Whole, a.Requests, a.Events, a.Bytes)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "ms\tp50\tp99\tmost\t")
	for _, l := range []struct {
		name string
		of   Spread
	}{{"first text", a.First}, {"gap between events", a.Gaps}, {"whole answer", a.Took}} {
		if l.of.Max == 0 {
			continue
		}
		ms := func(us int64) string {
			return fmt.Sprintf("%.1f", float64(us)/float64(time.Millisecond.Microseconds()))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", l.name, ms(l.of.P50), ms(l.of.P99), ms(l.of.Max))
	}
	_ = t.Flush()
	for _, line := range counted(a.Faults) {
		fmt.Fprintf(w, "  %s\n", line)
	}
}
