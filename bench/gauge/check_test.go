package gauge

import (
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// flooded is a result in which a peer's CPU was so many times nginx's, round by round.
func flooded(peer string, times ...float64) []Result {
	r := Result{Scenario: Scenarios[0], Reference: Against, Peers: []string{Against, peer}, Samples: map[string][]Sample{}}
	for i, x := range times {
		reference := float64(i + 1) // the machine is busier from round to round
		r.Samples[Against] = append(r.Samples[Against], Sample{PerUnit: reference})
		r.Samples[peer] = append(r.Samples[peer], Sample{PerUnit: x * reference})
	}
	return []Result{r}
}

func TestCheckNamesWhatGotWorse(t *testing.T) {
	was := Baseline{"flood": {"cpu": {"unbroken": 2}}}
	for _, c := range []struct {
		name  string
		times []float64
		want  string // "": nothing
	}{
		{"the same", []float64{2, 2, 2, 2, 2}, ""},
		{"within the tolerance", []float64{2.2, 2.25, 2.29, 2.3, 2.3}, ""},
		{"better", []float64{1, 1, 1, 1, 1}, ""},
		{"worse", []float64{2.4, 2.5, 2.4, 2.3, 2.4}, "flood: the cpu of unbroken is 2.40 × its reference, and was 2.00 ×: 20 % worse"},
		{"one disturbed round", []float64{2, 2, 40, 2, 2}, ""},
		{"the median is worse, and two rounds of five are not", []float64{1.9, 1.9, 2.4, 2.4, 2.4}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := was.Check(flooded("unbroken", c.times...), io.Discard)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A check that compares nothing, since nginx is not installed or a name has changed, once
// passed.
func TestCheckOfNothingFails(t *testing.T) {
	for _, c := range []struct {
		name    string
		was     Baseline
		results []Result
	}{
		{"no baseline", Baseline{}, flooded("unbroken", 2, 2, 2, 2, 2)},
		{"another scenario", Baseline{"json": {"cpu": {"unbroken": 2}}}, flooded("unbroken", 2, 2, 2, 2, 2)},
		{"another peer", Baseline{"flood": {"cpu": {"somebody": 2}}}, flooded("unbroken", 2, 2, 2, 2, 2)},
		{"too few rounds", Baseline{"flood": {"cpu": {"unbroken": 2}}}, flooded("unbroken", 2, 2, 2, 2)},
		{"no reference", Baseline{"flood": {"cpu": {"unbroken": 2}}}, []Result{{Scenario: Scenarios[0], Peers: []string{"unbroken"},
			Samples: map[string][]Sample{"unbroken": {{PerUnit: 1}, {PerUnit: 1}, {PerUnit: 1}, {PerUnit: 1}, {PerUnit: 1}}}}}},
		{"another reference", Baseline{"flood": {"cpu": {"unbroken": 2}}}, func() []Result {
			r := flooded("unbroken", 2, 2, 2, 2, 2)
			r[0].Peers[0], r[0].Reference, r[0].Samples["haproxy"] = "haproxy", "haproxy", r[0].Samples[Against]
			delete(r[0].Samples, Against)
			return r
		}()},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.was.Check(c.results, io.Discard); err == nil {
				t.Error("it passes")
			}
		})
	}
}

func TestABaselineKeepsWhatWasNotRun(t *testing.T) {
	was := Baseline{"json": {"cpu": {"unbroken": 3}}, "flood": {"cpu": {"gone": 1}}}
	got := was.With(Ratios(flooded("unbroken", 2, 2, 3, 2, 2)))
	want := Baseline{"json": {"cpu": {"unbroken": 3}}, "flood": {"cpu": {"unbroken": 2}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	file := filepath.Join(t.TempDir(), "baseline.json")
	if b, err := ReadBaseline(file); err != nil || len(b) > 0 {
		t.Errorf("a file that is not there is %v, %v", b, err)
	}
	if err := save(file, got); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadBaseline(file); err != nil || !reflect.DeepEqual(b, want) {
		t.Errorf("read back: %v, %v", b, err)
	}
	other := flooded("unbroken", 2, 2, 2, 2, 2)
	other[0].Reference = "unbroken"
	if b := Ratios(other); len(b) > 0 {
		t.Errorf("to another reference: %v", b)
	}
	if b := Ratios(flooded("unbroken", 2, 2)); len(b) > 0 {
		t.Errorf("of two rounds: %v", b)
	}
}

func TestThePeakOfAnUploadIsItsOwnReference(t *testing.T) {
	sc, _ := Named("body50")
	r := Result{Scenario: sc[0], Peers: []string{"unbroken"}, Samples: map[string][]Sample{"unbroken": {{Peak: 1.2}, {Peak: 1.1}, {Peak: 1.3}, {Peak: 1.2}, {Peak: 1.2}}}}
	if got := Ratios([]Result{r})["body50"]["peak"]["unbroken"]; got != 1.2 {
		t.Errorf("%v", got)
	}
	if err := (Baseline{"body50": {"peak": {"unbroken": 1}}}).Check([]Result{r}, io.Discard); err == nil {
		t.Error("a fifth more memory passes")
	}
}

func TestQuantilesInterpolate(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		q    float64
		want float64
	}{{nil, 0.5, 0}, {[]float64{3}, 0.5, 3}, {[]float64{4, 1}, 0.5, 2.5}, {[]float64{3, 1, 2}, 0.5, 2}, {[]float64{1, 2, 3, 4, 5}, 0.25, 2}, {[]float64{1, 2}, 1, 2}} {
		if got := quantile(c.v, c.q); got != c.want {
			t.Errorf("quantile(%v, %v) = %v", c.v, c.q, got)
		}
	}
}
