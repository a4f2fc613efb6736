package statuspage

import (
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

// boardAt is a board whose clock stands.
func boardAt(now time.Time) *Board { return NewBoard(func() time.Time { return now }) }

func subject(run string) proxy.Subject {
	return proxy.Subject{
		Run: run, Dialect: "chat", Upstream: "openai", Model: "gpt", Began: noon,
		Targets: []proxy.Asked{{Upstream: "openai", Model: "gpt"}, {Upstream: "spare", Model: "other"}},
	}
}

func cut(at time.Duration, k planner.Kind) relay.Note {
	return relay.Note{
		Kind: relay.NoteInterrupted, At: after(at), Cause: interrupt.Cause{Kind: interrupt.ConnectionReset}, Said: 80,
		Plan: planner.Plan{Kind: k, Reason: "text", Manner: turn.Prefill}, Manner: turn.Prefill,
	}
}

var (
	attempt = relay.Note{Kind: relay.NoteAttempt, At: noon}
	visible = relay.Note{Kind: relay.NoteVisible, At: after(time.Second)}
	spare   = relay.Note{Kind: relay.NoteAttempt, At: after(2 * time.Second), Attempt: 1, Target: 1}
	seam    = relay.Note{Kind: relay.NoteSeam, At: after(3 * time.Second), Reason: "overlap", Joined: true}
	healed  = relay.Note{Kind: relay.NoteHealed, At: after(3 * time.Second), Gap: 900 * time.Millisecond}
)

// A live stream is told with what it does at the moment, and since when.
func TestStateOfALiveStream(t *testing.T) {
	b := boardAt(after(4 * time.Second))
	l := b.Begin(subject("r"))
	for _, step := range []struct {
		note  relay.Note
		state State
		since time.Duration
		at    string
	}{
		{attempt, Opening, 0, "openai"},
		{visible, Streaming, time.Second, "openai"},
		{cut(2*time.Second, planner.ContinueText), Recovering, 2 * time.Second, "openai"},
		{spare, Recovering, 2 * time.Second, "spare"},
		{seam, Recovering, 2 * time.Second, "spare"},
		{healed, Streaming, 3 * time.Second, "spare"},
	} {
		l.Note(step.note)
		got := b.tell(0, 0).Live[0]
		if got.State != step.state || !got.Since.Equal(after(step.since)) || got.Upstream != step.at {
			t.Errorf("after note %d: %+v", step.note.Kind, got)
		}
	}
	l.End(proxy.Outcome{At: after(4 * time.Second)})
	if got := b.tell(0, 0); len(got.Live) != 0 || got.Totals.Healed != 1 {
		t.Errorf("after its end: %+v", got)
	}
}

// What becomes of a recovery follows from what happens next.
func TestResultsOfRecoveries(t *testing.T) {
	for _, tc := range []struct {
		name  string
		notes []relay.Note
		whose proxy.Whose
		want  []Result
		saved int64
	}{
		{"it heals", []relay.Note{cut(0, planner.ContinueText), spare, seam, healed}, proxy.Completed, []Result{Healed}, 80},
		{"the turn is ended by what is there", []relay.Note{cut(0, planner.SynthesizeToolUse)}, proxy.Completed, []Result{Finished}, 80},
		{"the continuation says nothing new", []relay.Note{cut(0, planner.ContinueText), spare}, proxy.Completed, []Result{Finished}, 80},
		{"it is cut again, and heals", []relay.Note{cut(0, planner.ContinueText), cut(1, planner.ContinueText), healed}, proxy.Completed, []Result{Again, Healed}, 160},
		{"nothing can be done", []relay.Note{cut(0, planner.Refuse)}, proxy.Provider, []Result{GaveUp}, 0},
		{"nothing helps", []relay.Note{cut(0, planner.WholeRestart), spare}, proxy.Provider, []Result{GaveUp}, 0},
		{"its client leaves", []relay.Note{cut(0, planner.ContinueText)}, proxy.Client, []Result{Left}, 80},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := boardAt(noon)
			l := b.Begin(subject("r"))
			for _, n := range tc.notes {
				l.Note(n)
			}
			l.End(proxy.Outcome{At: noon, Whose: tc.whose})
			got := b.tell(0, 0)
			if len(got.Recoveries) != len(tc.want) {
				t.Fatalf("%d recoveries: %+v", len(got.Recoveries), got.Recoveries)
			}
			for i, r := range got.Recoveries {
				if r.Result != tc.want[i] {
					t.Errorf("recovery %d: %s, want %s", i, r.Result, tc.want[i])
				}
			}
			if got.Totals.Saved != tc.saved {
				t.Errorf("%d tokens saved, want %d", got.Totals.Saved, tc.saved)
			}
		})
	}
}

// A reader that knows a revision is told what changed since, also of what it knows.
func TestFeedTellsChanges(t *testing.T) {
	b := boardAt(noon)
	one, two := b.Begin(subject("one")), b.Begin(subject("two"))
	one.Note(cut(0, planner.ContinueText))
	two.Note(cut(0, planner.ContinueText))
	first := b.tell(0, 0)
	if len(first.Recoveries) != 2 {
		t.Fatalf("%+v", first.Recoveries)
	}
	if again := b.tell(first.Rev, 0); len(again.Recoveries) != 0 {
		t.Errorf("nothing changed, but %+v", again.Recoveries)
	}
	one.Note(healed)
	if now := b.tell(first.Rev, 0); len(now.Recoveries) != 1 || now.Recoveries[0].Run != "one" || now.Recoveries[0].GapMS != 900 {
		t.Errorf("%+v", now.Recoveries)
	}
}

// However much breaks, what is remembered is bounded, the newest of it.
func TestFeedAndListAreBounded(t *testing.T) {
	b := boardAt(noon)
	for range maxFeed + 50 {
		b.Begin(subject("r")).Note(cut(0, planner.ContinueText))
	}
	got := b.tell(0, 0)
	if len(got.Recoveries) != maxFeed || got.Recoveries[maxFeed-1].ID != maxFeed+50 {
		t.Errorf("%d recoveries are told", len(got.Recoveries))
	}
	if len(got.Live) != maxLive || got.LiveAll != maxFeed+50 {
		t.Errorf("%d of %d streams are told", len(got.Live), got.LiveAll)
	}
}

// Those that are being recovered are told first, whatever their age.
func TestRecoveringStreamsComeFirst(t *testing.T) {
	b := boardAt(noon)
	old := subject("old")
	old.Began = noon.Add(-time.Hour)
	b.Begin(old)
	b.Begin(subject("hurt")).Note(cut(0, planner.ContinueText))
	if got := b.tell(0, 0).Live; got[0].Run != "hurt" || got[1].Run != "old" {
		t.Errorf("%+v", got)
	}
}

// Ends are remembered in their ten seconds; hours without any leave nothing behind.
func TestHistory(t *testing.T) {
	var h history
	h.at(noon, 1).ended(proxy.Completed, false)
	h.at(noon, 3).ended(proxy.Completed, true)
	h.at(after(25*time.Second), 2).ended(proxy.Provider, false)
	h.at(after(20*time.Second), 2).ended(proxy.Client, false) // late, into the newest
	h.at(after(25*time.Second), 2).gap(time.Second)
	got := h.since(0)
	want := []Tick{
		{At: noon.Unix(), Clean: 1, Healed: 1, Live: 3},
		{At: noon.Unix() + 10, Live: 2},
		{At: noon.Unix() + 20, Failed: 1, Other: 1, Live: 2, GapMS: 1000},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("tick %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if got := h.since(noon.Unix() + 20); len(got) != 1 {
		t.Errorf("from the last tick on: %+v", got)
	}
	h.at(after(59*time.Minute), 0)
	if got := h.since(0); len(got) != 355 || got[0].Clean != 1 {
		t.Errorf("%d ticks after an hour, the oldest %+v", len(got), got[0])
	}
	h.at(after(9*time.Hour), 0)
	if got := h.since(0); len(got) != 1 || got[0].Clean != 0 {
		t.Errorf("after a long silence: %+v", got)
	}
}

// Streams' drivers call it: what happens in every stream costs no garbage.
func TestNotesCostNoAllocation(t *testing.T) {
	b := boardAt(noon)
	l := b.Begin(subject("r"))
	if n := testing.AllocsPerRun(100, func() { l.Note(attempt); l.Note(visible) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
