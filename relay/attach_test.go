package relay_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/interactions"
	"github.com/unbroken-llm/unbroken/dialect/openairesponses"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// keeper is a provider that holds what it generates, as a story needs it.
type keeper struct {
	name    string
	d       dialect.Dialect
	request string
	held    relaytest.Held
	table   string // of docs/SUPPORT.md
}

// named reads a string or a number of an event's data.
func named(path ...string) func([]byte) string {
	return func(unit []byte) string {
		_, data, _ := bytes.Cut(unit, []byte("data: "))
		v := jsonwalk.Get(bytes.TrimSpace(data), path...)
		if s, ok := jsonwalk.String(v); ok {
			return string(s)
		}
		return string(v)
	}
}

// keepers are the recorded generations that a provider holds: Responses in the
// background, as recorded, and Interactions, as recorded and with the ids of events
// that the API's reference tells of.
func keepers(t *testing.T) (all []keeper) {
	for _, r := range responsesRecordings(t) {
		if !strings.Contains(r.Name, "background_mode") || responses.skip[r.Name] != "" {
			continue
		}
		all = append(all, keeper{
			name: r.Name, d: openairesponses.Dialect{}, request: string(r.Request), table: responses.as(),
			held: relaytest.Held{ID: named("response", "id")(r.Units[0]), Units: r.Units, Param: "starting_after", Name: named("sequence_number"), Status: 404},
		})
	}
	for _, r := range relaytest.Recordings(t, `{"model":"gemini-3-pro","stream":true,"input":"go on"}`, nil, "gemini-interactions") {
		if !bytes.Contains(r.Stream(), []byte("[DONE]")) { // the recording's lines hold payloads only
			r.Units = append(r.Units, []byte("event: done\ndata: [DONE]\n\n"))
		}
		k := keeper{
			name: r.Name, d: interactions.Dialect{}, request: string(r.Request), table: interactKept.as(),
			held: relaytest.Held{ID: named("interaction", "id")(r.Units[0]), Units: r.Units, Param: "last_event_id", Name: named("event_id"), Status: 404},
		}
		all = append(all, k)
		k.name += " with event ids"
		k.held.Units = nil
		for i, u := range r.Units {
			if !bytes.Contains(u, []byte("[DONE]")) {
				u = bytes.Replace(u, []byte("data: {"), fmt.Appendf(nil, `data: {"event_id":"e %d/%%",`, i), 1)
			}
			k.held.Units = append(k.held.Units, u)
		}
		all = append(all, k)
	}
	if len(all) < 6 {
		t.Fatalf("%d recordings of held generations", len(all))
	}
	return all
}

func (k keeper) world() relaytest.World {
	return relaytest.World{Dialect: k.d, Config: relay.Config{
		Targets: []relay.Target{{Name: "test", Ability: dialect.Ability{Manners: []turn.Manner{turn.Asked}}}},
		Flush:   1,
	}}
}

// turns are the columns of that table that the generation belongs to.
func (k keeper) turns() []string {
	req := mustParse(k.d, []byte(k.request))
	s, _, _ := relaytest.Fold(k.d, req, k.stream())
	return turnsOf(req, s)
}

func (k keeper) stream() []byte { return bytes.Join(k.held.Units, nil) }

// cuts are places in the stream between two events, each followed by one inside the
// event behind it.
func (k keeper) cuts() (at []int) {
	places := boundaries(relaytest.Recording{Units: k.held.Units})
	if !*everyBoundary {
		places = sampled(places, 20)
	}
	n := 0
	for _, u := range k.held.Units {
		if slices.Contains(places, n) {
			at = append(at, n, n+len(u)/3)
		}
		n += len(u)
	}
	return at
}

// only runs a request whose provider is asked for nothing but what it holds.
func (k keeper) only(t *testing.T, h relaytest.Held) relaytest.Result {
	t.Helper()
	res, err := k.world().Run([]byte(k.request), func(q relaytest.Request) relaytest.Reply {
		r, ok := h.Answer(q)
		if !ok {
			t.Errorf("attempt %d asks for %s", q.N, q.Body)
		}
		return r
	})
	if err == nil && res.Broken != "" {
		err = fmt.Errorf("law: %s", res.Broken)
	}
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// silent is a stream without signs of life of ours.
func (k keeper) silent(stream []byte) (out []byte) {
	said, _, _ := relaytest.Fold(k.d, mustParse(k.d, []byte(k.request)), k.held.Units[0])
	beat := k.d.Heartbeat(nil, mustParse(k.d, []byte(k.request)), said)
	for _, u := range relaytest.Units(stream) {
		if !bytes.Equal(u, beat) {
			out = append(out, u...)
		}
	}
	return out
}

// whole fails unless the client got the generation, byte for byte.
func (k keeper) whole(t *testing.T, what string, res relaytest.Result) {
	t.Helper()
	if got := k.silent(res.Body); res.End != relay.Clean || !bytes.Equal(got, k.stream()) {
		t.Fatalf("%s: end %v, %s, plans %v\ngot  %s\nwant %s", what, res.End, res.Outcome(), res.Plans(), got, k.stream())
	}
}

// ended reports whether a cut lies behind the semantic end, where nothing is asked of
// anybody.
func (k keeper) ended(at int) bool {
	s, _, _ := relaytest.Fold(k.d, mustParse(k.d, []byte(k.request)), bytes.Join(relaytest.Units(k.stream()[:at]), nil))
	return s.Finished()
}

// A generation that its provider holds is cut everywhere, by everything, once or
// several times: the client gets its bytes, and nothing is generated again.
func TestHeldIsByteEqualWhereverItIsCut(t *testing.T) {
	ways := []struct {
		name  string
		whole bool // between two events only
		tell  func(h *relaytest.Held)
	}{
		{"reset", false, func(h *relaytest.Held) { h.End.How = interrupt.Reset }},
		{"polite end", false, func(h *relaytest.Held) { h.End.How = interrupt.EOF }},
		{"stall", false, func(h *relaytest.Held) { h.Hang = true }},
		{"garbage", true, func(h *relaytest.Held) { h.Extra = []byte("data: {\"garbage\n\n") }},
		{"end marker", true, func(h *relaytest.Held) { h.Extra = []byte("data: [DONE]\n\n") }},
		{"reset, and replayed from its start", false, func(h *relaytest.Held) { h.End.How, h.Replays = interrupt.Reset, true }},
	}
	for _, k := range keepers(t) {
		t.Run(k.name, func(t *testing.T) {
			of := k.turns()
			for i, at := range k.cuts() {
				if at < len(k.held.Units[0]) || k.ended(at) {
					continue
				}
				for _, w := range ways {
					if w.whole && i%2 == 1 {
						continue
					}
					h := k.held
					h.Cuts = []int{at}
					w.tell(&h)
					res := k.only(t, h)
					k.whole(t, fmt.Sprintf("cut at %d by %s", at, w.name), res)
					if n := len(res.Requests); n > 2 {
						t.Fatalf("cut at %d by %s: %d attempts", at, w.name, n)
					}
					if p := res.Plans(); len(res.Requests) == 2 && (len(p) != 1 || p[0] != "resume(provider_holds_generation)") {
						t.Fatalf("cut at %d by %s: plans %v", at, w.name, p)
					}
					if len(res.Abandoned) > 0 {
						t.Fatalf("cut at %d by %s: what was read to its end was cancelled: %+v", at, w.name, res.Abandoned)
					}
					seen.note(k.table, of, res)
				}
			}
		})
	}
	if !t.Failed() {
		seen.played("held")
	}
}

// The connections that attach are cut as well, at every place that the one before has
// reached or passed.
func TestHeldIsAttachedToAgainAndAgain(t *testing.T) {
	for _, k := range keepers(t) {
		t.Run(k.name, func(t *testing.T) {
			all := k.cuts()
			for i, at := range all {
				if at < len(k.held.Units[0]) || k.ended(at) {
					continue
				}
				for j := i; j < len(all); j += 3 {
					if k.ended(all[j]) {
						break
					}
					h := k.held
					h.End.How, h.Replays = interrupt.Reset, j%2 == 1
					h.Cuts = []int{at, all[j], all[j]}
					k.whole(t, fmt.Sprintf("cut at %v", h.Cuts), k.only(t, h))
				}
			}
		})
	}
}

// The price of attaching is that of any recovery, and nothing is paid again.
func TestAttachingCostsARecoveryAndNoTokens(t *testing.T) {
	k := keepers(t)[0]
	h := k.held
	h.End.How = interrupt.Reset
	h.Cuts = []int{len(k.stream()) / 2}
	sum := k.only(t, h).Notes
	if s := sum[len(sum)-1].Summary; s.Recoveries != 1 || s.Attempts != 2 || s.Repaid != 0 {
		t.Errorf("%+v", s)
	}
	for range 6 {
		h.Cuts = append(h.Cuts, h.Cuts[0])
	}
	res := k.only(t, h)
	if res.End != relay.Abort || res.Outcome() != "failed:budget_spent" || len(res.Requests) != 4 {
		t.Errorf("a provider that never goes on: %v %s, %d attempts", res.End, res.Outcome(), len(res.Requests))
	}
	if len(res.Abandoned) > 0 {
		t.Errorf("the caller's retry would find it cancelled: %+v", res.Abandoned)
	}
	for i := 2; i < len(res.Requests); i++ {
		if !res.Requests[i].At.After(res.Requests[i-1].At) {
			t.Errorf("attempt %d did not wait", res.Requests[i].N)
		}
	}
}

// A client that leaves ends the generation that would go on without it. A process that
// stops does not: another one will find it.
func TestHeldIsCancelledWithItsClientOnly(t *testing.T) {
	for _, k := range keepers(t) {
		t.Run(k.name, func(t *testing.T) {
			cancels := k.d.Name() == "responses" // these interactions are not in the background
			w := k.world()
			w.LeaveAfter = len(k.held.Units[0]) + len(k.held.Units[1])
			res, err := w.Run([]byte(k.request), func(q relaytest.Request) relaytest.Reply {
				r, _ := k.held.Answer(q)
				return r
			})
			if err != nil || res.Outcome() != "client_gone" {
				t.Fatalf("%v, %s", err, res.Outcome())
			}
			switch a := res.Abandoned; {
			case !cancels && len(a) > 0, cancels && (len(a) != 1 || a[0].Method != "POST" || a[0].Below != "/"+k.held.ID+"/cancel"):
				t.Errorf("abandoned %+v", a)
			}
			if said, err := turn.Replay(res.Log); err != nil || cancels && said.Held != "" {
				t.Errorf("the log still names what was cancelled: %v %q", err, said.Held)
			}
			now := time.Unix(1_800_000_000, 0)
			req := mustParse(k.d, []byte(k.request))
			s, _ := relay.New(w.Config, k.d, req, []byte(k.request), now)
			s.Step(now, relay.Opened{Attempt: 1, Status: 200, Header: relaytest.Reply{}})
			s.Feed(now, 1, k.stream()[:len(k.stream())/2])
			if fx := s.Step(now, relay.Stop{Reason: "drain"}); fx.Abandon != nil || fx.End == relay.Open {
				t.Errorf("a process that stops cancels %+v, ends %v", fx.Abandon, fx.End)
			}
		})
	}
}

// A process dies at every place; its successor attaches, and the new client gets the
// whole of it as the provider tells it again, byte for byte. So does one whose own
// connection is cut in the middle of that.
func TestHeldIsTakenOverByteEqual(t *testing.T) {
	for _, k := range keepers(t) {
		t.Run(k.name, func(t *testing.T) {
			for i, at := range k.cuts() {
				if at < len(k.held.Units[0]) || k.ended(at) {
					continue
				}
				dead := k.killed(t, at)
				for _, cuts := range [][]int{nil, {at}, {at / 2}, {len(k.stream()) * (i + 1) / (2*len(k.held.Units) + 2)}} {
					h := k.held
					h.Cuts, h.End.How = cuts, interrupt.Reset
					what := fmt.Sprintf("killed at %d, then cut at %v", at, cuts)
					res, err := k.world().Resume([]byte(k.request), dead.Log, func(q relaytest.Request) relaytest.Reply {
						r, ok := h.Answer(q)
						if q.Method == "" || !ok {
							t.Fatalf("%s: attempt %d asks for %q", what, q.N, q.Body)
						}
						return r
					})
					if err == nil && res.Broken != "" {
						err = fmt.Errorf("law: %s", res.Broken)
					}
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					k.whole(t, what, res)
					if err := checkpointed(k.d, []byte(k.request), res); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					kept, err := turn.Replay(res.Log)
					if err != nil || !kept.Finished() {
						t.Fatalf("%s: the log does not hold the end: %v", what, err)
					}
				}
			}
		})
	}
}

// killed is a process that dies when the provider has said so much.
func (k keeper) killed(t *testing.T, at int) relaytest.Result {
	t.Helper()
	h := k.held
	h.Cuts, h.Hang = []int{at}, true
	dead, err := k.world().Kill([]byte(k.request), func(q relaytest.Request) relaytest.Reply {
		r, _ := h.Answer(q)
		return r
	})
	if err != nil {
		t.Fatal(err)
	}
	return dead
}

// What the provider does not hold any more is gone on with as with any other: the
// answer to a cursor, whatever it is, is free, and the client never hears of it.
func TestWhatIsNotHeldAnyMoreIsContinued(t *testing.T) {
	for _, k := range keepers(t)[:1] {
		want, err := responses.read(k.stream())
		if err != nil {
			t.Fatal(err)
		}
		snap, _, err := relaytest.Fold(k.d, mustParse(k.d, []byte(k.request)), k.stream())
		if err != nil {
			t.Fatal(err)
		}
		answer := relaytest.AnswerOf(snap)
		refusals := map[string]relaytest.Reply{
			"404":        {Status: 404, Chunks: [][]byte{[]byte(`{"error":{"message":"Response with id not found.","type":"invalid_request_error"}}`)}},
			"400":        {Status: 400, Chunks: [][]byte{[]byte(`{"error":{"message":"This response can no longer be streamed.","type":"invalid_request_error"}}`)}},
			"403":        {Status: 403},
			"405":        {Status: 405},
			"a document": {Chunks: [][]byte{[]byte(`{"id":"resp_1","status":"completed"}`)}},
			"a page":     {Chunks: [][]byte{[]byte(`<html>`)}},
			"nothing":    {},
			"garbage":    {Chunks: [][]byte{[]byte("data: {\"garbage\n\n")}},
		}
		for name, refusal := range refusals {
			t.Run(k.name+"/"+name, func(t *testing.T) {
				for _, at := range k.cuts() {
					if at < len(k.held.Units[0]) || k.ended(at) {
						continue
					}
					for _, dies := range []bool{false, true} {
						asked := 0
						provider := func(q relaytest.Request) relaytest.Reply {
							h := k.held
							h.Cuts, h.End.How = []int{at}, interrupt.Reset
							switch r, first := h.Answer(q); {
							case q.Method == "GET":
								asked++
								return refusal
							case first && !dies:
								return r
							case !q.Derived:
								return relaytest.Reply{Chunks: relaytest.Renamed(k.held.Units)}
							}
							rest, err := relaytest.Continue(answer, q.Body, "", relaytest.Honest, "[[COMPLETE]]")
							if err != nil {
								t.Fatal(err)
							}
							return relaytest.Reply{Chunks: relaytest.RenderResponses(rest, faultinject.Options{Model: "gpt-4o", ID: "again"})}
						}
						w := k.world()
						w.Dialect = strictResponses{}
						var res relaytest.Result
						var err error
						if dies {
							res, err = w.Resume([]byte(k.request), k.killed(t, at).Log, provider)
						} else {
							res, err = w.Run([]byte(k.request), provider)
						}
						if err == nil && res.Broken != "" {
							err = fmt.Errorf("law: %s", res.Broken)
						}
						if err != nil {
							t.Fatalf("cut at %d: %v", at, err)
						}
						got, err := responses.read(res.Body)
						if err != nil || got.String() != want.String() || asked != 1 {
							t.Fatalf("cut at %d, dies %v: %v, asked %d times, plans %v\n got %v\nwant %v", at, dies, err, asked, res.Plans(), got, want)
						}
						if err := checkpointed(k.d, []byte(k.request), res); err != nil {
							t.Fatalf("cut at %d, dies %v: %v", at, dies, err)
						}
						if s := res.Notes[len(res.Notes)-1].Summary; !dies && s.Recoveries != 1 {
							t.Fatalf("cut at %d: %d recoveries", at, s.Recoveries)
						}
						if len(res.Abandoned) > 0 {
							t.Fatalf("cut at %d: what is not there was cancelled", at)
						}
					}
				}
			})
		}
	}
}

// The connection that had the turn is lost at every place, and one that followed it,
// whose client has it in its own words, attaches for it.
func TestHeldIsCarriedOnByWhoFollowedIt(t *testing.T) {
	for _, k := range keepers(t) {
		t.Run(k.name, func(t *testing.T) {
			want := k.told(t, k.stream())
			for i, at := range k.cuts() {
				if at < len(k.held.Units[0]) || k.ended(at) {
					continue
				}
				dead := k.killed(t, at)
				for _, cuts := range [][]int{nil, {at, len(k.stream()) * (i + 1) / (2*len(k.held.Units) + 2)}} {
					h := k.held
					h.Cuts, h.End.How = cuts, interrupt.Reset
					what := fmt.Sprintf("lost at %d, then cut at %v", at, cuts)
					res, err := k.world().Follow([]byte(k.request), dead.Log, 1+len(dead.Log)*7%977, func(q relaytest.Request) relaytest.Reply {
						r, ok := h.Answer(q)
						if q.Method == "" || !ok {
							t.Fatalf("%s: attempt %d asks for %q", what, q.N, q.Body)
						}
						return r
					})
					if err == nil && res.Broken != "" {
						err = fmt.Errorf("law: %s", res.Broken)
					}
					if err != nil || res.End != relay.Clean {
						t.Fatalf("%s: %v, %v %s %v\n%s", what, err, res.End, res.Outcome(), res.Plans(), res.Body)
					}
					if got := k.told(t, res.Body); got != want {
						t.Fatalf("%s:\ngot\n%s\nwant\n%s\n%s", what, got, want, res.Body)
					}
					if err := checkpointed(k.d, []byte(k.request), res); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
				}
			}
		})
	}
}

// told is the message that a client of the dialect makes of a stream.
func (k keeper) told(t *testing.T, stream []byte) string {
	t.Helper()
	if k.d.Name() == "responses" {
		m, err := responses.read(stream)
		if err != nil {
			t.Fatalf("%v in\n%s", err, stream)
		}
		return m.String()
	}
	s, faults, err := relaytest.Fold(k.d, mustParse(k.d, []byte(k.request)), stream)
	if err != nil || len(faults) > 0 {
		t.Fatalf("%v %v in\n%s", err, faults, stream)
	}
	return relaytest.Outline(s)
}

// What is told again and turns out to be another generation leaves no trace.
func TestAnotherGenerationIsNoneOfOurs(t *testing.T) {
	k := keepers(t)[0]
	dead := k.killed(t, bytes.Index(k.stream(), []byte(`"delta":"4"`)))
	h := k.held
	h.Units = nil
	for _, u := range k.held.Units {
		h.Units = append(h.Units, bytes.ReplaceAll(u, []byte(`"delta":" equals"`), []byte(`"delta":" is"`)))
	}
	snap, _, _ := relaytest.Fold(k.d, mustParse(k.d, []byte(k.request)), k.stream())
	res, err := k.world().Follow([]byte(k.request), dead.Log, 1<<20, func(q relaytest.Request) relaytest.Reply {
		if r, ok := h.Answer(q); ok && q.Method != "" {
			return r
		}
		body, err := strictResponses{}.Continue(mustParse(k.d, []byte(k.request)), snap, dialect.Continuation{Manner: turn.Asked, Anchor: 40, Sentinel: "[[COMPLETE]]"})
		if err != nil || len(body) == 0 {
			t.Fatal(err)
		}
		return relaytest.Reply{Chunks: relaytest.RenderResponses(faultinject.Answer{Finish: faultinject.FinishStop, Blocks: []faultinject.Block{{Kind: faultinject.TextBlock, Text: "2 + 2 equals 4."}}}, faultinject.Options{Model: "gpt-4o", ID: "again"})}
	})
	if err != nil || res.Broken != "" || res.End != relay.Clean {
		t.Fatalf("%v, law %q, %v %s", err, res.Broken, res.End, res.Outcome())
	}
	if p := fmt.Sprint(res.Plans()); p != "[resume(provider_holds_generation) r1_continue_text(text)]" || k.told(t, res.Body) != k.told(t, k.stream()) {
		t.Errorf("%s\n%s", p, res.Body)
	}
	if len(res.Abandoned) > 0 {
		t.Errorf("abandoned %+v", res.Abandoned)
	}
}
