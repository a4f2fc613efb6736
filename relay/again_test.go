package relay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// Who replays a turn that had ended, or follows one to its end, tells the same turn as
// whoever drove it: two connections may both tell the ledger, and it is one fact.
func TestATurnIsTheSameWhoeverTellsIt(t *testing.T) {
	for _, f := range []family{messages, chat, generate, responses, interact, converse} {
		t.Run(f.name, func(t *testing.T) {
			told := 0
			for _, r := range relaytest.Recordings(t, f.fallback, f.named, f.folders...) {
				if f.skip[r.Name] != "" {
					continue
				}
				w := relaytest.World{Dialect: f.d, Config: relay.Config{Flush: 1}}
				first, err := w.Run(r.Request, func(relaytest.Request) relaytest.Reply {
					return relaytest.Reply{Chunks: pieces(r.Stream())}
				})
				if err != nil {
					t.Fatal(err)
				}
				if first.Turn == nil {
					continue
				}
				if first.Again {
					t.Errorf("%s: who drives a turn tells it as somebody else's", r.Name)
				}
				told++
				nobody := func(relaytest.Request) relaytest.Reply {
					t.Errorf("%s: the provider was asked", r.Name)
					return relaytest.Reply{}
				}
				followed, err := w.Follow(r.Request, first.Log, 61, nobody)
				if err != nil {
					t.Fatalf("%s: %v", r.Name, err)
				}
				resumed, err := w.Resume(r.Request, first.Log, nobody)
				if err != nil {
					t.Fatalf("%s: %v", r.Name, err)
				}
				want := factsOf(first.Turn)
				for how, res := range map[string]relaytest.Result{"followed": followed, "resumed": resumed} {
					if res.End != relay.Clean {
						t.Logf("%s, %s: it cannot be replayed: %v", r.Name, how, res.Outcome())
						continue
					}
					if res.Turn == nil || !res.Again {
						t.Errorf("%s, %s: it is told as %v, again %v", r.Name, how, res.Turn, res.Again)
					} else if got := factsOf(res.Turn); got != want {
						t.Errorf("%s, %s: it is told as\n%s\nwant\n%s", r.Name, how, got, want)
					}
				}
			}
			if told == 0 {
				t.Error("no recording is of a turn that ended")
			}
		})
	}
}

// factsOf are what a ledger knows a turn by.
func factsOf(s *turn.Snapshot) string {
	var b strings.Builder
	for i := range s.Blocks {
		if k := &s.Blocks[i]; k.Live() {
			fmt.Fprintf(&b, "%d %q %q %q call %t, complete %t\n", k.Kind, k.ID, k.Name, k.Text, k.IsCall(), k.Complete())
		}
	}
	e := s.End()
	return b.String() + fmt.Sprintf("%v %s", e.Why, e.Reason)
}
