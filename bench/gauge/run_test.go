package gauge

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestEveryPeerIsMeasuredInEveryRound(t *testing.T) {
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			tiny := Shape{Events: 10, Bytes: 5, Every: time.Millisecond}
			rs, err := Run(within(t), Config{Peers: []Peer{Direct(), healer(t)}, Rounds: 2, Settle: time.Millisecond, Window: 200 * time.Millisecond, Log: io.Discard,
				Scenarios: []Scenario{
					{Name: "paced", Wire: w, Stream: true, Clients: 4, Prompt: 10, Shape: tiny},
					{Name: "flood", Wire: w, Stream: true, Clients: 4, Prompt: 10, Shape: Shape{Events: 40, Bytes: 5}},
					{Name: "call", Wire: w, Clients: 2, Prompt: 10, Shape: tiny},
					{Name: "upload", Wire: w, Clients: 1, Prompt: 100_000, Upload: true, Shape: tiny},
				}})
			if err != nil {
				t.Fatal(err)
			}
			if len(rs) != 4 {
				t.Fatalf("%d results", len(rs))
			}
			for _, r := range rs {
				for _, p := range []string{directName, "healer"} {
					if len(r.Samples[p]) != 2 {
						t.Errorf("%s: %d samples of %s", r.Scenario.Name, len(r.Samples[p]), p)
					}
					for _, s := range r.Samples[p] {
						if s.Units < 1 || s.Took <= 0 || s.P50 < 1 || s.Broken != 0 {
							t.Errorf("%s, %s: %+v", r.Scenario.Name, p, s)
						}
					}
				}
			}
		})
	}
}

// A peer that fails once took the whole table of half an hour with it.
func TestAPeerThatFailsIsOutAndTheOthersGoOn(t *testing.T) {
	gone := Remote("gone", freeAddr(), 0)
	gone.Start = func(_, _ string) (*running, error) { return nil, io.ErrUnexpectedEOF }
	c := Config{Peers: []Peer{gone, plain()}, Rounds: 3, Settle: time.Millisecond, Window: 20 * time.Millisecond, Log: io.Discard,
		Scenarios: []Scenario{{Name: "paced", Stream: true, Clients: 2, Prompt: 10, Shape: Shape{Events: 5, Bytes: 5, Every: time.Millisecond}}}}
	rs, err := Run(within(t), c)
	if err != nil || len(rs) != 1 || len(rs[0].Samples["plain"]) != 3 || rs[0].Failed["gone"] == "" {
		t.Errorf("%+v, %v", rs, err)
	}
	var out bytes.Buffer
	Report{Results: rs}.Table(&out)
	if !strings.Contains(out.String(), "gone failed: unexpected EOF") {
		t.Errorf("the table does not say it:\n%s", out.String())
	}
	gone.With = func(...string) Peer { return gone } // it is ours
	c.Peers[0] = gone
	if _, err := Run(within(t), c); err == nil || !strings.Contains(err.Error(), "paced: gone: unexpected EOF") {
		t.Errorf("Unbroken failed, and the error is %v", err)
	}
}

func TestCommandRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Setenv("BENCH_TEST_KEY", "")
	for _, c := range []struct{ args, want string }{
		{"-scenarios flod", `no scenario "flod": they are flood, `},
		{"-peers ngnix", `no peer "ngnix"`},
		{"-wire gemini", `no wire "gemini"`},
		{"-baseline x.json -rounds 3", "at least 5"},
		{"-target http://127.0.0.1:1", "--model NAME"},
		{"-target http://127.0.0.1:1 -model m -requests 1", "no stream of http://127.0.0.1:1/v1/chat/completions"},
		{"-target http://127.0.0.1:1 -model m -scenarios heal", "--scenarios says nothing beside --target, which takes --key-env, "},
		{"-target http://127.0.0.1:1 -model m -html x.html -soak", "--html says nothing beside --target"},
		{"-redis -wire messages", "--wire says nothing beside --redis"},
		{"-soak -rounds 3", "--rounds says nothing beside --soak"},
		{"-model m -scenarios json", "--model goes with --target alone"},
		{"-for 1m -peers direct", "--for goes with --soak alone"},
		{"-scenarios json -target=", "--target is empty"},
		{"-write-baseline", "--baseline FILE"},
		{"-target http://127.0.0.1:1 -model m -key-env BENCH_TEST_KEY", "no BENCH_TEST_KEY"},
		{"-target http://127.0.0.1:1 -model m -requests 0", "at least one request"},
		{"-target 127.0.0.1:1 -model m", "URL"},
		{"-peers direct -scenarios json -rounds 0", "above 0"},
		{"-peers direct -scenarios json -window -1s", "above 0"},
		{"-peers direct -scenarios heal -heals 0", "above 0"},
		{"-soak -soak-peer nginx", "soak"},
		{"-soak", "no --unbroken"},
		{"-peers direct -scenarios json -json nowhere/x.json", "nowhere/x.json"},
		{"-peers direct -scenarios json -html nowhere/x.html", "nowhere/x.html"},
		{"-peers direct -scenarios heal", "nothing was measured"},
		{"flood", `"flood" is left over: what it takes are flags; see --help`},
		{"-nope", "not defined: -nope; see --help"},
		{"-rounds many", "; see --help"},
	} {
		err := Command(within(t), strings.Fields(c.args), []string{"bench"}, "", io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
}

// A target's line ended "… output tokens each . 10 whole" in a file: what is done, a dot for a
// terminal and the outcome ran into one another.
func TestProgress(t *testing.T) {
	for _, tc := range []struct {
		name, what string
		dots       bool
		took       time.Duration
		want       string
	}{
		{"at once, on a terminal", "flood 1/5", true, 0, "flood 1/5: 7 events\n"},
		{"a while, on a terminal", "flood 1/5 nginx     ", true, 5 * time.Second, "flood 1/5 nginx:      .. 7 events\n"},
		{"a while, in a file", "2 requests, at most 300 output tokens each", false, 5 * time.Second, "2 requests, at most 300 output tokens each: 7 events\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			done := line(&log, tc.what, tc.dots)
			time.Sleep(tc.took) // the bubble's time
			done("7 events")
			if log.String() != tc.want {
				t.Errorf("%s: %q", tc.name, log.String())
			}
		})
	}
	for cpu, want := range map[time.Duration]string{0: "                  p50       5 µs", time.Millisecond: "    2.00 µs/event  p50       5 µs"} {
		if got := (Sample{CPU: cpu, PerUnit: 2, P50: 5}).line("event"); !strings.Contains(got, want) {
			t.Errorf("%q has no %q", got, want)
		}
	}
	var file bytes.Buffer
	progress(&file, "flood %d/%d", 1, 5)("7 events")
	if file.String() != "flood 1/5: 7 events\n" {
		t.Errorf("%q", file.String())
	}
}
