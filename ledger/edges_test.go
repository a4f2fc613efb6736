package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/internal/golden"
)

// tried are the acts on call "b", by its process, in every state.
var tried = []struct {
	name string
	act  Act
}{
	{"start(1)", Start{Call: "b", N: 1}},
	{"start(2)", Start{Call: "b", N: 2}},
	{"start(3)", Start{Call: "b", N: 3}},
	{"start(4)", Start{Call: "b", N: 4}},
	{"wait", Wait{Call: "b", Ticket: Ticket{ID: "other", Kind: "timer"}}},
	{"resume(its ticket)", Resume{Ticket: "t", Kind: "approval"}},
	{"resume(another kind)", Resume{Ticket: "t", Kind: "timer"}},
	{"result(same)", Result{Call: "b", Content: []byte("ok")}},
	{"result(another)", Result{Call: "b", Content: []byte("not ok")}},
	{"result(of attempt 1)", Result{Call: "b", Attempt: 1, Content: []byte("ok")}},
	{"lose", Lose{Call: "b", Why: "it may have run"}},
	{"commit", Commit{Message: Sum([]byte("m2")), Lineage: "l2"}},
	{"end", End{Cause: Stopped}},
	{"claim", Claim{Holder: "other"}},
	{"declare", Declare{Reports: true}},
}

// TestEveryEdge tries every act in every state of run and call under every policy
// and keeps what became of it: the whole table of legal edges, and by what name each
// of the others is refused.
func TestEveryEdge(t *testing.T) {
	var out strings.Builder
	for _, around := range arounds {
		for _, p := range policies {
			for _, st := range stands {
				if st.attempts > p.attempts() {
					continue
				}
				fmt.Fprintf(&out, "run %s · policy %s · call %s\n", around.name, p, st.name)
				for _, try := range tried {
					s := batch(t, true, p)
					st.bring(s)
					around.bring(s)
					from := s.run
					effect, err := s.try(s.fenceFor(try.act), s.key(), try.act)
					fmt.Fprintf(&out, "  %-22s %s\n", try.name, became(from, s.run, effect, err))
				}
			}
		}
	}
	golden.Compare(t, "testdata/edges.txt", []byte(out.String()))
}

func (s *story) fenceFor(a Act) uint64 {
	if _, ok := a.(Claim); ok {
		return 0
	}
	return s.fence
}

func became(from, to *Run, effect Effect, err error) string {
	var r *Refusal
	if errors.As(err, &r) {
		return "refused: " + strings.TrimPrefix(r.Err.Error(), "ledger: ") + " · legal: " + strings.Join(r.Legal, ", ")
	}
	if effect == Replayed {
		return "replayed"
	}
	_, c := to.find("b")
	_, was := from.find("b")
	s := fmt.Sprintf("%s → %s", was.State, c.State)
	if n := len(c.Attempts); c.State == Executing {
		s += fmt.Sprintf("(%d)", n)
	}
	if from.State != to.State {
		s += fmt.Sprintf(" · run %s → %s", from.State, to.State)
	}
	if to.Last().Finalized && !from.Last().Finalized {
		s += " · finalized"
	}
	return s
}

// TestEndedAbsorbs: whatever is told to an ended run, it stays as it is.
func TestEndedAbsorbs(t *testing.T) {
	for cause := Completed; cause <= Unknowable; cause++ {
		for _, st := range stands {
			s := batch(t, true, Policy{Recovery: Replay})
			st.bring(s)
			s.mine(End{Cause: cause})
			was := string(Encode(s.run))
			for _, try := range tried {
				_, err := s.try(s.fenceFor(try.act), s.key(), try.act)
				if string(Encode(s.run)) != was {
					t.Fatalf("%s after %s changed a run ended as %s (%v)", try.name, st.name, cause, err)
				}
			}
		}
	}
}
