package gauge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// Breaks is the size of a load whose streams break: turns of prose at a pace, each with a
// script of its own that says how its attempts fare.
type Breaks struct {
	Wire    Wire
	Clients int           // turns at a time
	Turns   int           // in all, behind the warm-up
	Tokens  int           // of an answer, about
	Pace    time.Duration // between two events
	Think   time.Duration // of the provider before each answer and each continuation
	// Warm is how long all is well first, so that what is normal is known: Unbroken lets
	// recoveries out at a rate that follows from it.
	Warm time.Duration
	// Idle is the silence that the proxies which heal take for an interruption.
	Idle   time.Duration
	Prompt int // bytes
}

// played is a turn and what the provider noted of its attempts.
type played struct {
	*told
	n        int // of the turn, from 0; below it is the warm-up's
	attempts []faultinject.Exchange
}

// cut reports whether the provider did not say an attempt to its end.
func cut(x faultinject.Exchange) bool { return x.Ending != faultinject.Complete }

// stage is a provider that breaks, with a peer in front of it.
type stage struct {
	b        Breaks
	want     string // what a whole answer says
	provider *faultinject.Server
	front    *running
	ask      *asker
	close    func()
}

// open starts both.
func (b Breaks) open(p Peer) (_ *stage, err error) {
	s := &stage{b: b}
	var undo []func()
	s.close = func() {
		for _, f := range undo {
			defer f()
		}
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	c := faultinject.Config{Scenario: "long", LongTokens: b.Tokens, Pace: b.Pace}
	says, err := faultinject.Scenario("long", faultinject.Prompt{}, c)
	if err != nil {
		return nil, err
	}
	s.want = says.Text()
	if s.provider, err = faultinject.New(c); err != nil {
		return nil, err
	}
	s.provider.Start()
	undo = append(undo, func() { _ = s.provider.Close() })
	dir, err := os.MkdirTemp("", "unbroken-bench-")
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() { _ = os.RemoveAll(dir) })
	if p.With != nil && b.Idle > 0 {
		p = p.With("--idle", b.Idle.String())
	}
	if s.front, err = p.begin(dir, strings.TrimPrefix(s.provider.URL(), "http://")); err != nil {
		return nil, err
	}
	undo = append(undo, s.front.stop)
	if s.ask, err = newAsker(b.Wire, "http://"+s.front.addr, "bench", b.Clients); err != nil {
		return nil, err
	}
	undo = append(undo, s.ask.close)
	return s, nil
}

// model is one that each provider's strictness lets speak plainly.
func (b Breaks) model() string {
	if b.Wire == Messages {
		return "claude-sonnet-4-5"
	}
	return "gpt-4.1"
}

// turn plays one turn under a script; "" is that all is well.
func (s *stage) turn(ctx context.Context, name, script string) *told {
	lines := []string{"attempt *: pass"}
	if script != "" {
		lines = strings.Split(script, "\n")
	}
	for i := range lines {
		if s.b.Think > 0 {
			lines[i] = strings.Replace(lines[i], ": pass", ":", 1) + "; stall " + s.b.Think.String() + " at start"
			lines[i] = strings.Replace(lines[i], ":;", ":", 1)
		}
	}
	prompt := name + strings.Repeat(" x", s.b.Prompt/2)
	t := s.ask.ask(ctx, s.b.Wire.body(s.b.model(), true, prompt, 0), map[string]string{
		faultinject.HeaderTurn: name, faultinject.HeaderScript: strings.Join(lines, "|"),
	})
	if t.err == nil && t.text.String() != s.want {
		t.err = errors.New("the answer is not what the provider says")
	}
	return t
}

// play plays all turns, each with the script that it is given by its number, and returns those
// behind the warm-up with what the provider noted of them.
func (s *stage) play(ctx context.Context, script func(n int) string) ([]played, error) {
	var (
		mu   sync.Mutex
		all  []played
		next atomic.Int64
		wg   sync.WaitGroup
		warm = time.Now().Add(s.b.Warm)
	)
	for client := range s.b.Clients {
		wg.Go(func() {
			for i := 0; time.Now().Before(warm) && ctx.Err() == nil; i++ {
				s.turn(ctx, fmt.Sprintf("warm-%d-%d", client, i), "")
			}
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= s.b.Turns {
					return
				}
				t := s.turn(ctx, turnName(n), script(n))
				mu.Lock()
				all = append(all, played{told: t, n: n})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return all, s.remember(ctx, all)
}

func turnName(n int) string { return fmt.Sprintf("turn-%d", n) }

// remember waits until the provider has let go of everything, and adds what it noted.
func (s *stage) remember(ctx context.Context, all []played) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("the provider still talks to somebody"))
	defer cancel()
	log, err := s.provider.WaitLog(ctx, func(l []faultinject.Exchange) bool {
		for _, x := range l {
			if x.Ending == "" {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	of := map[string][]faultinject.Exchange{}
	for _, x := range log {
		name := x.Header.Get(faultinject.HeaderTurn)
		of[name] = append(of[name], x)
	}
	for i := range all {
		all[i].attempts = of[turnName(all[i].n)]
	}
	return nil
}
