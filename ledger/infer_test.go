package ledger

import (
	"fmt"
	"strings"
	"testing"
)

// A turn is asked for before it is told. Until it is recorded nobody may be told to go
// on as if it had never been, unless the application announces what it begins.
func TestAnInferenceWithoutATurnIsNotForgotten(t *testing.T) {
	for _, reports := range []bool{true, false} {
		s := batch(t, reports, Policy{})
		advice := func(want Advice) {
			t.Helper()
			a := Recover(s.run, Asker{Fence: s.fence})
			if reports && want == Unknown {
				want = NextStep
			}
			if a.Advice != want || want == Unknown && !strings.Contains(a.Reason, "turn is not recorded") {
				t.Errorf("reports %v: %s: %s, want %s", reports, a.Advice, a.Reason, want)
			}
		}
		s.do(0, "", Infer{Lineage: "l2"})
		s.mine(Result{Call: "a", Content: []byte("file")})
		s.mine(Result{Call: "b", Content: []byte("paid")})
		advice(Unknown)
		s.do(0, "", Lapse{Lineage: "l2"})
		advice(NextStep)
		s.do(0, "", Infer{Lineage: "l2"})
		s.do(0, "", Infer{Lineage: "l3"})
		s.do(0, "", Lapse{Lineage: "l3"})
		advice(Unknown)
		s.do(0, "", Commit{Message: Sum([]byte("m2")), Lineage: "l2", Paused: true})
		advice(NextStep)
		if len(s.run.Pending) != 0 {
			t.Errorf("%q is pending behind a step", s.run.Pending)
		}
	}
}

// What is recorded was not lost, and what was noted twice is taken back once.
func TestInferencesAreNotedOnce(t *testing.T) {
	s := batch(t, false, Policy{})
	again := func(a Act) {
		t.Helper()
		if effect, err := s.try(0, "", a); err != nil || effect != Replayed {
			t.Errorf("%s: %s, %v", a.Name(), effect, err)
		}
	}
	again(Infer{Lineage: "l1"}) // the open batch is its turn
	s.do(0, "", Infer{Lineage: "l2"})
	again(Infer{Lineage: "l2"})
	again(Lapse{Lineage: "l3"})
	s.do(0, "", Lapse{Lineage: "l2"})
	again(Lapse{Lineage: "l2"})
	s.refused(ErrInvalid, Infer{})
	s.refused(ErrInvalid, Infer{Lineage: strings.Repeat("l", MaxName+1)})
	s.mine(End{Cause: Completed})
	s.refused(ErrEnded, Infer{Lineage: "l2"})
	again(Lapse{Lineage: "l2"})
}

// More inferences than a record has room for are not forgotten when those lapse that
// it had room for.
func TestMoreInferencesThanThereIsRoomFor(t *testing.T) {
	s := batch(t, false, Policy{})
	s.mine(Lose{Call: "a", Why: "x"})
	s.mine(Lose{Call: "b", Why: "x"})
	for i := range MaxPending {
		s.do(0, "", Infer{Lineage: fmt.Sprint("n", i)})
	}
	if effect, err := s.try(0, "", Infer{Lineage: "one more"}); err != nil || effect != Replayed || len(s.run.Pending) != MaxPending {
		t.Fatalf("%s, %v: %q", effect, err, s.run.Pending)
	}
	for i := range MaxPending - 1 {
		s.do(0, "", Lapse{Lineage: fmt.Sprint("n", i)})
	}
	_, _ = s.try(0, "", Lapse{Lineage: fmt.Sprint("n", MaxPending-1)})
	_, _ = s.try(0, "", Lapse{})
	if a := Recover(s.run, Asker{}); a.Advice != Unknown {
		t.Errorf("%s: %s", a.Advice, a.Reason)
	}
}
