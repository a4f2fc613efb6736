package gauge

import (
	"encoding/json"
	"strings"
	"testing"
)

// Without nginx the tables said "× nginx" over columns that were empty.
func TestRatiosAreToSomebodyWhoWasMeasured(t *testing.T) {
	stores, _ := Named("store250")
	for _, c := range []struct {
		name      string
		scenario  Scenario
		peers     []string
		without   string // takes part and could not be measured
		reference string
	}{
		{"nginx, wherever it stands", Scenarios[0], []string{directName, "haproxy", Against, "mine"}, "", Against},
		{"nginx with nothing in between", Scenarios[0], []string{directName, Against}, "", Against},
		{"no nginx: the first proxy", Scenarios[0], []string{directName, "haproxy", "mine"}, "", "haproxy"},
		{"nginx failed", Scenarios[0], []string{directName, Against, "haproxy", "mine"}, Against, "haproxy"},
		{"one proxy", Scenarios[0], []string{"mine"}, "", ""},
		{"one proxy, and nginx failed", Scenarios[0], []string{Against, "mine"}, Against, ""},
		{"one proxy, and nothing in between", Scenarios[0], []string{directName, "mine"}, "", ""},
		{"nginx alone", Scenarios[0], []string{Against}, "", ""},
		{"nothing in between", Scenarios[0], []string{directName}, "", ""},
		{"Redis is well", stores[0], []string{"redis-healthy", "redis-slow", "redis-down"}, "", "redis-healthy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Result{Scenario: c.scenario, Peers: c.peers, Samples: map[string][]Sample{}}
			for i, p := range c.peers {
				if p != c.without {
					r.Samples[p] = []Sample{{PerUnit: float64(i + 1), P50: 50, P99: 90, Units: 10, Took: 1}}
				}
			}
			if r.Reference = r.base(); r.Reference != c.reference {
				t.Fatalf("the reference is %q", r.Reference)
			}
			report := Report{Results: []Result{r}}
			doc, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			texts := map[string]string{"the table": printed(report), "the page": string(report.Page())}
			for where, text := range texts {
				if c.reference == "" {
					if strings.Contains(text, "×") {
						t.Errorf("%s has a ratio:\n%s", where, text)
					}
				} else if !strings.Contains(text, "(one round, × "+c.reference+")") || !strings.Contains(text, "1.00") {
					t.Errorf("%s has no ratios to it:\n%s", where, text)
				}
			}
			if has := strings.Contains(string(doc), `"reference":"`+c.reference+`"`); has != (c.reference != "") {
				t.Errorf("JSON: %s", doc)
			}
		})
	}
}
