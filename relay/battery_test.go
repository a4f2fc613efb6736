package relay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// cut is one way for a stream to break.
type cut struct {
	name  string
	end   interrupt.Ended
	hang  bool
	extra func(family) []byte // bytes between the cut and the end
	pings bool
}

var cuts = []cut{
	{name: "polite-end", end: interrupt.Ended{How: interrupt.EOF}},
	{name: "reset", end: interrupt.Ended{How: interrupt.Reset}},
	{name: "short", end: interrupt.Ended{How: interrupt.Short}},
	{name: "goaway", end: interrupt.Ended{How: interrupt.GoneAway}},
	{name: "stall", hang: true},
	{name: "ping-only", hang: true, pings: true},
	{name: "half-event", end: interrupt.Ended{How: interrupt.Reset}, extra: func(f family) []byte { return []byte(f.half) }},
	{name: "malformed", end: interrupt.Ended{How: interrupt.Reset}, extra: func(f family) []byte { return []byte("data: {\"garbage\n\n") }},
	{name: "error-event", end: interrupt.Ended{How: interrupt.EOF}, extra: func(f family) []byte { return []byte(f.fault) }},
	{name: "end-marker", end: interrupt.Ended{How: interrupt.EOF}, extra: func(f family) []byte { return []byte(f.marker) }},
}

// family is a dialect with what the battery needs of its wire.
type family struct {
	name     string
	d        dialect.Dialect
	fallback string
	named    func([]byte) string
	folders  []string
	half     string
	fault    string
	marker   string
	ping     string
	render   func(faultinject.Answer, faultinject.Options) [][]byte
	// read is an official SDK's accumulator over a whole stream.
	read func(stream []byte) (message, error)
	// strays are recordings that the official accumulator itself rejects
	// uncut, and why.
	strays map[string]string
	// skip are recordings of another wire, and which.
	skip map[string]string
	// targets are the kinds of hosts it is played on; nil: all.
	targets []target
	// table is where its results stand in docs/SUPPORT.md; empty: under its name.
	table string
}

// message is what an SDK made of a stream, as far as an application acts on it.
type message struct {
	text   string
	calls  []string // name and arguments
	finish string
	order  string // kinds of blocks, adjacent text merged, reasoning left out
}

func (m message) String() string {
	return fmt.Sprintf("order=%s finish=%s calls=%v text=%q", m.order, m.finish, m.calls, m.text)
}

// ownOrder is the order of what the model itself says: provider-side tools and
// their results left out.
func (m message) ownOrder() string {
	var out []string
	for _, k := range strings.Split(m.order, ",") {
		if k == "text" && (len(out) == 0 || out[len(out)-1] != "text") || k == "tool_use" || k == "refusal" {
			out = append(out, k)
		}
	}
	return strings.Join(out, ",")
}

// tally counts how cases went.
type tally struct {
	cases, passed, healed, finished, synthesized, refused, failures int
	reasons                                                         map[string]int
}

// allowed are the refusals of the planner's table that a recording can meet: each
// names something in the recording that cannot be said again or carried on.
var allowed = []string{
	"hosted_tools_declared", // an attempt that may have run a tool with effects
	"hosted_tool_ran", "hosted_tool:", "unknown_block:",
	"several_choices", "logprobs",
	"unsplicable:stored interaction", "identity_kept", // it is kept under an id that nothing else may have
}

func (n *tally) refuse(f family, c scenario, form, reason string) error {
	n.refused++
	if n.reasons == nil {
		n.reasons = map[string]int{}
	}
	n.reasons[form+":"+reason]++
	for _, a := range allowed {
		if reason == a || strings.HasSuffix(a, ":") && strings.HasPrefix(reason, a) {
			return nil
		}
	}
	return fmt.Errorf("refused: %s", reason)
}

func (c tally) String() string {
	var rs []string
	for r, n := range c.reasons {
		rs = append(rs, fmt.Sprintf("%s=%d", r, n))
	}
	sort.Strings(rs)
	return fmt.Sprintf("%d cases: %d passed, %d healed, %d finished, %d ended as tool use, %d refused %v",
		c.cases, c.passed, c.healed, c.finished, c.synthesized, c.refused, rs)
}

// scenario is one case: a recording, cut at a byte, in one way, on a target with
// one manner, whose model behaves in one way at the seam.
type scenario struct {
	rec    relaytest.Recording
	at     int // bytes of the recording that arrive
	cut    cut
	target target
	seam   relaytest.Seam
	events bool
}

// target is a kind of host, and how its models may behave at a seam. What a true
// prefill says is the continuation by definition, unless it is plainly the whole
// answer again; hosts known to echo and asked models get no such trust.
type target struct {
	name    string
	ability dialect.Ability
	seams   []relaytest.Seam
}

var targets = []target{
	{"prefill", dialect.Ability{Manners: []turn.Manner{turn.Prefill, turn.Asked}}, []relaytest.Seam{relaytest.Honest, relaytest.RestartWhole}},
	{"echoing", dialect.Ability{Manners: []turn.Manner{turn.Prefill, turn.Asked}, Echoes: true}, []relaytest.Seam{relaytest.Honest, relaytest.EchoTail, relaytest.RestartWhole, relaytest.RestartDiverge}},
	{"asked", dialect.Ability{Manners: []turn.Manner{turn.Asked}}, relaytest.Seams},
}

func (c scenario) String() string {
	return fmt.Sprintf("%s cut at byte %d by %s, %s/%s", c.rec.Name, c.at, c.cut.name, c.target.name, c.seam)
}

func (f family) run(t *testing.T, c scenario, want message, answer faultinject.Answer) (relaytest.Result, error) {
	t.Helper()
	w := relaytest.World{Dialect: f.d, Config: relay.Config{
		Targets: []relay.Target{{Name: "test", Ability: c.target.ability}},
		Events:  c.events,
	}}
	stream := c.rec.Stream()
	seams := 0
	var failed error
	opts := f.options(c.rec)
	own, _, _ := prefills.of(string(c.rec.Request), func() (string, bool, error) {
		own, _, err := relaytest.Asked(c.rec.Request)
		if err != nil {
			own = "" // the caller does not end with an assistant turn
		}
		return own, true, nil
	})
	provider := func(q relaytest.Request) relaytest.Reply {
		switch {
		case q.N == 1:
			r := relaytest.Reply{Chunks: pieces(stream[:c.at]), End: c.cut.end, Hang: c.cut.hang}
			if c.cut.extra != nil {
				r.Chunks = append(r.Chunks, c.cut.extra(f))
			}
			if c.cut.pings {
				r.Pings, r.Every = []byte(f.ping), 5*time.Second
			}
			return r
		case q.Method != "":
			return relaytest.Reply{Status: 404} // what the provider once held, it does not hold any more
		case !q.Derived:
			return relaytest.Reply{Chunks: relaytest.Renamed(c.rec.Units)}
		}
		seam := relaytest.Honest
		if seams++; seams == 1 {
			seam = c.seam
		}
		rest, err := relaytest.Continue(answer, q.Body, own, seam, "[[COMPLETE]]")
		if err != nil {
			failed = err
			return relaytest.Reply{Status: 400}
		}
		o := opts
		o.Seed = uint64(q.N)
		o.ID = fmt.Sprintf("%sagain_%d", o.ID, q.N)
		return relaytest.Reply{Chunks: f.render(rest, o)}
	}
	res, err := w.Run(c.rec.Request, provider)
	if err == nil {
		err = failed
	}
	if err == nil && res.Broken != "" {
		err = fmt.Errorf("law: %s", res.Broken)
	}
	return res, err
}

// prefills are the trailing assistant turns of recorded requests, some of which are
// large.
var prefills heard[string]

func (f family) options(r relaytest.Recording) faultinject.Options {
	req, err := f.d.Parse(r.Request)
	if err != nil {
		return faultinject.Options{}
	}
	return faultinject.Options{Model: req.Model, IncludeUsage: req.IncludeUsage, N: req.N}
}

// pieces cuts a stream into reads of odd sizes.
func pieces(b []byte) [][]byte {
	var out [][]byte
	for n := 1; len(b) > 0; n = n*7%1021 + 1 {
		n = min(n, len(b))
		out = append(out, b[:n])
		b = b[n:]
	}
	return out
}

// judge checks one result against the uncut message.
func (f family) judge(c scenario, res relaytest.Result, want message, n *tally) error {
	n.cases++
	plan := lastPlan(res)
	switch res.End {
	case relay.Clean:
		if !res.Head.Stream {
			return n.refuse(f, c, "status", strings.TrimPrefix(res.Outcome(), "failed:"))
		}
		got, err := f.read(res.Body)
		if err != nil {
			return fmt.Errorf("SDK cannot read the result: %w\n%s", err, res.Body)
		}
		switch {
		case strings.HasPrefix(plan, "r2"):
			n.synthesized++
			return halfway(got, want)
		case plan != "" && want.ownOrder() != want.order:
			// A model that goes on behind a tool that ran at the provider
			// says the rest in text.
			got.order, want.order = got.ownOrder(), want.ownOrder()
			if want.finish == "pause_turn" && got.finish == "end_turn" {
				want.finish = "end_turn" // nothing is left to pause for
			}
			if got.String() != want.String() {
				return fmt.Errorf("message differs\n got %v\nwant %v", got, want)
			}
			n.healed++
		case got.String() != want.String():
			return fmt.Errorf("message differs\n got %v\nwant %v", got, want)
		case plan == "":
			n.passed++
		case strings.HasPrefix(plan, "finish"):
			n.finished++
		default:
			n.healed++
		}
		return nil
	case relay.Abort:
		_, faults, err := relaytest.Fold(f.d, mustParse(f.d, c.rec.Request), res.Body)
		if err != nil && len(faults) == 0 {
			return fmt.Errorf("aborted stream is not readable: %w", err)
		}
		if len(faults) != 1 {
			return fmt.Errorf("aborted with %d error events", len(faults))
		}
		if _, err := f.read(res.Body); err == nil {
			return fmt.Errorf("an SDK takes the failed stream for a success")
		}
		return n.refuse(f, c, "error", strings.TrimPrefix(res.Outcome(), "failed:"))
	}
	return fmt.Errorf("ended as %v", res.End)
}

// halfway checks a turn that was ended as tool use: calls and text are the first
// of what the whole turn would have had, whole, and it asks for tools.
func halfway(got, want message) error {
	if got.finish != "tool_use" && got.finish != "tool_calls" {
		return fmt.Errorf("finish %q after R2", got.finish)
	}
	if len(got.calls) == 0 || len(got.calls) > len(want.calls) {
		return fmt.Errorf("R2 with %d of %d calls", len(got.calls), len(want.calls))
	}
	for i, c := range got.calls {
		if c != want.calls[i] {
			return fmt.Errorf("R2 call %d is %s, want %s", i, c, want.calls[i])
		}
	}
	if !strings.HasPrefix(want.text, got.text) {
		return fmt.Errorf("R2 text %q is no beginning of %q", got.text, want.text)
	}
	return nil
}

func lastPlan(r relaytest.Result) string {
	ps := r.Plans()
	if len(ps) == 0 {
		return ""
	}
	return ps[len(ps)-1]
}

func mustParse(d dialect.Dialect, body []byte) *dialect.Request {
	r, err := d.Parse(body)
	if err != nil {
		panic(err)
	}
	return r
}

// cutEverywhere runs the battery over all recordings of a family.
func (f family) cutEverywhere(t *testing.T, recs []relaytest.Recording) {
	var mu sync.Mutex
	var total tally
	recs = slices.DeleteFunc(slices.Clone(recs), func(r relaytest.Recording) bool { return f.skip[r.Name] != "" })
	cases := f.everywhere(recs)
	if !*everyBoundary { // where each boundary is cut, what it meets is drawn
		f.meets(t, cases)
	}
	t.Run("recordings", func(t *testing.T) {
		for i, r := range recs {
			t.Run(r.Name, func(t *testing.T) {
				t.Parallel()
				n := f.battery(t, r, cases[i])
				t.Logf("%v", n)
				mu.Lock()
				defer mu.Unlock()
				total.add(n)
			})
		}
	})
	if !t.Failed() {
		seen.played(f.name)
	}
	t.Logf("%s: %v", f.name, total)
	fmt.Fprintf(os.Stderr, "battery %s: %v\n", f.name, total)
}

func (c *tally) add(n tally) {
	c.cases, c.passed, c.healed = c.cases+n.cases, c.passed+n.passed, c.healed+n.healed
	c.finished, c.synthesized = c.finished+n.finished, c.synthesized+n.synthesized
	for r, k := range n.reasons {
		c.refused += k
		if c.reasons == nil {
			c.reasons = map[string]int{}
		}
		c.reasons[r] += k
	}
}

func (f family) battery(t *testing.T, r relaytest.Recording, cases []scenario) tally {
	t.Helper()
	var n tally
	want, err := f.read(r.Stream())
	if why, ok := f.strays[r.Name]; ok {
		f.read = f.readOwn
		if want, err = f.read(r.Stream()); err != nil {
			t.Logf("not comparable: %s (%v)", why, err)
			return n
		}
	}
	if err != nil {
		t.Fatalf("the SDK cannot read the uncut recording: %v", err)
	}
	snap, _, err := relaytest.Fold(f.d, mustParse(f.d, r.Request), r.Stream())
	if err != nil {
		t.Fatalf("uncut recording: %v", err)
	}
	answer, of := relaytest.AnswerOf(snap), turnsOf(mustParse(f.d, r.Request), snap)
	for i, c := range cases {
		res, err := f.run(t, c, want, answer)
		if err == nil {
			err = f.judge(c, res, want, &n)
		}
		if err == nil {
			seen.note(f.as(), of, res)
		}
		if err != nil {
			t.Errorf("case %d: %v: %v\nplans %v", i, c, err, res.Plans())
			if n.failures++; n.failures > 3 {
				t.Fatal("too many failures")
			}
		}
	}
	return n
}

// readOwn reads a stream with the dialect's own decoder, for hosts whose streams the
// official SDK does not understand.
func (f family) readOwn(stream []byte) (message, error) {
	s, faults, err := relaytest.Fold(f.d, mustParse(f.d, []byte(f.fallback)), stream)
	if err != nil {
		return message{}, err
	}
	if len(faults) > 0 || !s.Finished() {
		return message{}, fmt.Errorf("no finish, or a fault: %v", faults)
	}
	m := message{finish: s.End().Reason}
	var order []string
	for i := range s.Blocks {
		b := &s.Blocks[i]
		kind := ""
		switch b.Kind {
		case turn.Prose:
			m.text += string(b.Plain())
			kind = "text"
		case turn.Call:
			m.calls = append(m.calls, b.Name+compact(string(b.Arguments())))
			kind = "tool_use"
		case turn.Reasoning, turn.Redacted:
			continue
		default:
			kind = b.Kind.String()
		}
		if n := len(order); kind != "text" || n == 0 || order[n-1] != "text" {
			order = append(order, kind)
		}
	}
	m.order = strings.Join(order, ",")
	return m, nil
}

func compact(raw string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(raw)) != nil {
		return raw
	}
	return b.String()
}
