package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/proxy"
)

// docs/BENCH.md has every flag, and its default.
func TestFlagsAreDocumented(t *testing.T) {
	manual, err := os.ReadFile("../../docs/BENCH.md")
	if err != nil {
		t.Fatal(err)
	}
	c := fullSize
	f, _ := flags(&c)
	f.VisitAll(func(f *flag.Flag) {
		if row := fmt.Sprintf("| `-%s` | `%s` | %s |\n", f.Name, f.DefValue, f.Usage); !strings.Contains(string(manual), row) {
			t.Errorf("docs/BENCH.md has no line %s", row)
		}
	})
}

// The drill at the size of a test: what must hold on any machine, in counts.
func TestDrill(t *testing.T) {
	c := config{
		Agents: 40, Turn: time.Second, Think: 50 * time.Millisecond, Tokens: 20,
		Well: 3 * time.Second, Away: 1500 * time.Millisecond, After: 2 * time.Second, Sample: 20 * time.Millisecond,
		Breaker: proxy.BreakerConfig{Failures: 5, Window: 5 * time.Second, Open: 300 * time.Millisecond},
	}
	r, err := drill(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	n := r.numbers()
	t.Logf("\n%s", r.summary())
	if n.Interrupted < c.Agents/2 {
		t.Errorf("only %d turns were under way when the provider died: that is no drill", n.Interrupted)
	}
	if n.Recovered != n.Interrupted {
		t.Errorf("%d of %d interrupted turns were completed", n.Recovered, n.Interrupted)
		for _, e := range r.turns {
			if e.Err != "" && !e.Seen.IsZero() {
				t.Logf("%d tries: %s", e.Tries, e.Err)
			}
		}
	}
	// Four times five failures in a row open the breaker, those of the streams that are
	// cut among them; what is on its way then may still land, and afterwards there is a
	// probe per open time.
	if most := 4*c.Breaker.Failures + 10 + 2*int(c.Away/c.Breaker.Open); n.WhileAway > most {
		t.Errorf("asked %d times while it was away, want at most %d", n.WhileAway, most)
	}
	if n.MostRecovering > max(10, c.Agents/5) {
		t.Errorf("%d recoveries in flight", n.MostRecovering)
	}
	if most := max(5, n.HealthyMost*3/2); mostIn(time.Second, r.again) > most {
		t.Errorf("%d recoveries in a second, want at most %d", mostIn(time.Second, r.again), most)
	}

	dir := t.TempDir()
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	var doc struct{ Seconds []second }
	b, err := os.ReadFile(filepath.Join(dir, "drill.json"))
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	total := 0
	for _, s := range doc.Seconds {
		total += s.Requests
	}
	if last := countIn(r.requests, r.began, r.began.Add(time.Duration(len(doc.Seconds))*time.Second)); err != nil || total != last {
		t.Errorf("%v; %d requests in the file, %d were made", err, total, last)
	}
	plot, err := os.ReadFile(filepath.Join(dir, "drill.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(plot))); err == nil; {
		_, err = d.Token()
	}
	if !errors.Is(err, io.EOF) || strings.Count(string(plot), "<polyline") != 7 || strings.Count(string(plot), ">away</text>") != 3 {
		t.Errorf("the plot is no drawing: %v", err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "drill.md"))
	if err != nil || !strings.Contains(string(page), "40 agents") {
		t.Errorf("%v\n%s", err, page)
	}
}

// A drill whose report cannot be written, or that is none, was found out after four minutes.
func TestADrillThatCannotBeIsRefusedAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"-agents 0", "above 0"},
		{"-away 0s", "above 0"},
		{"-turn 500ms", "before its first token"},
		{"quick", `"quick" is left over`},
		{"-out " + file, "not a directory"},
	} {
		var progress strings.Builder
		if err := run(t.Context(), strings.Fields(c.args), &progress); err == nil || !strings.Contains(err.Error(), c.want) || progress.Len() > 0 {
			t.Errorf("%s: %v\n%s", c.args, err, progress.String())
		}
	}
	if w := time.Duration(watched) * fullSize.Turn / 2; w != fullSize.Well || w != fullSize.After {
		t.Errorf("the drill of the report is watched for %v and %v, and flags make it %v", fullSize.Well, fullSize.After, w)
	}
}

func TestNumbers(t *testing.T) {
	zero := time.Unix(1_800_000_000, 0)
	at := func(s ...float64) (all []time.Time) {
		for _, v := range s {
			all = append(all, zero.Add(time.Duration(v*float64(time.Second))))
		}
		return all
	}
	if n := mostIn(time.Second, at(0, 0.5, 0.99, 1, 1.4, 1.99, 3)); n != 4 {
		t.Errorf("%d in a second, want 4", n) // 0.5 0.99 1 1.4
	}
	when := func(s float64) time.Time { return at(s)[0] }
	r := &result{
		config: config{Well: 4 * time.Second}, began: zero, died: when(4), returned: when(6), ended: when(10),
		requests: at(0, 2, 2.5, 3, 3.5, 4.5, 7, 7.1, 7.2), again: at(7),
		turns: []turnEnd{
			{Began: when(0), Seen: when(0.5), Ended: when(1), Tries: 1},
			{Began: when(3), Seen: when(3.9), Ended: when(8), Tries: 1},
			{Began: when(3), Seen: when(3.5), Ended: when(5), Tries: 1, Err: "the stream broke"},
			{Began: when(3.5), Seen: when(7), Ended: when(9), Tries: 2}, // had nothing yet
			{Began: when(5), Ended: when(9), Tries: 3, Err: "status 503"},
		},
	}
	n := r.numbers()
	want := numbers{
		HealthyRate: 2, HealthyMost: 2, WhileAway: 1, MostInASecond: 3, MostRate: 0.4, MostOverRate: 0.2, Interrupted: 2, Recovered: 1,
		LongestTurn: 5, Turns: 5, Failed: 2, Share: 0.6, CalmAfter: 2,
	}
	if n != want {
		t.Errorf("%+v\nwant %+v", n, want)
	}
}
