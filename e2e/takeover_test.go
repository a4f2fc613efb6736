package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/turn"
)

// deathPhase is where in a turn the process dies.
type deathPhase struct {
	name   string
	script string
	seen   string // what the client has read by then; "": nothing
	// hits is how many requests the provider has had by then.
	hits int
	// same: what was asked for before the death is enough, nothing is repaid.
	same bool
	// acked: Redis has the end of the call, and its answer, without which that may
	// not leave, is still on its way to the proxy.
	acked bool
	// calls: there is no such phase without calls.
	calls bool
}

var deathPhases = []deathPhase{
	{name: "head held", script: "attempt 1: stall after event 1", hits: 1},
	{name: "text", script: "attempt 1: stall after text 4", seen: "text", hits: 1},
	{name: "inside a call", script: "attempt 1: stall after tool-args 2", seen: "text", hits: 1, calls: true},
	{name: "call durable, unsent", script: "attempt 1: pace 50ms", seen: "call", hits: 1, same: true, acked: true, calls: true},
	{name: "call sent", script: "attempt 1: stall before finish", seen: "call", hits: 1, same: true, calls: true},
	{name: "finish sent", script: "attempt 1: stall after finish", seen: "finish", hits: 1, same: true},
	{name: "recovery waiting", script: "attempt 1: rst after text 4|attempt 2: status 529 retry-after 50", seen: "text", hits: 2},
	{name: "seam open", script: "attempt 1: rst after text 4|attempt 2: seam echo-tail 30; stall after text 1", seen: "text", hits: 2},
}

// killing bounds how many processes are killed at once, so that a busy machine is not
// taken for a dead one.
const killing = 8

// A proxy is killed with -9 in each phase of a turn, and the client asks another
// replica, which shares nothing with it but Redis: the message is the one it would
// have been, the calls are those that the client saw.
func TestKilledProcessTurnsGoOnElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are killed")
	}
	store, path := startRedis(t, "redis-server"), binary(t)
	provider := newProvider(t, faultinject.OpenAI).provider
	two := serveProcess(t, path, "redis://"+store.addr, provider.URL())
	killEverywhere(t, deathPhases, tongues, func(t *testing.T, c *killed) {
		c.provider, c.two = provider, func() *replicaProcess { return two }
		if !c.ph.acked {
			c.one = serveProcess(t, path, "redis://"+store.addr, provider.URL())
			c.die = c.one.kill
			return
		}
		p := newPipe(t, store.addr)
		c.one = serveProcess(t, path, "redis://"+p.addr(), provider.URL())
		c.die = func() { p.listen(onceDurable(t, store.addr, c.q.run, c.one.kill)) }
	})
}

// The same without Redis: the process is started again, on the same directory.
func TestKilledProcessTurnsGoOnInItsSuccessor(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are killed")
	}
	path := binary(t)
	provider := newProvider(t, faultinject.OpenAI).provider
	var phases []deathPhase
	for _, ph := range deathPhases {
		if !ph.acked {
			phases = append(phases, ph)
		}
	}
	killEverywhere(t, phases, tongues[:4], func(t *testing.T, c *killed) {
		dir := "file:" + t.TempDir()
		c.provider, c.one = provider, serveProcess(t, path, dir, provider.URL())
		c.die = c.one.kill
		c.two = func() *replicaProcess { return serveProcess(t, path, dir, provider.URL()) }
	})
}

// killEverywhere plays every phase in every dialect, and prints a table.
func killEverywhere(t *testing.T, phases []deathPhase, in []tongue, stage func(*testing.T, *killed)) {
	rows := make([]string, len(phases)*len(in))
	places := make(chan struct{}, killing)
	t.Run("killed", func(t *testing.T) {
		for i := range phases {
			for j := range in {
				ph, d := &phases[i], &in[j]
				row := &rows[i*len(in)+j]
				if ph.calls && d.name == "completions" {
					*row = fmt.Sprintf("%-21s %-13s no such phase: there are no calls", ph.name, d.name)
					continue
				}
				*row = fmt.Sprintf("%-21s %-13s no result", ph.name, d.name)
				t.Run(ph.name+", "+d.name, func(t *testing.T) {
					t.Parallel()
					places <- struct{}{}
					defer func() { <-places }()
					c := &killed{ph: ph, q: question{
						in: d, prompt: "This is the case of " + ph.name + ".", answer: "tool",
						run: fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(strings.ReplaceAll(ph.name, ",", ""), " ", "-"), d.name, turns.Add(1)),
					}}
					stage(t, c)
					*row = fmt.Sprintf("%-21s %-13s %s", ph.name, d.name, c.play(t))
				})
			}
		}
	})
	t.Logf("\n%-21s %-13s %8s %7s %-9s %s\n%s", "killed at", "dialect", "attempts", "seen", "repaid", "message", strings.Join(rows, "\n"))
}

// killed is one case.
type killed struct {
	ph       *deathPhase
	q        question
	provider *faultinject.Server
	one      *replicaProcess
	die      func()                 // one, now or when it is time
	two      func() *replicaProcess // once one is dead
}

// ended is how a request ended.
type ended struct {
	h   heardTurn
	err error
}

func (c *killed) play(t *testing.T) string {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	uncut := c.q
	uncut.run += "-uncut"
	want, err := uncut.ask(ctx, c.provider.URL(), nil)
	if err != nil || want.finish == "" || len(want.calls) == 0 && c.ph.calls {
		t.Fatalf("the turn that nobody disturbs is %v, %v", want, err)
	}
	first := c.dieAt(ctx, t)
	two := c.two()
	got, err := c.q.ask(ctx, two.base, nil)
	if err != nil {
		t.Fatalf("the retry: %v\n%s", err, two.log)
	}
	if got.text != want.text || got.finish != want.finish || len(got.calls) != len(want.calls) {
		t.Errorf("the retry got %v\nuncut it is %v", got, want)
	}
	for i, w := range want.calls {
		if g := got.calls[i]; g.name != w.name || g.args != w.args || g.id == "" && w.id != "" {
			t.Errorf("call %d is %v, uncut it is %v", i, g, w)
		}
	}
	if !strings.HasPrefix(got.text, first.text) {
		t.Errorf("the client had read %q, the retry begins %q", first.text, got.text)
	}
	for i, had := range first.calls { // its last bytes may have died with the process
		if g := got.calls[i]; g.id != had.id || g.name != had.name || !strings.HasPrefix(g.args, had.args) {
			t.Errorf("the client had seen call %v, the retry has %v", had, g)
		}
	}
	xs := c.exchanges(ctx, t)
	repaid := 0
	for _, x := range xs[1:] {
		if x.Status == http.StatusOK {
			repaid += len(x.Body) / 4 // about four bytes a token
		}
	}
	if c.ph.same && repaid > 0 {
		t.Errorf("the provider was asked again: %s\n%s", story(xs), two.log.of(c.q.run))
	}
	return fmt.Sprintf("%8d %5d B %6d    as uncut", len(xs), len(first.text), repaid)
}

// dieAt has the first replica die in the phase, and returns what its client has read.
func (c *killed) dieAt(ctx context.Context, t *testing.T) heardTurn {
	reached, over := make(chan struct{}), make(chan ended, 1)
	asked := c.q
	asked.script = c.ph.script
	go func() {
		told := false
		h, err := asked.ask(ctx, c.one.base, func(h *heardTurn) bool {
			if !told && c.ph.seen != "" && h.has(c.ph.seen) {
				told = true
				close(reached)
			}
			return false
		})
		over <- ended{h, err}
	}()
	if c.ph.seen != "" {
		select {
		case <-reached:
		case e := <-over:
			t.Fatalf("before the phase was reached: %v, %v\n%s", e.h, e.err, c.one.log)
		}
	}
	if _, err := c.provider.WaitLog(ctx, func(l []faultinject.Exchange) bool { return len(c.mine(l)) == c.ph.hits }); err != nil {
		t.Fatalf("the provider has not come so far: %v", err)
	}
	c.die()
	first := <-over
	if (first.h.finish == "" || c.ph.acked) && first.err == nil {
		t.Fatalf("the killed proxy's stream ended well: %v\n%s", first.h, c.one.log)
	}
	return first.h
}

// onceDurable returns what is to be called between the effect of each write and its
// acknowledgement: it calls do when Redis has the end of the run's call.
func onceDurable(t *testing.T, addr, run string, do func()) func() {
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	key := logOf(t, client, run)
	return func() {
		log, _ := client.Get(t.Context(), key).Bytes()
		s, err := turn.Replay(log[:turn.Whole(log)])
		if err != nil {
			return
		}
		for i := range s.Blocks {
			if s.Blocks[i].Kind == turn.Call && s.Blocks[i].Closed {
				do()
			}
		}
	}
}

// logOf is the key of the log of a run's turn.
func logOf(t *testing.T, c *redis.Client, run string) string {
	keys, err := c.Keys(t.Context(), "unbroken:{*}").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if values, _ := c.HVals(t.Context(), key).Result(); strings.Contains(strings.Join(values, ""), run) {
			return key + ":log"
		}
	}
	t.Fatalf("Redis has nothing of %s", run)
	return ""
}

func (c *killed) mine(l []faultinject.Exchange) (xs []faultinject.Exchange) {
	for _, x := range l {
		if x.Header.Get(faultinject.HeaderTurn) == c.q.run {
			xs = append(xs, x)
		}
	}
	return xs
}

// exchanges are the requests of the turn, once they have ended.
func (c *killed) exchanges(ctx context.Context, t *testing.T) []faultinject.Exchange {
	list, err := c.provider.WaitLog(ctx, func(l []faultinject.Exchange) bool {
		for _, x := range c.mine(l) {
			if x.Ending == "" {
				return false
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return c.mine(list)
}
