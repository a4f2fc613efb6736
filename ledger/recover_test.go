package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/internal/golden"
)

// askers are the fence situations.
var askers = []struct {
	name string
	ask  func(s *story) Asker
}{
	{"nobody", func(*story) Asker { return Asker{} }},
	{"its process", func(s *story) Asker { return Asker{Fence: s.fence} }},
	{"its successor", func(s *story) Asker { s.claim(); return Asker{Fence: s.fence} }},
	{"one that was succeeded", func(s *story) Asker { was := s.fence; s.claim(); return Asker{Fence: was} }},
	{"a successor, store in doubt", func(s *story) Asker { s.claim(); return Asker{Fence: s.fence, Doubt: "a fail-over"} }},
}

// TestEveryRecovery is the decision table: run state × call state × policy × fence
// situation × whether attempts are reported, each with an explained answer.
func TestEveryRecovery(t *testing.T) {
	var out strings.Builder
	for _, reports := range []bool{true, false} {
		for _, around := range arounds {
			for _, p := range policies {
				for _, st := range stands {
					if st.attempts > p.attempts() {
						continue
					}
					fmt.Fprintf(&out, "reports %v · run %s · policy %s · call %s\n", reports, around.name, p, st.name)
					for _, asker := range askers {
						s := batch(t, reports, p)
						s.mine(Result{Call: "a", Content: []byte("file")})
						st.bring(s)
						around.bring(s)
						if s.run.State == Ended && strings.Contains(asker.name, "succe") {
							continue // an ended run is not claimed
						}
						a := Recover(s.run, asker.ask(s))
						sane(t, s.run, a)
						fmt.Fprintf(&out, "  %-28s %s\n", asker.name, told(a))
					}
				}
			}
		}
	}
	golden.Compare(t, "testdata/recover.txt", []byte(out.String()))
}

// sane holds an answer against the laws of DESIGN §9.
func sane(t *testing.T, r *Run, a Answer) {
	t.Helper()
	if a.Reason == "" {
		t.Fatalf("%s without a reason", a.Advice)
	}
	for _, c := range a.Calls {
		_, call := r.find(c.Op)
		switch {
		case c.Reason == "":
			t.Fatalf("call %s: %s without a reason", c.ID, c.Advice)
		case call.State.Terminal() != (c.Advice == Keep):
			t.Fatalf("call %s is %s and the advice is %s", c.ID, call.State, c.Advice)
		case c.Advice == Execute && !r.Reports:
			t.Fatalf("call %s is to be executed though attempts are not reported", c.ID)
		case c.Advice == ReplayCall && call.Policy.Recovery != Replay, c.Advice == ReconnectCall && call.Policy.Recovery != Reconnect:
			t.Fatalf("call %s: %s under %s", c.ID, c.Advice, call.Policy)
		case c.Attempt > call.Policy.attempts():
			t.Fatalf("call %s: attempt %d of %s", c.ID, c.Attempt, call.Policy)
		}
	}
}

func told(a Answer) string {
	s := a.Advice.String()
	if a.Claim {
		s += " (claim first)"
	}
	for _, c := range a.Calls {
		if c.ID != "b" {
			continue
		}
		s += " · " + c.Advice.String()
		if c.Attempt != 0 {
			s += fmt.Sprintf("(%d)", c.Attempt)
		}
		return s + ": " + c.Reason
	}
	return s + ": " + a.Reason
}

func TestARunOfWhichNothingIsKnown(t *testing.T) {
	for _, by := range []Asker{{}, {Fence: 7}, {Doubt: "no answer"}} {
		if a := Recover(nil, by); a.Advice != Unknown || a.Reason == "" {
			t.Errorf("%+v: %+v", by, a)
		}
	}
}

// TestNoBatchIsOpen: before the first step and between two, the next inference is
// due, unless the run waits or what is stored may not be the last word.
func TestNoBatchIsOpen(t *testing.T) {
	s := began(t)
	want := func(by Asker, advice Advice) {
		t.Helper()
		if a := Recover(s.run, by); a.Advice != advice {
			t.Fatalf("%+v: %+v", by, a)
		}
	}
	want(Asker{Fence: s.fence}, NextStep)
	want(Asker{Fence: s.fence, Doubt: "a fail-over"}, Unknown)
	want(Asker{Fence: s.fence - 1}, StandDown)
	s.mine(Wait{Ticket: Ticket{ID: "t", Kind: "user"}})
	want(Asker{Fence: s.fence}, AwaitTicket)
	s.mine(Resume{Ticket: "t", Kind: "user"})
	want(Asker{Fence: s.fence}, NextStep)
	s.do(0, "", Commit{Message: Sum([]byte("m")), Calls: two[:1]})
	s.do(0, "", Result{Call: "a", Digest: Sum([]byte("r"))})
	want(Asker{Fence: s.fence}, NextStep)
	s.do(0, "", Commit{Message: Sum([]byte("bye"))})
	want(Asker{}, Redeliver)
	want(Asker{Doubt: "a fail-over"}, Redeliver)
}
