package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/unbroken-llm/unbroken/ledger"
)

// proc is a process of the application. It follows the advice, one act a turn, and
// keeps nothing but its claim, its keys and what it is about to do.
type proc struct {
	w     *world
	store ledger.Store
	name  string
	fence uint64
	key   string // of its claim
	todo  []func() bool
}

// tell appends an entry, again when the answer was lost, and reports whether it is
// acknowledged.
func (p *proc) tell(fence uint64, key string, a ledger.Act) (*ledger.Run, error) {
	for range 3 {
		r, _, err := ledger.Append(context.Background(), p.store, p.w.key, p.w.scope, ledger.Entry{At: p.w.now, Fence: fence, Key: key, Do: a})
		if errors.Is(err, ledger.ErrFenced) {
			p.w.Fenced++
		}
		if !errors.Is(err, ledger.ErrUnavailable) {
			return r, err
		}
	}
	return nil, ledger.ErrUnavailable
}

func (p *proc) act() {
	if len(p.todo) > 0 {
		next := p.todo[0]
		p.todo = p.todo[1:]
		if !next() {
			p.todo = nil
		}
		return
	}
	if p.fence == 0 {
		p.arrive()
		return
	}
	got, err := p.store.Load(context.Background(), p.w.key)
	if err != nil {
		p.w.Fatalf("seed %d: load: %v", p.w.seed, err)
	}
	p.follow(got.Run, ledger.Recover(got.Run, ledger.Asker{Fence: p.fence}))
}

// arrive begins the run, or takes it over.
func (p *proc) arrive() {
	if _, err := p.tell(0, "", ledger.Begin{ID: "run"}); err != nil {
		return
	}
	r, err := p.tell(0, p.key, ledger.Claim{Holder: p.name})
	if err != nil {
		return
	}
	p.fence = r.Fence
	p.w.Takeovers++
	if len(r.Steps) == 0 && p.w.reports {
		_, _ = p.tell(p.fence, "", ledger.Declare{Reports: true, Policies: []ledger.ToolPolicy{
			{Tool: "read", Policy: ledger.Policy{Recovery: ledger.Replay}}, {Tool: "job", Policy: ledger.Policy{Recovery: ledger.Reconnect, Attempts: 2}},
		}})
	}
}

func (p *proc) follow(r *ledger.Run, a ledger.Answer) {
	switch a.Advice {
	case ledger.StandDown:
		if p.w.rng.IntN(4) == 0 {
			*p = *p.w.spawn(p.name) // insists, as a restarted process does
		}
	case ledger.NextStep:
		p.infer(r)
	case ledger.SettleBatch, ledger.AwaitTicket, ledger.Unknown:
		if a.Advice == ledger.Unknown {
			p.w.Unknown++
		}
		if len(a.Calls) == 0 {
			p.redeem(r, a.Ticket.ID)
			return
		}
		p.settle(r, a)
	case ledger.Redeliver:
	default:
		p.w.Fatalf("seed %d: %s for a run", p.w.seed, a.Advice)
	}
}

// infer asks the model; the sidecar commits what it says.
func (p *proc) infer(r *ledger.Run) {
	n := r.Dropped + len(r.Steps) + 1
	if n > 5 {
		return
	}
	c := ledger.Commit{Message: ledger.Sum(fmt.Appendf(nil, "message %d", n)), Lineage: fmt.Sprintf("line %d", n)}
	if n < 5 || p.w.rng.IntN(2) == 0 {
		for i := range 1 + p.w.rng.IntN(3) {
			c.Calls = append(c.Calls, ledger.Asked{ID: fmt.Sprintf("call_%d", i), Name: []string{"pay", "read", "job"}[p.w.rng.IntN(3)]})
		}
	}
	_, _ = p.tell(0, "", c)
}

// settle takes up one open call.
func (p *proc) settle(r *ledger.Run, a ledger.Answer) {
	c := a.Calls[p.w.rng.IntN(len(a.Calls))]
	key := fmt.Sprintf("%s-%d", p.name, p.w.rng.Uint64())
	switch c.Advice {
	case ledger.Execute, ledger.ReplayCall, ledger.ReconnectCall:
		if c.Advice == ledger.Execute && p.w.rng.IntN(4) == 0 {
			_, _ = p.tell(p.fence, key, ledger.Wait{Call: c.Op, Ticket: ledger.Ticket{ID: "ticket-" + key, Kind: "approval"}})
			return
		}
		if c.Advice != ledger.Execute {
			p.w.Replays++
		}
		if _, err := p.tell(p.fence, key, ledger.Start{Call: c.Op, N: c.Attempt}); err != nil {
			return // not acknowledged: nothing was begun
		}
		p.run(c, c.Advice == ledger.ReconnectCall)
	case ledger.GiveUp:
		_, _ = p.tell(p.fence, "", ledger.Lose{Call: c.Op, Why: "its process is gone"})
	case ledger.AwaitTicket:
		p.redeem(r, c.Ticket)
	case ledger.Unknown:
		if r.Reports {
			p.w.Fatalf("seed %d: unknown in a run that reports: %s", p.w.seed, c.Reason)
		}
		if p.w.rng.IntN(6) == 0 {
			_, _ = p.tell(p.fence, "", ledger.Lose{Call: c.Op, Why: "a person says so"})
		}
	case ledger.Keep, ledger.InFlight:
	default:
		p.w.Fatalf("seed %d: %s for a call", p.w.seed, c.Advice)
	}
}

// run has the effect, and then tells of it; it may crash between the two. Asking
// what became of an operation has no effect of its own if it had it already.
func (p *proc) run(c ledger.CallAnswer, ask bool) {
	p.todo = []func() bool{
		func() bool {
			if !ask || p.w.effects[c.Op] == 0 {
				p.w.effects[c.Op]++
				p.w.Effects++
			}
			return true
		},
		func() bool {
			_, err := p.tell(p.fence, "", ledger.Result{Call: c.Op, Content: []byte("result of " + c.Op)})
			return err == nil
		},
	}
}

// redeem goes on with a ticket, which its issuer may do for anyone who asks.
func (p *proc) redeem(r *ledger.Run, id string) {
	t := ticketOf(r, id)
	key := fmt.Sprintf("%s-%d", p.name, p.w.rng.Uint64())
	_, err := p.tell(p.fence, key, ledger.Resume{Ticket: id, Kind: t.Kind})
	if err != nil {
		return
	}
	p.w.Redeemed++
	p.w.went[id]++
	p.run(ledger.CallAnswer{Op: t.Call}, false)
}

// ticketOf returns a ticket that r has.
func ticketOf(r *ledger.Run, id string) ledger.Ticket {
	for _, t := range r.Tickets {
		if t.ID == id {
			return t
		}
	}
	panic("BUG: storetest: a ticket that nobody issued: " + id)
}

// attempts is how often a call may be started, the model's own way.
func attempts(p ledger.Policy) int {
	switch {
	case p.Recovery == ledger.NeverReplay:
		return 1
	case p.Attempts == 0:
		return 3
	}
	return p.Attempts
}
