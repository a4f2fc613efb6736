package ledger

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// TestBadInput: each is a typed refusal, and the run is as it was.
func TestBadInput(t *testing.T) {
	long := strings.Repeat("x", MaxName+1)
	for _, tc := range []struct {
		name string
		act  Act
		want error
	}{
		{"a call that was never asked for", Start{Call: "zz", N: 1}, ErrUnknownCall},
		{"a result for it", Result{Call: "zz", Content: []byte("x")}, ErrUnknownCall},
		{"an attempt zero", Start{Call: "b", N: 0}, ErrInvalid},
		{"an attempt that skips one", Start{Call: "b", N: 2}, ErrIllegal},
		{"a result of an attempt that was not announced", Result{Call: "b", Attempt: 1}, ErrIllegal},
		{"a result of a negative attempt", Result{Call: "b", Attempt: -1}, ErrIllegal},
		{"a digest that is another content's", Result{Call: "b", Content: []byte("x"), Digest: Sum([]byte("y"))}, ErrInvalid},
		{"a result that is too large", Result{Call: "b", Content: make([]byte, MaxResult+1)}, ErrTooLarge},
		{"a ticket that was never issued", Resume{Ticket: "t", Kind: "k"}, ErrTicket},
		{"a ticket without a kind", Wait{Call: "b", Ticket: Ticket{ID: "t"}}, ErrInvalid},
		{"a ticket that has expired already", Wait{Call: "b", Ticket: Ticket{ID: "t", Kind: "k", Expires: noon}}, ErrInvalid},
		{"a run that waits with its batch open", Wait{Ticket: Ticket{ID: "t", Kind: "k"}}, ErrIllegal},
		{"an end without a cause", End{}, ErrInvalid},
		{"an end of an unknown cause", End{Cause: 99}, ErrInvalid},
		{"a type of failure for an end that is none", End{Cause: Stopped, Type: "x"}, ErrInvalid},
		{"a step while the batch is open", Commit{Message: Sum([]byte("m2"))}, ErrIllegal},
		{"a declaration after the first batch", Declare{Reports: true}, ErrTooLate},
		{"a policy of no tool", Declare{Policies: []ToolPolicy{{}}}, ErrInvalid},
		{"a policy with too many attempts", Declare{Policies: []ToolPolicy{{Tool: "x", Policy: Policy{Attempts: MaxAttempts + 1}}}}, ErrInvalid},
		{"a policy of an unknown kind", Declare{Policies: []ToolPolicy{{Tool: "x", Policy: Policy{Recovery: 9}}}}, ErrInvalid},
		{"a flag that says nothing", Flag{}, ErrInvalid},
		{"a name that is too long", Flag{What: long}, ErrInvalid},
		{"a name that is no text", Flag{What: "\xff"}, ErrInvalid},
		{"a call given up for no reason", Lose{Call: "b"}, ErrInvalid},
		{"a run under another name", Begin{ID: "other"}, ErrConflict},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := batch(t, false, Policy{})
			was := s.run
			s.refused(tc.want, tc.act)
			if s.run != was {
				t.Fatal("the run has changed")
			}
		})
	}
}

func TestBadStepsBeforeTheFirst(t *testing.T) {
	for _, tc := range []struct {
		name string
		act  Commit
		want error
	}{
		{"a call without a name", Commit{Calls: []Asked{{ID: "a"}}}, ErrInvalid},
		{"a call without an id", Commit{Calls: []Asked{{Name: "a"}}}, ErrInvalid},
		{"more calls than a batch holds", Commit{Calls: make([]Asked, MaxBatch+1)}, ErrTooLarge},
		{"a ticket without an id", Commit{Calls: two, Ticket: &Ticket{Kind: "k"}}, ErrInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) { began(t).refused(tc.want, tc.act) })
	}
}

func TestWhoMayWrite(t *testing.T) {
	s := batch(t, true, Policy{})
	for _, a := range []Act{Start{Call: "b", N: 1}, Wait{Call: "b", Ticket: Ticket{ID: "t", Kind: "k"}}, Resume{Ticket: "t", Kind: "k"}, Lose{Call: "b", Why: "x"}, Declare{}, End{Cause: Completed}} {
		for name, fence := range map[string]uint64{"without a claim": 0, "by a claim nobody made": s.fence + 1, "by an older claim": s.fence - 1} {
			if _, err := s.try(fence, s.key(), a); !errors.Is(err, ErrFenced) {
				t.Errorf("%s %s: %v", a.Name(), name, err)
			}
		}
	}
	s.do(0, "", Result{Call: "a", Digest: Sum([]byte("r"))}) // seen on the wire
	s.do(0, "", End{Cause: Cancelled})                       // an operator's
}

// TestAKeyOfADeadProcess: a successor that makes the same keys must not take the
// attempt of its predecessor, which may have had its effect, for its own.
func TestAKeyOfADeadProcess(t *testing.T) {
	s := batch(t, true, Policy{})
	s.do(s.fence, "start b 1", Start{Call: "b", N: 1})
	if e, err := s.try(s.fence, "start b 1", Start{Call: "b", N: 1}); err != nil || e != Replayed {
		t.Fatalf("the same process again: %v, %v", e, err)
	}
	s.claim()
	if _, err := s.try(s.fence, "start b 1", Start{Call: "b", N: 1}); !errors.Is(err, ErrConflict) {
		t.Fatalf("its successor, with the same key: %v", err)
	}
}

// TestATicketIsRedeemedOnce, also when a successor has the key of a dead process.
func TestATicketIsRedeemedOnce(t *testing.T) {
	s := batch(t, true, Policy{})
	s.waits()
	s.do(s.fence, "go", Resume{Ticket: "t", Kind: "approval"})
	if e, err := s.try(s.fence, "go", Resume{Ticket: "t", Kind: "approval"}); err != nil || e != Replayed {
		t.Fatalf("again: %v, %v", e, err)
	}
	s.refused(ErrTicket, Resume{Ticket: "t", Kind: "approval"})
	s.claim()
	if _, err := s.try(s.fence, "go", Resume{Ticket: "t", Kind: "approval"}); !errors.Is(err, ErrTicket) {
		t.Fatalf("a successor with the same key: %v", err)
	}
}

func TestATicketExpiresByTheWritersClock(t *testing.T) {
	s := batch(t, true, Policy{})
	s.waits() // until an hour from noon
	s.at = noon.Add(time.Hour)
	s.refused(ErrTicket, Resume{Ticket: "t", Kind: "approval"})
	s.at = noon.Add(time.Hour - 1) // a clock that went back
	s.mine(Resume{Ticket: "t", Kind: "approval"})
	if s.run.Updated.Before(noon) {
		t.Fatalf("updated %v", s.run.Updated)
	}
}

// TestTimesNeverGoBack: what was written last is not shown as older than before.
func TestTimesNeverGoBack(t *testing.T) {
	s := batch(t, true, Policy{})
	was := s.run.Updated
	s.at = noon.Add(-24 * time.Hour)
	s.mine(Start{Call: "b", N: 1})
	if s.run.Updated.Before(was) {
		t.Fatalf("%v after %v", s.run.Updated, was)
	}
	fence := s.fence
	if s.claim(); s.fence <= fence {
		t.Fatalf("fence %d after %d", s.fence, fence)
	}
}

func TestResultsToldTwice(t *testing.T) {
	s := batch(t, true, Policy{})
	s.mine(Result{Call: "b", Content: []byte("ok")})
	if e, err := s.try(s.fence, "", Result{Call: "b", Content: []byte("ok")}); err != nil || e != Replayed {
		t.Fatalf("the same: %v, %v", e, err)
	}
	s.refused(ErrConflict, Result{Call: "b", Content: []byte("other")})
	s.refused(ErrConflict, Result{Call: "b", Content: []byte("ok"), Error: true})
	if e, err := s.try(0, "", Result{Call: "b", Digest: Sum([]byte(`[{"type":"text","text":"ok"}]`))}); err != nil || e != Replayed {
		t.Fatalf("the wire's rendering of it: %v, %v", e, err)
	}
	_, c := s.run.find("b")
	if string(c.Result.Content) != "ok" || c.Result.Wire {
		t.Fatalf("%+v", c.Result)
	}
}

// TestTheBatchIsPublishedAtOnce: nobody sees a result before the last one is there.
func TestTheBatchIsPublishedAtOnce(t *testing.T) {
	s := batch(t, true, Policy{})
	s.mine(Result{Call: "b", Content: []byte("second")})
	if s.run.Results(1) != nil {
		t.Fatal("half a batch")
	}
	s.mine(Result{Call: "a", Content: []byte("first")})
	got := s.run.Results(1)
	if len(got) != 2 || string(got[0].Content) != "first" || string(got[1].Content) != "second" {
		t.Fatalf("%+v", got)
	}
	s.do(0, "", Commit{Message: Sum([]byte("m2")), Calls: two})
	if got = s.run.Results(1); got[0].Content != nil || got[0].Digest != Sum([]byte("first")) {
		t.Fatalf("what was consumed: %+v", got[0])
	}
}

// TestIdsThatRepeat: some hosts number their calls from zero in every turn. The
// operation ids differ, and a bare id means the newest.
func TestIdsThatRepeat(t *testing.T) {
	s := batch(t, true, Policy{})
	_, first := s.run.find("b")
	s.mine(Result{Call: "a"})
	s.mine(Result{Call: "b"})
	s.do(0, "", Commit{Message: Sum([]byte("m2")), Lineage: "l2", Calls: append(two, two[1])})
	_, second := s.run.find("b")
	if first.Op == second.Op || second.State != Requested || len(s.run.Last().Calls) != 2 {
		t.Fatalf("%+v", s.run.Last())
	}
	if _, c := s.run.find(first.Op); c.State != Done {
		t.Fatalf("%+v", c)
	}
}

// TestTheSameStepAgain is no second one; the same words later in the run are.
func TestTheSameStepAgain(t *testing.T) {
	s := batch(t, true, Policy{})
	commit := Commit{Message: Sum([]byte("m1")), Lineage: "l1", Calls: two}
	if e, err := s.try(0, "", commit); err != nil || e != Replayed {
		t.Fatalf("%v, %v", e, err)
	}
	s.mine(Result{Call: "a"})
	s.mine(Result{Call: "b"})
	if e, err := s.try(0, "", commit); err != nil || e != Replayed {
		t.Fatalf("with its batch settled: %v, %v", e, err)
	}
	commit.Lineage = "l2"
	s.do(0, "", commit)
	other := Commit{Message: Sum([]byte("m9")), Lineage: "l9", Calls: two}
	if _, err := s.try(0, "", other); !errors.Is(err, ErrIllegal) {
		t.Fatalf("another step over an open batch: %v", err)
	}
	other.Supersede = true
	s.do(0, "", other)
	if c := s.run.Steps[1].Calls[0]; c.State != Indeterminate || !s.run.Steps[1].Finalized || s.run.Open().N != 3 {
		t.Fatalf("%+v", s.run.Steps)
	}
}

func TestATurnWithoutCallsEndsTheRun(t *testing.T) {
	s := began(t)
	s.do(0, "", Commit{Message: Sum([]byte("wait")), Paused: true})
	if s.run.State != Running {
		t.Fatalf("a paused turn: %s", s.run.State)
	}
	s.do(0, "", Commit{Message: Sum([]byte("bye"))})
	if s.run.State != Ended || s.run.Cause != Completed {
		t.Fatalf("%s, %s", s.run.State, s.run.Cause)
	}
}

func TestLimitsMakeRoom(t *testing.T) {
	s := began(t)
	for n := range MaxSteps + 10 {
		s.do(0, "", Commit{Message: Sum([]byte{byte(n)}), Lineage: strings.Repeat("l", n+1)[:min(n+1, MaxName)], Calls: two[:1]})
		s.mine(Result{Call: "a"})
	}
	if len(s.run.Steps) != MaxSteps || s.run.Dropped != 10 || s.run.Last().N != MaxSteps+10 {
		t.Fatalf("%d steps, %d dropped", len(s.run.Steps), s.run.Dropped)
	}
	for range MaxTickets + 5 {
		s.mine(Wait{Ticket: Ticket{ID: s.key(), Kind: "k"}})
		s.mine(Resume{Ticket: s.run.Awaited().ID, Kind: "k"})
	}
	if len(s.run.Tickets) > MaxTickets {
		t.Fatalf("%d tickets", len(s.run.Tickets))
	}
}

func TestExpectedVersions(t *testing.T) {
	s := batch(t, true, Policy{})
	e := Entry{At: s.at, Fence: s.fence, Key: "k", Expect: s.run.Version - 1, Do: Start{Call: "b", N: 1}}
	if _, _, err := Apply(theK, s.run, e); !errors.Is(err, ErrVersion) {
		t.Fatal(err)
	}
	e.Expect = s.run.Version
	after, _, err := Apply(theK, s.run, e)
	if err != nil {
		t.Fatal(err)
	}
	if _, effect, err := Apply(theK, after, e); err != nil || effect != Replayed {
		t.Fatalf("repeated, with the version that it itself made old: %v, %v", effect, err)
	}
}

func TestBeforeItBegan(t *testing.T) {
	if _, _, err := Apply(theK, nil, Entry{Do: Claim{}}); !errors.Is(err, ErrUnknownRun) {
		t.Fatal(err)
	}
	if _, _, err := Apply(theK, nil, Entry{Do: Begin{ID: checkpoint.RunID("no/path")}}); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
}

func TestRefusalsSayWhatWouldBeLegal(t *testing.T) {
	s := batch(t, true, Policy{})
	s.waits()
	_, err := s.try(s.fence, "k", Start{Call: "b", N: 1})
	var r *Refusal
	if !errors.As(err, &r) || strings.Join(r.Legal, " ") != "lose result resume" || !strings.Contains(err.Error(), "legal: lose, result, resume") {
		t.Fatalf("%v", err)
	}
}

// FuzzDecode: what a store holds is never trusted.
func FuzzDecode(f *testing.F) {
	s := &story{T: &testing.T{}, at: noon}
	s.do(0, "", Begin{ID: "run"})
	s.do(0, "", Commit{Message: Sum([]byte("m1")), Lineage: "l1", Calls: two})
	f.Add(Encode(s.run))
	f.Add([]byte(`{"V":2}`))
	f.Add([]byte(`{"V":1,"Run":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewer) {
				t.Fatal(err)
			}
			return
		}
		if a := Recover(r, Asker{}); a.Reason == "" {
			t.Fatalf("%+v", a)
		}
		for _, try := range tried {
			after, _, err := Apply(theK, r, Entry{At: noon, Fence: r.Fence, Key: "k", Do: try.act})
			if err == nil {
				if _, err := Decode(Encode(after)); err != nil {
					t.Fatalf("%s: %v", try.name, err)
				}
			}
		}
	})
}
