package interrupt

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

const sec = time.Second

// act is one report to a watch, at seconds since its start.
type act struct {
	at int
	do string
}

func play(w *Watch, a act) {
	at := noon.Add(time.Duration(a.at) * sec)
	switch a.do {
	case "opened":
		w.Opened(at)
	case "ping":
		w.Bytes(at)
	case "progress":
		w.Progress(at)
	case "text": // visible text in a text block
		w.Progress(at)
		w.Visible()
		w.Phase(Speaking)
	case "think": // reasoning in a reasoning block
		w.Progress(at)
		w.Phase(Quiet)
	case "close":
		w.Progress(at)
		w.Phase(Waiting)
	case "done":
		w.Bytes(at)
		w.Phase(Done)
	default:
		panic("BUG: unknown act " + a.do)
	}
}

func TestWatch(t *testing.T) {
	off := Config{Headers: -1, HeadersWhole: -1, FirstToken: -1, Idle: -1, Progress: -1, ProgressQuiet: -1}
	for _, tc := range []struct {
		name  string
		limit Config
		call  Call
		acts  []act
		fires int // seconds since the start; 0: never
		want  Kind
	}{
		{"no head", Config{}, Call{}, nil, 60, FirstTokenTimeout},
		{"no head of a call that does not stream", Config{}, Call{Whole: true}, nil, 600, FirstTokenTimeout},
		{"body of such a call stops", Config{}, Call{Whole: true}, []act{{300, "opened"}, {301, "ping"}}, 361, IdleStall},
		{"head, then silence (B2)", Config{}, Call{}, []act{{1, "opened"}}, 600, FirstTokenTimeout},
		{"head, then pings for ever (B2)", Config{}, Call{}, []act{{1, "opened"}, {300, "ping"}, {599, "ping"}}, 600, FirstTokenTimeout},
		{"text stops dead", Config{}, Call{}, []act{{1, "opened"}, {2, "text"}}, 62, IdleStall},
		{"text, then pings for ever (B1)", Config{}, Call{},
			[]act{{1, "text"}, {50, "ping"}, {100, "ping"}, {150, "ping"}}, 181, IdleStall},
		{"reasoning in silence after text", Config{}, Call{}, []act{{1, "text"}, {2, "think"}}, 602, IdleStall},
		{"reasoning in silence first", Config{}, Call{}, []act{{1, "think"}}, 600, FirstTokenTimeout},
		{"reasoning that goes on is healthy", Config{FirstToken: -1}, Call{},
			[]act{{1, "think"}, {500, "think"}, {1000, "think"}}, 1600, IdleStall},
		{"a pinging host falls silent while it reasons", Config{}, Call{Pings: true},
			[]act{{1, "opened"}, {2, "think"}, {20, "ping"}}, 80, IdleStall},
		{"a pinging host that has not said anything yet", Config{}, Call{Pings: true}, []act{{1, "opened"}}, 600, FirstTokenTimeout},
		{"between blocks", Config{}, Call{}, []act{{1, "text"}, {2, "close"}}, 182, IdleStall},
		{"after the semantic end", Config{}, Call{}, []act{{1, "text"}, {2, "done"}}, 0, None},
		{"everything off", off, Call{Pings: true}, []act{{1, "opened"}, {2, "text"}}, 0, None},
		{"own limits", Config{Idle: 5 * sec}, Call{}, []act{{1, "text"}}, 6, IdleStall},
		{"a clock that steps back", Config{}, Call{}, []act{{10, "text"}, {3, "text"}}, 70, IdleStall},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := NewWatch(tc.limit, tc.call, noon)
			for _, a := range tc.acts {
				if c := w.Check(noon.Add(time.Duration(a.at) * sec)); c != (Cause{}) {
					t.Fatalf("fired early, at %d: %+v", a.at, c)
				}
				play(&w, a)
			}
			if tc.fires == 0 {
				if c := w.Check(noon.Add(1e6 * sec)); !w.Next().IsZero() || c != (Cause{}) {
					t.Fatalf("next %v, cause %+v; want never", w.Next(), c)
				}
				return
			}
			at := noon.Add(time.Duration(tc.fires) * sec)
			if !w.Next().Equal(at) {
				t.Fatalf("next after %v, want %v", w.Next().Sub(noon), at.Sub(noon))
			}
			if c := w.Check(at.Add(-1)); c != (Cause{}) {
				t.Errorf("fired before its time: %+v", c)
			}
			if c := w.Check(at); c.Kind != tc.want || c.Status != 504 || c.Message == "" || !c.Transient() {
				t.Errorf("got %+v, want %v", c, tc.want)
			}
		})
	}
}

func TestWatchNeverFiresBeforeNext(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	doings := []string{"opened", "ping", "progress", "text", "think", "close", "done"}
	fired := 0
	for run := range 2000 {
		limits := Config{}
		for _, f := range []*time.Duration{&limits.Headers, &limits.HeadersWhole, &limits.FirstToken, &limits.Idle, &limits.Progress, &limits.ProgressQuiet} {
			*f = time.Duration(r.IntN(120)-10) * sec
		}
		w := NewWatch(limits, Call{Whole: r.IntN(8) == 0, Pings: r.IntN(2) == 0}, noon)
		now, story := 0, ""
		for range 30 {
			now += r.IntN(40)
			a := act{now, doings[r.IntN(len(doings)-1+r.IntN(2))]}
			story += fmt.Sprintf(" %d:%s", a.at, a.do)
			play(&w, a)
			for _, ahead := range []time.Duration{0, 1, sec, 30 * sec, 1000 * sec} {
				at := noon.Add(time.Duration(now)*sec + ahead)
				next := w.Next()
				due := !next.IsZero() && !at.Before(next)
				if got := w.Check(at).Kind != None; got != due {
					t.Fatalf("run %d after%s: check at %v says %v, next is %v", run, story, at.Sub(noon), got, next.Sub(noon))
				}
				if due {
					fired++
				}
			}
		}
	}
	if fired == 0 {
		t.Fatal("no watch ever fired: the property was not tried")
	}
}

// Pings must not keep a wedged generation alive (B1), and silence during
// reasoning must not kill a healthy one: the deadline of progress is the same
// with and without pings, and reasoning just under its limit never fires.
func TestPingsAloneNeverSatisfyProgress(t *testing.T) {
	for _, open := range []string{"text", "think"} {
		w := NewWatch(Config{FirstToken: -1}, Call{}, noon)
		play(&w, act{0, open})
		limit := 180
		if open == "think" {
			limit = 600
		}
		for at := 1; at < limit; at++ {
			play(&w, act{at, "ping"})
			if c := w.Check(noon.Add(time.Duration(at) * sec)); c.Kind != None {
				t.Fatalf("%s: fired at %d: %+v", open, at, c)
			}
		}
		if c := w.Check(noon.Add(time.Duration(limit) * sec)); c.Kind != IdleStall {
			t.Errorf("%s: pings satisfied the progress clock", open)
		}
	}
}

func TestWatchDoesNotAllocate(t *testing.T) {
	n := testing.AllocsPerRun(100, func() {
		w := NewWatch(Config{}, Call{}, noon)
		w.Opened(noon)
		w.Progress(noon)
		w.Phase(Speaking)
		w.Visible()
		if w.Check(noon.Add(sec)).Kind != None || w.Next().IsZero() {
			t.Error("fired")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkWatch(b *testing.B) {
	w := NewWatch(Config{}, Call{}, noon)
	w.Phase(Speaking)
	b.ReportAllocs()
	for b.Loop() {
		w.Progress(noon)
		if w.Check(noon).Kind != None {
			b.Fatal("fired")
		}
	}
}
