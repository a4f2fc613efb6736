package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// second is one second of a drill.
type second struct {
	At         int  `json:"at"` // seconds since the beginning
	Requests   int  `json:"requests"`
	Again      int  `json:"recoveries"` // of them, those that continued or repeated a turn
	Live       int  `json:"live"`
	Recovering int  `json:"recovering"` // most at a time
	Waiting    int  `json:"waiting"`    // most at a time
	Open       bool `json:"breaker_open"`
	Completed  int  `json:"completed"` // turns
	Failed     int  `json:"failed"`
}

// seconds are the drill, second by second.
func (r *result) seconds() []second {
	all := make([]second, int(r.ended.Sub(r.began).Seconds())+1)
	in := func(t time.Time) *second {
		if n := int(t.Sub(r.began).Seconds()); n >= 0 && n < len(all) {
			return &all[n]
		}
		return &second{} // behind the end
	}
	for i := range all {
		all[i].At = i
	}
	for _, t := range r.requests {
		in(t).Requests++
	}
	for _, t := range r.again {
		in(t).Again++
	}
	for _, s := range r.samples {
		b := in(s.at)
		b.Live, b.Recovering, b.Waiting = max(b.Live, s.live), max(b.Recovering, s.recovering), max(b.Waiting, s.waiting)
		b.Open = b.Open || s.open
	}
	for _, t := range r.turns {
		if t.Err == "" {
			in(t.Ended).Completed++
		} else {
			in(t.Ended).Failed++
		}
	}
	return all
}

// write writes drill.json, drill.svg and drill.md.
func (r *result) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	doc, err := json.MarshalIndent(struct {
		Agents  int      `json:"agents"`
		Turn    float64  `json:"turn_s"`
		Died    float64  `json:"died_at_s"`
		Away    float64  `json:"away_s"`
		Numbers numbers  `json:"numbers"`
		Seconds []second `json:"seconds"`
	}{r.config.Agents, r.config.Turn.Seconds(), round(r.died.Sub(r.began)), round(r.returned.Sub(r.died)), r.numbers(), r.seconds()}, "", " ")
	if err != nil {
		return err
	}
	file := func(name, text string) error {
		return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
	}
	return errors.Join(file("drill.json", string(doc)+"\n"), file("drill.svg", r.plot()), file("drill.md", r.page()))
}

func round(d time.Duration) float64 { return d.Round(100 * time.Millisecond).Seconds() }

// rows are the numbers, with what they are.
func (r *result) rows() [][2]string {
	n := r.numbers()
	return [][2]string{
		{"streams that were cut in the middle", fmt.Sprint(n.Interrupted)},
		{"of them completed, word for word, in the same response", fmt.Sprintf("%d (%.1f %%)", n.Recovered, 100*float64(n.Recovered)/float64(max(1, n.Interrupted)))},
		{"the last of them was over, after the return", fmt.Sprintf("%.1f s", n.CalmAfter)},
		{"all turns, completed", fmt.Sprintf("%d, %.1f %%", n.Turns, 100*n.Share)},
		{"requests a second while all was well", fmt.Sprintf("%.1f, at most %d", n.HealthyRate, n.HealthyMost)},
		{"requests while the provider was away", fmt.Sprintf("%d in %.0f s", n.WhileAway, r.returned.Sub(r.died).Seconds())},
		{"most requests from the death on, in any second", fmt.Sprint(n.MostInASecond)},
		{"the same over any 10 s", fmt.Sprintf("%.1f a second, %.2f times the healthy rate", n.MostRate, n.MostOverRate)},
		{"most recoveries in flight", fmt.Sprint(n.MostRecovering)},
		{"most waiting for their turn", fmt.Sprint(n.MostWaiting)},
	}
}

func (r *result) summary() string {
	var b strings.Builder
	for _, row := range r.rows() {
		fmt.Fprintf(&b, "%-58s %s\n", row[0], row[1])
	}
	return b.String()
}

func (r *result) page() string {
	var b strings.Builder
	c := r.config
	fmt.Fprintf(&b, `# Outage drill

%d agents, each with one turn of %.0f s after the other, talk to a provider through Unbroken, as it comes out of the box. The provider dies under all
of them, every connection reset, stays away for %.0f s, refusing what comes, and returns. Requests are counted where they arrive. The agents retry as the
official SDKs do. `+"`make drill`"+` plays it again; `+"`drill.json`"+` has every second.

![requests, recoveries and turns over time](drill.svg)

| | |
|---|---|
`, c.Agents, c.Turn.Seconds(), c.Away.Seconds())
	for _, row := range r.rows() {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	return b.String()
}
