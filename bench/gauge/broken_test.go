package gauge

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tinyBreaks is over in a moment.
func tinyBreaks(w Wire) Breaks {
	return Breaks{Wire: w, Clients: 4, Turns: 8, Tokens: 20, Think: time.Millisecond, Prompt: 50}
}

// Every cause but silence, whose noticing takes its time.
func TestWhatIsCutIsHealedAndMeasured(t *testing.T) {
	for _, w := range wires {
		for _, k := range causes {
			if k.silent {
				continue
			}
			t.Run(string(w)+" "+k.name, func(t *testing.T) {
				t.Parallel()
				z := Healing{Breaks: tinyBreaks(w), Every: 4, After: 8}
				h, err := z.heal(within(t), k, healer(t))
				if err != nil {
					t.Fatal(err)
				}
				if h.Turns != 8 || h.Cut != 2 || h.Whole != 2 || h.Measured != 2 || len(h.Faults) > 0 {
					t.Errorf("%+v", h)
				}
				if h.Gap.P50 < 1 || h.Provider.P50 < z.Think.Microseconds() || h.Own.Max > h.First.Max || h.RepaidBytes < 50 {
					t.Errorf("%+v", h)
				}
			})
		}
	}
}

// What a plain proxy lets through is what was not cut; what it costs is all that was asked.
func TestAPlainProxyLosesWhatIsCut(t *testing.T) {
	const rate = 0.4
	b := tinyBreaks(Chat)
	r, err := b.rate(within(t), rate, plain())
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for n := range b.Turns {
		if strings.HasPrefix(fates(rate, uint64(n), b.Tokens), "attempt 1:") {
			lost++
		}
	}
	if lost == 0 || lost == b.Turns {
		t.Fatalf("%d of %d turns are to be cut: choose another rate", lost, b.Turns)
	}
	if r.Turns != b.Turns || r.Whole != b.Turns-lost || r.Cuts != lost || r.Requests != b.Turns || r.Events == 0 {
		t.Errorf("%d were cut: %+v", lost, r)
	}
}

func TestAHealedTurnCostsAnotherRequest(t *testing.T) {
	all, err := FaultRate(within(t), tinyBreaks(Chat), []float64{0, 0.2}, []Peer{Direct(), healer(t)}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 {
		t.Fatalf("%d rates, and direct is none of them: %+v", len(all), all)
	}
	if r := all[0]; r.Whole != r.Turns || r.Requests != r.Turns || r.Cuts != 0 {
		t.Errorf("without a fault: %+v", r)
	}
	if r := all[1]; r.Whole != r.Turns || r.Cuts == 0 || r.Requests != r.Turns+r.Cuts {
		t.Errorf("with faults: %+v", r)
	}
	var out strings.Builder
	Report{Rated: all}.Table(&out)
	if !strings.Contains(out.String(), "100.0 %") {
		t.Errorf("the table:\n%s", out.String())
	}
}

// A turn that is cut at one rate is cut in the same way at each higher one, so that rates are
// comparable.
func TestFatesAreDrawnOnce(t *testing.T) {
	if got := fates(0, 1, 20); got != "attempt *: pass" {
		t.Errorf("at no rate: %q", got)
	}
	was := 0
	for _, rate := range Rates {
		cuts := 0
		for n := range 100 {
			low, high := fates(rate, uint64(n), 20), fates(1, uint64(n), 20)
			for line := range strings.SplitSeq(low, "\n") {
				if !strings.Contains(high, line) {
					t.Fatalf("%q of %g is not in\n%s", line, rate, high)
				}
			}
			if strings.HasPrefix(low, "attempt 1:") {
				cuts++
			}
		}
		if cuts < was {
			t.Errorf("%d turns are cut at %g, and %d at less", cuts, rate, was)
		}
		was = cuts
	}
}

func TestASoakLooksAndWrites(t *testing.T) {
	z := Soaking{Breaks: tinyBreaks(Chat), Rate: 0, For: 100 * time.Millisecond, Every: 20 * time.Millisecond}
	s, err := Soak(within(t), z, healer(t), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Looks) < soakLooks || len(s.Trends) != 4 || s.Broken != 0 {
		t.Fatalf("%+v", s)
	}
	if l := s.Looks[0]; l.Goroutines != 17 || l.Heap != 2 || l.Files != 9 {
		t.Errorf("%+v", l)
	}
	if err := s.Err(); err != nil {
		t.Errorf("what stands still grows: %v", err)
	}
	dir := t.TempDir()
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"soak.json": `"goroutines": 17`, "soak.md": "| goroutines | 17.0 | 17.0 |", "soak.svg": "<polyline"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s has no %q: %v", name, want, err)
		}
	}
	if _, err := Soak(within(t), z, plain(), io.Discard); err == nil {
		t.Error("a peer without metrics is soaked")
	}
}

func TestASoakThatGrowsIsAnError(t *testing.T) {
	var s Soaked
	for i := range 60 {
		s.Looks = append(s.Looks, Look{At: float64(i), Memory: 50, Goroutines: 100 + float64(10*i)})
	}
	s.judge(5)
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "goroutines GROWS") || strings.Contains(err.Error(), "memory") {
		t.Errorf("%v", err)
	}
	if !strings.Contains(s.markdown(), "**grows**") {
		t.Error("the page does not say it")
	}
}
