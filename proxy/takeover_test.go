package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/turn"
)

// common is a store that several servers share, as Redis is, and whose owners can
// die.
type common struct {
	*checkpoint.Memory
	mu   sync.Mutex
	dead map[checkpoint.Owner]bool
}

func newCommon() *common {
	c := &common{dead: map[checkpoint.Owner]bool{}}
	c.Memory = checkpoint.NewMemory(checkpoint.MemoryConfig{Clock: time.Now, Alive: func(o checkpoint.Owner) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.dead[o]
	}})
	return c
}

// view is one server's way to a common store, which ends when the server is killed.
type view struct {
	*common
	cut atomic.Bool
	// after is called when an append has taken effect, before it is acknowledged.
	after func(key checkpoint.TurnKey)
}

var errCut = fmt.Errorf("%w: killed", checkpoint.ErrUnavailable)

func (v *view) Claim(ctx context.Context, k checkpoint.TurnKey, o checkpoint.Owner, r checkpoint.Record) (checkpoint.Fence, *checkpoint.Record, error) {
	if v.cut.Load() {
		return checkpoint.Fence{}, nil, errCut
	}
	return v.common.Claim(ctx, k, o, r)
}

func (v *view) Append(ctx context.Context, f checkpoint.Fence, at int64, p []byte) error {
	if v.cut.Load() {
		return errCut
	}
	err := v.common.Append(ctx, f, at, p)
	if v.after != nil {
		v.after(f.Key)
	}
	return err
}

func (v *view) Mark(ctx context.Context, f checkpoint.Fence, s checkpoint.State) error {
	if v.cut.Load() {
		return errCut
	}
	return v.common.Mark(ctx, f, s)
}

func (v *view) Release(ctx context.Context, f checkpoint.Fence) error {
	if v.cut.Load() {
		return errCut
	}
	return v.common.Release(ctx, f)
}

func (v *view) Delete(ctx context.Context, f checkpoint.Fence) error {
	if v.cut.Load() {
		return errCut
	}
	return v.common.Delete(ctx, f)
}

// replica serves p over a common store.
func replica(t *testing.T, p *provider, c *common, change ...func(*Config)) (*proxied, *view) {
	t.Helper()
	v := &view{common: c}
	s := start(t, p, append([]func(*Config){func(cfg *Config) {
		cfg.Store, cfg.ScopeKey = v, []byte("shared by all")
		cfg.Relay.Flush = time.Millisecond
		cfg.AckWait = 5 * time.Second
	}}, change...)...)
	return s, v
}

// kill ends a server as kill -9 does: nothing is written, released or said any more.
func kill(s *proxied, v *view) {
	v.cut.Store(true)
	v.mu.Lock()
	v.dead[s.owner] = true
	v.mu.Unlock()
	s.dog.each(func(l *lifeline) {
		if l.conn != nil {
			l.conn.Close()
		}
	})
}

// whole is what every turn of these tests says.
const (
	said  = "The quick brown fox jumps over the lazy dog and runs into"
	left  = " the woods."
	calls = `look{"at":1}`
)

// speaker writes one dialect.
type speaker struct {
	name, path, ask string
	head            []string
	text            func(string) string
	callOpen        string // opens the call and says half of its arguments
	callRest        string // says the rest of them
	callEnd         string // is what the provider says behind a call
	finish          []string
	tail            int // how much of what was said a continuation repeats
}

// hanging is a provider that says the beginning of a text and no more, until it is over
// with that: then it goes on with whatever is asked.
func (s *speaker) hanging(t *testing.T) (p *provider, over *atomic.Bool) {
	over = new(atomic.Bool)
	return newProvider(t, func(a *asked) {
		if over.Load() {
			s.answer(a)
			return
		}
		a.stream()
		a.chunks(s.head...)
		a.chunk(s.text(said))
		a.hang()
	}), over
}

var speakers = []speaker{
	{
		name: "chat", path: "/v1/chat/completions", ask: chatAsk, tail: 40,
		head:     []string{oc("")},
		text:     oc,
		callOpen: chatDelta(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"at\""}}]}`),
		callRest: chatDelta(`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`),
		finish:   []string{fr("tool_calls"), done},
	},
	{
		name: "messages", path: "/v1/messages", ask: messagesAsk,
		head:     []string{ms()},
		text:     mt,
		callOpen: ev("content_block_stop", `{"type":"content_block_stop","index":0}`) + ev("content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"call_1","name":"look","input":{}}}`) + ev("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"at\""}}`),
		callRest: ev("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":1}"}}`),
		callEnd:  ev("content_block_stop", `{"type":"content_block_stop","index":1}`),
		finish:   []string{ev("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":12}}`), messageStop},
	},
}

func ev(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

func chatDelta(delta string) string {
	return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n"
}

// goOn says the turn from text on, after so much of it was said before.
func (s *speaker) goOn(a *asked, before string) {
	a.stream()
	a.chunks(s.head...)
	if before != "" && s.tail > 0 {
		a.chunk(s.text(before[len(before)-s.tail:]))
	}
	if rest := (said + left)[len(before):]; rest != "" {
		a.chunk(s.text(rest))
	}
	a.chunk(s.callOpen + s.callRest + s.callEnd)
	a.chunks(s.finish...)
	a.end()
}

// answer continues whatever it is asked to continue.
func (s *speaker) answer(a *asked) {
	before := ""
	switch body := string(a.body); {
	case strings.Contains(body, said+left):
		before = said + left
	case strings.Contains(body, said):
		before = said
	}
	s.goOn(a, before)
}

// message reads what a client of either dialect has: text, calls, finish.
func message(t *testing.T, body string) (all string) {
	t.Helper()
	var args, finish string
	for line := range strings.SplitSeq(body, "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var e struct {
			Choices []struct {
				Delta struct {
					Calls []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Finish string `json:"finish_reason"`
			}
			Block struct{ Name string } `json:"content_block"`
			Delta struct {
				JSON string `json:"partial_json"`
				Stop string `json:"stop_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("client got %q: %v", data, err)
		}
		for _, c := range e.Choices {
			for _, call := range c.Delta.Calls {
				args += call.Function.Name + call.Function.Arguments
			}
			finish += c.Finish
		}
		args += e.Block.Name + e.Delta.JSON
		finish += e.Delta.Stop
	}
	return text(t, body) + "|" + args + "|" + finish
}

func (s *speaker) uncut() string {
	if s.name == "chat" {
		return said + left + "|" + calls + "|tool_calls"
	}
	return said + left + "|" + calls + "|tool_use"
}

// phase is a moment at which a process can die.
type phase struct {
	name string
	// say brings the turn there; then the provider says nothing more.
	say func(s *speaker, a *asked)
	// seen is what the client has read before the death; "": nothing at all.
	seen string
	// kept is what the log must hold before the death.
	kept func(*turn.Snapshot) bool
	// unsent: the process dies between the log and the client.
	unsent bool
	// asked is how often the provider is asked in all.
	asked int
}

func prose(s string) func(*turn.Snapshot) bool {
	return func(snap *turn.Snapshot) bool { return string(snap.Prose()) == s }
}

var phases = []phase{
	{name: "head held", say: func(s *speaker, a *asked) { a.stream(); a.chunks(s.head...); a.hang() }, asked: 2},
	{name: "text", say: func(s *speaker, a *asked) { a.stream(); a.chunks(s.head...); a.chunk(s.text(said)); a.hang() }, seen: "runs into", kept: prose(said), asked: 2},
	{name: "inside a call", say: func(s *speaker, a *asked) {
		a.stream()
		a.chunks(s.head...)
		a.chunks(s.text(said+left), s.callOpen)
		a.hang()
	}, seen: "woods", kept: prose(said + left), asked: 2},
	{name: "call durable, unsent", say: func(s *speaker, a *asked) {
		a.stream()
		a.chunks(s.head...)
		a.chunk(s.text(said + left))
		a.chunks(s.callOpen + s.callRest + s.callEnd)
		a.hang()
	}, unsent: true, kept: func(snap *turn.Snapshot) bool { n, _ := snap.Calls(); return n == 1 }, asked: 1},
	{name: "finish sent", say: func(s *speaker, a *asked) {
		a.stream()
		a.chunks(s.head...)
		a.chunks(s.text(said+left), s.callOpen, s.callRest+s.callEnd+s.finish[0])
		a.hang()
	}, seen: "tool_", kept: func(snap *turn.Snapshot) bool { return snap.Finished() }, asked: 1},
	{name: "recovery waiting", say: func(s *speaker, a *asked) {
		if a.n > 0 {
			a.answer(429, `{"error":{"message":"slow down"}}`, "Retry-After: 30")
			return
		}
		a.stream()
		a.chunks(s.head...)
		a.chunk(s.text(said))
		a.rst()
	}, seen: "runs into", kept: prose(said), asked: 3},
	{name: "seam open", say: func(s *speaker, a *asked) {
		a.stream()
		a.chunks(s.head...)
		if a.n > 0 {
			a.chunk(s.text(" "))
			a.hang()
			return
		}
		a.chunk(s.text(said))
		a.rst()
	}, seen: "runs into", kept: prose(said), asked: 3},
}

// A proxy dies in each phase of a turn and its client asks another one again: it gets
// the message it would have had, and the provider is asked for no more than the rest.
func TestKilledInEachPhase(t *testing.T) {
	type row struct {
		phase, dialect, outcome string
		again                   int
		repaid                  int64
	}
	var rows []row
	for _, ph := range phases {
		for _, sp := range speakers {
			t.Run(ph.name+", "+sp.name, func(t *testing.T) {
				outcome, again, repaid := killed(t, &ph, &sp)
				rows = append(rows, row{ph.name, sp.name, outcome, again, repaid})
			})
		}
	}
	for _, r := range rows {
		t.Logf("%-22s %-9s %-18s asked again %d, prompt tokens repaid as told %d", r.phase, r.dialect, r.outcome, r.again, r.repaid)
	}
}

func killed(t *testing.T, ph *phase, sp *speaker) (outcome string, again int, repaid int64) {
	c := newCommon()
	var over atomic.Bool
	script := func(a *asked) {
		if over.Load() {
			sp.answer(a)
			return
		}
		ph.say(sp, a)
	}
	p := newProvider(t, script)
	one, v := replica(t, p, c)
	two, _ := replica(t, p, c)
	key := checkpoint.Turn(one.scope(nil), "r1", (&request{method: "POST", target: sp.path, body: []byte(sp.ask)}).fingerprint())
	dead := make(chan struct{})
	reached := func() bool {
		rec, err := c.Get(context.Background(), key)
		if err != nil {
			return false
		}
		snap, err := turn.Replay(rec.Log)
		return err == nil && ph.kept(snap)
	}
	if ph.unsent {
		var once sync.Once
		v.after = func(checkpoint.TurnKey) {
			if reached() {
				once.Do(func() { over.Store(true); kill(one, v); close(dead) })
			}
		}
	}
	cl := dial(t, one.addr).post(sp.path, sp.ask, "X-Run-Id: r1")
	if ph.seen != "" {
		until(t, cl.response().Body, ph.seen)
	}
	for range p.hitsBefore(ph) {
		p.next()
	}
	switch {
	case ph.unsent:
		within(t, "the call is in the log", dead)
	case ph.kept != nil:
		eventually(t, "the phase is reached", reached)
	}
	over.Store(true)
	if !ph.unsent {
		kill(one, v)
	}
	res := dial(t, two.addr).post(sp.path, sp.ask, "X-Run-Id: r1").response()
	got, err := allOf(res)
	if err != nil || res.StatusCode != http.StatusOK || message(t, got) != sp.uncut() {
		t.Fatalf("the retry got %d %q, %v; want %q\n%s", res.StatusCode, message(t, got), err, sp.uncut(), got)
	}
	if n := strings.Count(got, sp.finish[1]); n != 1 || res.Header.Get(headerRun) != "r1" {
		t.Errorf("%d ends, run %q", n, res.Header.Get(headerRun))
	}
	if p.hits() != ph.asked {
		t.Errorf("the provider was asked %d times, want %d", p.hits(), ph.asked)
	}
	outcome = two.notes.outcome(t)
	two.notes.mu.Lock()
	defer two.notes.mu.Unlock()
	for _, n := range two.notes.notes {
		repaid += n.Summary.Repaid
	}
	if sp.name == "messages" && ph.asked > 1 && repaid != 9 { // as the scripted provider counts; a dead process tells nothing
		t.Errorf("%d tokens repaid, want 9", repaid)
	}
	return outcome, p.hits() - 1, repaid
}

// hitsBefore is how often the provider is asked before the process dies.
func (p *provider) hitsBefore(ph *phase) int {
	if ph.asked == 3 {
		return 2
	}
	return 1
}

// The same turn twice, in one process and in two: the provider is asked once, both
// connections read the same text, and only the newer one gets what acts.
func TestNewestConnectionOfATurnGetsTheCall(t *testing.T) {
	for _, sp := range speakers {
		for _, where := range []string{"in one process", "in two"} {
			t.Run(sp.name+", "+where, func(t *testing.T) {
				goOn := make(chan struct{})
				p := newProvider(t, func(a *asked) {
					a.stream()
					a.chunks(sp.head...)
					a.chunk(sp.text(said))
					<-goOn
					a.chunk(sp.text(left))
					<-goOn
					a.chunk(sp.callOpen + sp.callRest + sp.callEnd)
					a.chunks(sp.finish...)
					a.end()
				})
				var one, two *proxied
				if where == "in two" {
					c := newCommon()
					one, _ = replica(t, p, c)
					two, _ = replica(t, p, c)
				} else {
					one = start(t, p)
					two = one
				}
				older := dial(t, one.addr).post(sp.path, sp.ask, "X-Run-Id: r1").response()
				a := until(t, older.Body, "runs into")
				newer := dial(t, two.addr).post(sp.path, sp.ask, "X-Run-Id: r1").response()
				b := until(t, newer.Body, "runs into")
				goOn <- struct{}{}
				a += until(t, older.Body, "woods")
				b += until(t, newer.Body, "woods")
				goOn <- struct{}{}
				rest, err := allOf(newer)
				if b += rest; err != nil || message(t, b) != sp.uncut() {
					t.Errorf("the newer connection got %q, %v", message(t, b), err)
				}
				rest, err = allOf(older)
				if a += rest; err == nil || strings.Contains(a, "look") || !strings.Contains(a, "newer connection") || text(t, a) != text(t, b) {
					t.Errorf("the older connection got %v and\n%s", err, a)
				}
				if p.hits() != 1 {
					t.Errorf("the provider was asked %d times", p.hits())
				}
			})
		}
	}
}

// The client of the connection that drives a turn goes away while another follows:
// nothing is asked again.
func TestDriverGoesOnForItsFollower(t *testing.T) {
	sp := speakers[0]
	goOn := make(chan struct{})
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(sp.head...)
		a.chunk(sp.text(said))
		<-goOn
		a.chunks(sp.text(left), sp.callOpen, sp.callRest)
		a.chunks(sp.finish...)
		a.end()
	})
	s := start(t, p)
	cl := dial(t, s.addr).post(sp.path, sp.ask, "X-Run-Id: r1")
	until(t, cl.response().Body, "runs into")
	res := dial(t, s.addr).post(sp.path, sp.ask, "X-Run-Id: r1").response()
	got := until(t, res.Body, "runs into")
	cl.c.Close()
	eventually(t, "the departure is noticed", func() bool {
		gone := true
		s.dog.each(func(l *lifeline) { gone = gone && l.flags.Load()&flagGone == 0 })
		return gone && s.dog.live() == 2
	})
	close(goOn)
	rest, err := allOf(res)
	if got += rest; err != nil || message(t, got) != sp.uncut() || p.hits() != 1 {
		t.Errorf("%q, %v, asked %d times", message(t, got), err, p.hits())
	}
}

func TestRunThatFinishesWithoutItsClient(t *testing.T) {
	sp := speakers[1]
	goOn := make(chan struct{})
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(sp.head...)
		a.chunk(sp.text(said))
		<-goOn
		a.chunk(sp.text(left) + sp.callOpen + sp.callRest + sp.callEnd)
		a.chunks(sp.finish...)
		a.end()
	})
	s := start(t, p)
	cl := dial(t, s.addr).post(sp.path, sp.ask, "X-Run-Id: r1", "X-Run-On-Disconnect: finish")
	until(t, cl.response().Body, "runs into")
	cl.c.Close()
	eventually(t, "the departure is noticed", func() bool {
		headless := 0
		s.dog.each(func(l *lifeline) {
			if l.conn == nil {
				headless++
			}
		})
		return headless == 1
	})
	close(goOn)
	if got := s.notes.outcome(t); got != "completed" {
		t.Fatalf("outcome %q", got)
	}
	eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
	got, err := allOf(dial(t, s.addr).post(sp.path, sp.ask, "X-Run-Id: r1").response())
	if err != nil || message(t, got) != sp.uncut() || p.hits() != 1 {
		t.Errorf("the replay is %q, %v; asked %d times", message(t, got), err, p.hits())
	}
}

// A turn whose process died is found without its id by the same request of the same
// caller, once; by nobody else, and not after its client had left.
func TestOrphanIsAdoptedOnce(t *testing.T) {
	sp := speakers[0]
	cases := []struct {
		name          string
		auth, header  string
		only, abandon bool
		adopted       bool
	}{
		{name: "an identical request", auth: "Authorization: Bearer a", header: "X-Some: 1", adopted: true},
		{name: "an SDK's retry, option off", auth: "Authorization: Bearer a", header: "x-stainless-retry-count: 1", only: true, adopted: true},
		{name: "an identical request, option off", auth: "Authorization: Bearer a", header: "X-Some: 1", only: true},
		{name: "another caller", auth: "Authorization: Bearer b", header: "X-Some: 1"},
		{name: "a caller without a credential", auth: "X-Nobody: 1", header: "X-Some: 1"},
		{name: "its client had left", auth: "Authorization: Bearer a", header: "X-Some: 1", abandon: true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p, over := sp.hanging(t)
			c := newCommon()
			one, v := replica(t, p, c)
			two, _ := replica(t, p, c, func(cfg *Config) { cfg.AdoptRetriesOnly = tc.only })
			cl := dial(t, one.addr).post(sp.path, sp.ask, "Authorization: Bearer a")
			first := cl.response()
			until(t, first.Body, "runs into")
			who := one.scope(parseHeader([]byte("Authorization: Bearer a\r\n")))
			fp := (&request{method: "POST", target: sp.path, body: []byte(sp.ask)}).fingerprint()
			turnOf := checkpoint.Turn(who, checkpoint.RunID(first.Header.Get(headerRun)), fp)
			if tc.abandon {
				cl.c.Close()
				one.notes.outcome(t)
				eventually(t, "nothing is in flight", func() bool { return one.Stats().Live == 0 })
				// It is written behind the stream's back: killed before that, the
				// process leaves an orphan, and rightly so.
				eventually(t, "the record says so", func() bool {
					rec, err := c.Get(context.Background(), turnOf)
					return err == nil && rec.State.Phase == checkpoint.Abandoned
				})
			} else {
				eventually(t, "a flush", func() bool {
					rec, err := c.Get(context.Background(), turnOf)
					return err == nil && len(rec.Log) > 100
				})
			}
			over.Store(true)
			kill(one, v)
			for i := range 2 {
				res := dial(t, two.addr).post(sp.path, sp.ask, tc.auth, tc.header).response()
				got, err := allOf(res)
				if err != nil || message(t, got) != sp.uncut() {
					t.Fatalf("%q, %v", message(t, got), err)
				}
				same := res.Header.Get(headerRun) == first.Header.Get(headerRun)
				if same != (tc.adopted && i == 0) {
					t.Errorf("request %d: the turn of the dead process: %v", i, same)
				}
			}
		})
	}
}

// Twenty identical requests at once, without ids, are twenty turns.
func TestTwinsStayApart(t *testing.T) {
	sp := speakers[0]
	p := newProvider(t, sp.answer)
	c := newCommon()
	one, _ := replica(t, p, c)
	two, _ := replica(t, p, c)
	runs := map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 20 {
		cl := dial(t, []string{one.addr, two.addr}[i%2])
		wg.Go(func() {
			res := cl.post(sp.path, sp.ask, "Authorization: Bearer a").response()
			got, err := io.ReadAll(res.Body)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || message(t, string(got)) != sp.uncut() {
				t.Errorf("%q, %v", got, err)
			}
			runs[res.Header.Get(headerRun)] = true
		})
	}
	wg.Wait()
	if len(runs) != 20 || p.hits() != 20 {
		t.Errorf("%d runs, the provider was asked %d times", len(runs), p.hits())
	}
}

// Sub-agents share the run id of their agent and ask different things.
func TestSubAgentsDoNotFenceEachOther(t *testing.T) {
	sp := speakers[0]
	goOn := make(chan struct{})
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunk(oc("for " + a.req.Header.Get("X-Who")))
		<-goOn
		a.chunks(fr("stop"), done)
		a.end()
	})
	s := start(t, p)
	var rs []*http.Response
	for i := range 3 {
		who := fmt.Sprint("agent ", i)
		ask := strings.Replace(sp.ask, "Say it", "Say it, "+who, 1)
		res := dial(t, s.addr).post(sp.path, ask, "X-Run-Id: r1", "X-Who: "+who).response()
		until(t, res.Body, who)
		rs = append(rs, res)
	}
	close(goOn)
	for i, res := range rs {
		if rest, err := allOf(res); err != nil || !strings.HasSuffix(rest, done) {
			t.Errorf("agent %d: %q, %v", i, rest, err)
		}
	}
}

// At the deadline of a drain a turn is let go, and its client's retry on another
// replica carries it on.
func TestDrainedTurnGoesOnElsewhere(t *testing.T) {
	for _, sp := range speakers {
		t.Run(sp.name, func(t *testing.T) {
			p, over := sp.hanging(t)
			c := newCommon()
			one, _ := replica(t, p, c)
			two, _ := replica(t, p, c)
			res := dial(t, one.addr).post(sp.path, sp.ask, "Authorization: Bearer a", "x-api-key: a").response()
			until(t, res.Body, "runs into")
			over.Store(true)
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := one.Shutdown(ctx); !errors.Is(err, context.Canceled) {
				t.Fatalf("shutdown: %v", err)
			}
			if rest, err := allOf(res); err == nil || !strings.Contains(rest, "error") {
				t.Errorf("the drained client got %q, %v", rest, err)
			}
			again := dial(t, two.addr).post(sp.path, sp.ask, "Authorization: Bearer a", "x-api-key: a").response()
			got, err := allOf(again)
			if err != nil || message(t, got) != sp.uncut() || again.Header.Get(headerRun) != res.Header.Get(headerRun) || p.hits() != 2 {
				t.Errorf("the retry got %q, %v; asked %d times", message(t, got), err, p.hits())
			}
		})
	}
}

// What cannot be read is no turn: the request begins anew, and says so in the
// numbers.
func TestUnreadableCheckpointBeginsAnew(t *testing.T) {
	sp := speakers[0]
	for name, log := range map[string]string{
		"no log at all":   "this is no log of a turn, whatever it is",
		"a newer version": "\xff\x01\x02\x03",
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, sp.answer)
			c := newCommon()
			s, _ := replica(t, p, c)
			key := checkpoint.Turn(s.scope(nil), "r1", (&request{method: "POST", target: sp.path, body: []byte(sp.ask)}).fingerprint())
			f, _, err := c.Claim(context.Background(), key, "somebody", checkpoint.Record{Run: "r1"})
			if err == nil {
				err = errors.Join(c.Append(context.Background(), f, 0, []byte(log)), c.Release(context.Background(), f))
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := allOf(dial(t, s.addr).post(sp.path, sp.ask, "X-Run-Id: r1").response())
			if err != nil || message(t, got) != sp.uncut() || s.Stats().Unreadable != 1 {
				t.Errorf("%q, %v, %+v", message(t, got), err, s.Stats())
			}
		})
	}
}

func TestRunIsNamedByItsIdempotencyKey(t *testing.T) {
	long := strings.Repeat("k", 300)
	for key, want := range map[string]string{"key-1": "key-1", long: "key_", "with/slash": "key_"} {
		r := &request{header: parseHeader([]byte("Idempotency-Key: " + key + "\r\nx-stainless-retry-count: 2\r\n"))}
		if err := r.name(); err != nil || !strings.HasPrefix(string(r.run), want) || len(r.run) > checkpoint.MaxRunID || !r.named || !r.retried {
			t.Errorf("%q: %+v, %v", key, r, err)
		}
	}
}

// The process that has a turn dies while two others follow it: the one whose client
// came last carries it on, and the other one, which may be the first to notice, has
// no say in that.
func TestNewestFollowerInherits(t *testing.T) {
	for _, sp := range speakers {
		t.Run(sp.name, func(t *testing.T) {
			p, over := sp.hanging(t)
			c := newCommon()
			one, v := replica(t, p, c)
			two, _ := replica(t, p, c)
			three, _ := replica(t, p, c)
			var open []*http.Response
			for _, s := range []*proxied{one, two, three} {
				res := dial(t, s.addr).post(sp.path, sp.ask, "X-Run-Id: r1").response()
				until(t, res.Body, "runs into")
				open = append(open, res)
			}
			over.Store(true)
			kill(one, v)
			got, err := allOf(open[2])
			if err != nil || !strings.Contains(got, "woods") || !strings.Contains(got, sp.finish[1]) {
				t.Errorf("the newest got %q, %v", got, err)
			}
			if got, err := allOf(open[1]); err == nil || strings.Contains(got, "look") || !strings.Contains(got, "newer connection") {
				t.Errorf("the one before got %q, %v", got, err)
			}
			if p.hits() != 2 {
				t.Errorf("the provider was asked %d times", p.hits())
			}
		})
	}
}
