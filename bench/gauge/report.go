package gauge

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is all that a run measured.
type Report struct {
	Machine Machine  `json:"machine"`
	Results []Result `json:"results,omitempty"`
	Healed  []Healed `json:"heal,omitempty"`
	Rated   []Rated  `json:"faultrate,omitempty"`
}

// Empty reports that nothing was.
func (r Report) Empty() bool { return len(r.Results)+len(r.Healed)+len(r.Rated) == 0 }

// Table prints it, with ratios to the reference of each scenario where there is one.
func (r Report) Table(w io.Writer) {
	for _, k := range r.Results {
		k.table(w)
	}
	if len(r.Healed) > 0 {
		healTable(w, r.Healed)
	}
	if len(r.Rated) > 0 {
		rateTable(w, r.Rated)
	}
}

func (r Result) table(w io.Writer) {
	unit := r.Scenario.unit()
	fmt.Fprintf(w, "\n%s: %s (%s)\n", r.Scenario.Name, r.Scenario.Title, r.numbers())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{"peer"}
	for i, f := range r.Scenario.figures() {
		if i == 0 {
			f.head += "/" + unit
		}
		head = append(head, f.head)
		if !f.plain && r.Reference != "" {
			head = append(head, "×")
		}
	}
	if !r.Scenario.Upload {
		head = append(head, unit+"s/s")
	}
	fmt.Fprintln(t, strings.Join(head, "\t")+"\t")
	for _, p := range r.Peers {
		if len(r.Samples[p]) > 0 {
			fmt.Fprintln(t, strings.Join(r.row(p), "\t")+"\t")
		}
	}
	_ = t.Flush()
	for _, p := range r.Peers {
		broken := 0.0
		for _, s := range r.Samples[p] {
			broken += float64(s.Broken)
		}
		if broken > 0 {
			fmt.Fprintf(w, "  %s broke %.0f calls\n", p, broken)
		}
		if why := r.Failed[p]; why != "" {
			fmt.Fprintf(w, "  %s failed: %s\n", p, strings.TrimSpace(why))
		}
	}
}

// numbers says what the table's are.
func (r Result) numbers() string {
	is := fmt.Sprintf("medians of %d rounds", r.rounds())
	if r.rounds() == 1 {
		is = "one round"
	}
	if r.Reference != "" {
		is += ", × " + r.Reference
	}
	return is
}

// row is a peer's.
func (r Result) row(peer string) []string {
	cells := []string{peer}
	for _, f := range r.Scenario.figures() {
		value, ratio := "", ""
		if v := r.median(peer, f); v != 0 {
			value = fmt.Sprintf(f.form, v/f.scale)
			if x, ok := r.ratio(peer, f); ok {
				ratio = fmt.Sprintf("%.2f", x)
			}
		}
		cells = append(cells, value)
		if !f.plain && r.Reference != "" {
			cells = append(cells, ratio)
		}
	}
	if !r.Scenario.Upload {
		rate := r.median(peer, figure{of: func(s Sample) float64 { return float64(s.Units) / s.Took.Seconds() }})
		cells = append(cells, fmt.Sprintf("%.0f", rate))
	}
	return cells
}

// peers are all that took part, in the order in which they first did.
func (r Report) peers() (all []string) {
	add := func(name string) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	for _, k := range r.Results {
		for _, p := range k.Peers {
			add(p)
		}
	}
	for _, k := range r.Healed {
		add(k.Peer)
	}
	for _, k := range r.Rated {
		add(k.Peer)
	}
	return all
}
