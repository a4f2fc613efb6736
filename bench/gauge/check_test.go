package gauge

import (
	"strings"
	"testing"
)

func TestCheckNamesWhatGotWorse(t *testing.T) {
	was := Baseline{"flood": {"cpu": {"unbroken": 2, "haproxy": 1}}, "json": {"cpu": {"unbroken": 1.5}}}
	for _, c := range []struct {
		name string
		now  Baseline
		want string // "": nothing
	}{
		{"the same", was, ""},
		{"within the tolerance", Baseline{"flood": {"cpu": {"unbroken": 2.29}}}, ""},
		{"better", Baseline{"flood": {"cpu": {"unbroken": 1}}}, ""},
		{"worse", Baseline{"flood": {"cpu": {"unbroken": 2.31, "haproxy": 1}}}, "flood: the cpu of unbroken is 2.31 × nginx, and was 2.00 ×"},
		{"not measured", Baseline{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := was.worse(c.now)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestRatiosArePairedByRound(t *testing.T) {
	r := Result{Scenario: Scenario{Name: "flood", Stream: true}, Samples: map[string][]Sample{
		Against: {{PerUnit: 1}, {PerUnit: 10}, {PerUnit: 2}},
		"other": {{PerUnit: 2}, {PerUnit: 20}, {PerUnit: 8}},
	}}
	b := Ratios([]Peer{{Name: Against}, {Name: "other"}}, []Result{r})
	if got := b["flood"]["cpu"]; len(got) != 1 || got["other"] != 2 {
		t.Errorf("%v", b)
	}
}

func TestThePageHoldsAllItNeeds(t *testing.T) {
	var rs []Result
	for _, sc := range append([]Scenario{{Name: "flood", Title: "<many>", Stream: true}}, Linear...) {
		rs = append(rs, Result{Scenario: sc, Samples: map[string][]Sample{Against: {{PerUnit: 1, P99: 9, Units: 1, Took: 1}}, "other": {{PerUnit: 2, P99: 9, Units: 1, Took: 1}}}})
	}
	page := string(Page([]Peer{{Name: Against}, {Name: "other"}}, rs))
	for _, want := range []string{"<svg", "&lt;many&gt;", "streams10000", "2.00 ×"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in it", want)
		}
	}
	for _, not := range []string{"<script", "src=", "href=", "<many>"} {
		if strings.Contains(page, not) {
			t.Errorf("%q in it", not)
		}
	}
}
