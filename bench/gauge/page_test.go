package gauge

import (
	"strings"
	"testing"
)

func TestThePageHoldsAllItNeeds(t *testing.T) {
	r := Report{
		Healed: []Healed{{Peer: "other", Cause: "reset", Cut: 7, Whole: 7, Own: Spread{P50: 900, P99: 4200}}},
		Rated:  []Rated{{Peer: "other", Turns: 10, Whole: 10}, {Peer: "other", Rate: 0.5, Turns: 10, Whole: 9}},
	}
	for _, sc := range append([]Scenario{{Name: "flood", Title: "<many>", Stream: true}}, Linear...) {
		r.Results = append(r.Results, Result{Scenario: sc, Reference: Against, Peers: []string{Against, "other"}, Samples: map[string][]Sample{
			Against: {{PerUnit: 1, P99: 9, Units: 1, Took: 1}}, "other": {{PerUnit: 2, P99: 9, Units: 1, Took: 1}}}})
	}
	page := string(r.Page())
	for _, want := range []string{
		"<svg", "&lt;many&gt;", "streams10000", "2.00 × nginx", "CPU per event against streams", "CPU per event against the length of an answer",
		"4.2 ms p99", "turns that are whole at their clients", "prefers-color-scheme:dark",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in it", want)
		}
	}
	for _, not := range []string{"<script", "src=", "href=", "<many>", "ZgotmplZ"} {
		if strings.Contains(page, not) {
			t.Errorf("%q in it", not)
		}
	}
}

func TestRatiosArePairedByRound(t *testing.T) {
	r := Result{Scenario: Scenario{Name: "flood", Stream: true}, Reference: Against, Samples: map[string][]Sample{
		Against: {{PerUnit: 1}, {PerUnit: 10}, {PerUnit: 2}},
		"other": {{PerUnit: 2}, {PerUnit: 20}, {PerUnit: 8}},
	}}
	if x, ok := r.ratio("other", cpuFigure); !ok || x != 2 {
		t.Errorf("%v, %v", x, ok)
	}
	if _, ok := r.ratio("nobody", cpuFigure); ok {
		t.Error("nobody has a ratio")
	}
}
