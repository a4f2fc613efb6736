package ledger

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

var (
	noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	theK = Key(checkpoint.Scope{1}, "run")
	two  = []Asked{{ID: "a", Name: "read", Args: Sum([]byte(`{"f":1}`))}, {ID: "b", Name: "pay", Args: Sum([]byte(`{"eur":5}`))}}
)

// story is a run under test. Whatever is tried, its input stays as it was, versions
// grow by one, repetitions change nothing and the result survives its encoding.
type story struct {
	*testing.T
	run   *Run
	fence uint64
	at    time.Time
	keys  int
}

func began(t *testing.T) *story {
	s := &story{T: t, at: noon}
	s.do(0, "", Begin{ID: "run"})
	s.claim()
	return s
}

// claim makes another process of the application the run's.
func (s *story) claim() {
	s.Helper()
	s.do(0, s.key(), Claim{Holder: "agent"})
	s.fence = s.run.Fence
}

func (s *story) key() string {
	s.keys++
	return fmt.Sprintf("key-%d", s.keys)
}

func (s *story) try(fence uint64, key string, a Act) (Effect, error) {
	s.Helper()
	before := s.run
	var was string
	if before != nil {
		was = string(Encode(before))
	}
	after, effect, err := Apply(theK, before, Entry{At: s.at, Fence: fence, Key: key, Do: a})
	if before != nil && string(Encode(before)) != was {
		s.Fatalf("%s changed its input", a.Name())
	}
	if err != nil {
		var r *Refusal
		if !errors.As(err, &r) || r.Detail == "" || after != before && before != nil {
			s.Fatalf("%s: %v is no refusal, or comes with another run", a.Name(), err)
		}
		return effect, err
	}
	switch {
	case effect == New && before != nil && after.Version != before.Version+1:
		s.Fatalf("%s: version %d after %d", a.Name(), after.Version, before.Version)
	case effect == Replayed && string(Encode(after)) != was:
		s.Fatalf("%s: a repetition changed the run", a.Name())
	}
	again, err := Decode(Encode(after))
	if err != nil || string(Encode(again)) != string(Encode(after)) {
		s.Fatalf("%s: the run does not survive its encoding: %v", a.Name(), err)
	}
	s.run = after
	return effect, nil
}

func (s *story) do(fence uint64, key string, a Act) {
	s.Helper()
	if effect, err := s.try(fence, key, a); err != nil || effect != New {
		s.Fatalf("%s: %v, %v", a.Name(), effect, err)
	}
}

// mine is do by the run's process, with a key of its own.
func (s *story) mine(a Act) {
	s.Helper()
	s.do(s.fence, s.key(), a)
}

// refused tries what must be refused as want, by the run's process.
func (s *story) refused(want error, a Act) {
	s.Helper()
	if _, err := s.try(s.fence, s.key(), a); !errors.Is(err, want) {
		s.Fatalf("%s: %v, want %v", a.Name(), err, want)
	}
}

// batch makes a run whose batch of two is open. The policy is that of call "b".
func batch(t *testing.T, reports bool, p Policy) *story {
	s := began(t)
	if declared := (Declare{Reports: reports, Policies: []ToolPolicy{{Tool: "pay", Policy: p}}}); reports || p != (Policy{}) {
		s.mine(declared)
	}
	s.do(0, "", Commit{Message: Sum([]byte("m1")), Lineage: "l1", Finish: "tool_calls", Calls: two})
	return s
}

// stand brings call "b" into a state. It has made that many attempts.
type stand struct {
	name     string
	attempts int
	bring    func(s *story)
}

var stands = []stand{
	{"requested", 0, func(*story) {}},
	{"executing(1)", 1, func(s *story) { s.starts(1) }},
	{"executing(2)", 2, func(s *story) { s.starts(2) }},
	{"executing(3)", 3, func(s *story) { s.starts(3) }},
	{"awaiting", 0, func(s *story) { s.waits() }},
	{"awaiting(1)", 1, func(s *story) { s.starts(1); s.waits() }},
	{"completed", 0, func(s *story) { s.mine(Result{Call: "b", Content: []byte("ok")}) }},
	{"indeterminate", 0, func(s *story) { s.mine(Lose{Call: "b", Why: "it may have run"}) }},
}

func (s *story) starts(n int) {
	for i := 1; i <= n; i++ {
		s.mine(Start{Call: "b", N: i})
	}
}

func (s *story) waits() {
	s.mine(Wait{Call: "b", Ticket: Ticket{ID: "t", Kind: "approval", Expires: noon.Add(time.Hour)}})
}

var policies = []Policy{{}, {Recovery: Replay}, {Recovery: Replay, Attempts: 2}, {Recovery: Reconnect}}

func (p Policy) String() string { return fmt.Sprintf("%s≤%d", p.Recovery, p.attempts()) }

// around brings the run that call "b" belongs to into a state.
type around struct {
	name  string
	bring func(s *story)
}

var arounds = []around{
	{"running", func(*story) {}},
	{"awaiting its own ticket", func(s *story) {
		// Only a commit makes a run with a batch wait as a whole.
		s.run = s.run.edit()
		if err := s.run.issue(Ticket{ID: "gate", Kind: "budget", Issued: s.at, Key: "gate"}); err != nil {
			s.Fatal(err)
		}
		w := &writing{Run: s.run}
		w.settle()
	}},
	{"ended", func(s *story) { s.mine(End{Cause: Stopped}) }},
}
