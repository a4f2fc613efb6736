package ledger

import (
	"fmt"
	"testing"
)

// A turn that had ended before its teller came to it is the run's only if that awaits
// it. It may be long past, and then nothing changes: it opens no batch again, and takes
// the place of none.
func TestATurnThatMayBeLongPast(t *testing.T) {
	settled := func(s *story) {
		s.mine(Result{Call: "a", Content: []byte("file")})
		s.mine(Result{Call: "b", Content: []byte("paid")})
	}
	turn := func(n int, prior string) Commit {
		return Commit{Message: Sum(fmt.Appendf(nil, "m%d", n)), Lineage: fmt.Sprint("l", n), Prior: prior, Again: true, Calls: two}
	}
	for _, tt := range []struct {
		name  string
		bring func(s *story) // from a run whose first turn has an open batch
		a     Commit
		want  Effect
		err   error
	}{
		{"the next turn", settled, turn(2, "l1"), New, nil},
		{"the next turn, by the alias of the last", func(s *story) {
			settled(s)
			s.do(0, "", Commit{Message: Sum([]byte("m2")), Lineage: "l2", Alias: "r2", Paused: true})
		}, turn(3, "r2"), New, nil},
		{"one that was asked for, whatever it goes on from", func(s *story) { settled(s); s.do(0, "", Infer{Lineage: "l2"}) }, turn(2, "compacted"), New, nil},
		{"one that nobody asked for and that goes on from nothing here", settled, turn(2, "compacted"), Replayed, nil},
		{"one that goes on from nothing", settled, turn(2, ""), Replayed, nil},
		{"the last turn", func(*story) {}, turn(1, ""), Replayed, nil},
		{"the last turn, said otherwise", func(*story) {}, Commit{Message: Sum([]byte("other")), Lineage: "l1", Again: true, Supersede: true, Calls: two}, Replayed, nil},
		{"the last turn, when its batch is finalized", settled, turn(1, ""), Replayed, nil},
		{"the turn before the last", func(s *story) {
			settled(s)
			s.do(0, "", Commit{Message: Sum([]byte("m2")), Lineage: "l2", Paused: true})
		}, turn(1, ""), Replayed, nil},
		{"another answer to what was answered", func(s *story) {
			settled(s)
			s.do(0, "", Commit{Message: Sum([]byte("m2")), Lineage: "l2", Paused: true})
		},
			Commit{Message: Sum([]byte("other")), Lineage: "l2", Prior: "l1", Again: true, Calls: two}, Replayed, nil},
		{"an old turn whose history is asked for anew", func(s *story) {
			settled(s)
			s.do(0, "", Commit{Message: Sum([]byte("m2")), Lineage: "l2", Paused: true})
			s.do(0, "", Infer{Lineage: "l1"})
		}, turn(1, ""), Replayed, nil},
		{"the next turn while the batch is open", func(*story) {}, turn(2, "l1"), 0, ErrIllegal},
		{"any turn of a run that has ended", func(s *story) { s.mine(End{Cause: Stopped}) }, turn(2, "l1"), Replayed, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := batch(t, true, Policy{})
			tt.bring(s)
			steps := len(s.run.Steps)
			if tt.err != nil {
				s.refused(tt.err, tt.a)
				return
			}
			if effect, err := s.try(0, "", tt.a); err != nil || effect != tt.want {
				t.Fatalf("%s, %v", effect, err)
			}
			if tt.want == New && len(s.run.Steps) != steps+1 {
				t.Errorf("%d steps behind %d", len(s.run.Steps), steps)
			}
		})
	}
	s := began(t)
	s.do(0, "", turn(5, "l4")) // a run without steps lacks whatever is told of it first
}

// A turn that two connections tell of is one step, also when the run has come further by
// the time the slower one is heard. What was said before it was asked for is not it.
func TestATurnThatIsToldLate(t *testing.T) {
	s := batch(t, true, Policy{})
	s.mine(Result{Call: "a", Content: []byte("file")})
	s.mine(Result{Call: "b", Content: []byte("paid")})
	s.do(0, "", Commit{Message: Sum([]byte("m2")), Lineage: "l2", Calls: two[:1]})
	first := Commit{Message: Sum([]byte("m1")), Lineage: "l1", Calls: two}
	if effect, err := s.try(0, "", first); err != nil || effect != Replayed {
		t.Fatalf("while the next batch is open: %s, %v", effect, err)
	}
	s.mine(Result{Call: "a", Content: []byte("file")})
	if effect, err := s.try(0, "", first); err != nil || effect != Replayed {
		t.Fatalf("when the next batch is finalized: %s, %v", effect, err)
	}
	first.Since = 2
	s.do(0, "", first)
	if last := s.run.Last(); last.N != 3 || last.Finalized {
		t.Errorf("the same turn, asked for anew, is step %d", last.N)
	}
}

// What may be long past is not noted as missing where it is not.
func TestAnOldTurnIsNotMissing(t *testing.T) {
	s := batch(t, false, Policy{})
	s.mine(Result{Call: "a", Content: []byte("file")})
	s.mine(Result{Call: "b", Content: []byte("paid")})
	s.do(0, "", Commit{Message: Sum([]byte("m2")), Lineage: "l2", Paused: true})
	if effect, err := s.try(0, "", Infer{Lineage: "l1", Again: true}); err != nil || effect != Replayed {
		t.Errorf("%s, %v", effect, err)
	}
	s.do(0, "", Infer{Lineage: "l3", Again: true})
	s.do(0, "", Infer{Lineage: "l1"}) // its history is asked for anew
}
