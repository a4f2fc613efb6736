package relay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// A proxy is killed at event boundaries of every recording (all of them: make battery); the client sends
// its request again, and another process carries the turn on from the checkpoint.
// What the client gets is one message, equal to the uncut one, or the turn ended as
// tool use with the calls that were complete.
func TestKilledEverywhereMessages(t *testing.T) {
	messages.killedEverywhere(t, relaytest.World.Resume, relaytest.Recordings(t, messages.fallback, messages.named, messages.folders...))
}

func TestKilledEverywhereChat(t *testing.T) {
	chat.killedEverywhere(t, relaytest.World.Resume, relaytest.Recordings(t, chat.fallback, chat.named, chat.folders...))
}

func TestKilledEverywhereResponses(t *testing.T) {
	responses.killedEverywhere(t, relaytest.World.Resume, responsesRecordings(t))
}

func TestKilledEverywhereGemini(t *testing.T) {
	generate.killedEverywhere(t, relaytest.World.Resume, relaytest.Recordings(t, generate.fallback, generate.named, generate.folders...))
}

func TestKilledEverywhereGeminiArray(t *testing.T) {
	generateArray.killedEverywhere(t, relaytest.World.Resume, arrays(t))
}

// again is how a turn is carried on whose process is gone.
type again func(w relaytest.World, request, log []byte, p relaytest.Provider) (relaytest.Result, error)

func (f family) killedEverywhere(t *testing.T, on again, recs []relaytest.Recording) {
	for _, r := range recs {
		if f.skip[r.Name] != "" {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			f := f // each its own: what reads a stray reads nothing else
			if _, ok := f.strays[r.Name]; ok {
				f.read = f.readOwn
			}
			want, err := f.read(r.Stream())
			if err != nil {
				t.Logf("not comparable: %v", err)
				return
			}
			f.killed(t, r, want, on)
		})
	}
}

func (f family) killed(t *testing.T, r relaytest.Recording, want message, on again) {
	snap, _, err := relaytest.Fold(f.d, mustParse(f.d, r.Request), r.Stream())
	if err != nil {
		t.Fatal(err)
	}
	answer := relaytest.AnswerOf(snap)
	own, _, err := relaytest.Asked(r.Request)
	if err != nil {
		own = ""
	}
	var n tally
	bounds := boundaries(r)
	if !*everyBoundary {
		bounds = sampled(bounds, boundaryCasesEach)
	}
	for i, at := range bounds {
		c := scenario{rec: r, at: at, cut: cut{name: "kill -9"}, target: targets[i%len(targets)], seam: relaytest.Honest}
		w := relaytest.World{Dialect: f.d, Config: relay.Config{
			Targets: []relay.Target{{Name: "test", Ability: c.target.ability}},
			Flush:   1, // every step: what is checkpointed is what was said
		}}
		dead, err := w.Kill(r.Request, func(relaytest.Request) relaytest.Reply {
			return relaytest.Reply{Chunks: pieces(r.Stream()[:at]), Hang: true}
		})
		if err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		if dead.End != relay.Open {
			continue // it had ended
		}
		res, err := on(w, r.Request, dead.Log, func(q relaytest.Request) relaytest.Reply {
			if !q.Derived {
				return relaytest.Reply{Chunks: relaytest.Renamed(r.Units)}
			}
			rest, err := relaytest.Continue(answer, q.Body, own, relaytest.Honest, "[[COMPLETE]]")
			if err != nil {
				t.Errorf("%v: %v", c, err)
			}
			o := f.options(r)
			o.Seed, o.ID = uint64(q.N), fmt.Sprintf("again_%d", q.N)
			return relaytest.Reply{Chunks: f.render(rest, o)}
		})
		if err == nil && res.Broken != "" {
			err = fmt.Errorf("law: %s", res.Broken)
		}
		if err == nil {
			err = f.judge(c, res, want, &n)
		}
		if err == nil {
			err = checkpointed(f.d, r.Request, res)
		}
		if err != nil {
			t.Fatalf("%v: %v\nplans %v", c, err, res.Plans())
		}
	}
	t.Logf("%v", n)
}

// checkpointed compares the text of the checkpoint with what the client has.
func checkpointed(d dialect.Dialect, req []byte, res relaytest.Result) error {
	if res.Head == nil || !res.Head.Stream || res.End != relay.Clean {
		return nil
	}
	has, _, err := relaytest.Fold(d, mustParse(d, req), res.Body)
	if err != nil {
		return err
	}
	kept, err := turn.Replay(res.Log)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if a, b := string(has.Prose()), string(kept.Prose()); a != b && !strings.HasPrefix(a, b) {
		return fmt.Errorf("checkpoint holds %q, the client has %q", b, a)
	}
	if a, _ := has.Calls(); a > 0 {
		if b, _ := kept.Calls(); a != b {
			return fmt.Errorf("checkpoint holds %d calls, the client has %d", b, a)
		}
	}
	return nil
}
