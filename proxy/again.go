package proxy

import (
	"context"
	"errors"

	"github.com/unbroken-llm/unbroken/ledger"
	"github.com/unbroken-llm/unbroken/turn"
)

// A turn that had ended before a connection came to it is in the ledger, unless whoever
// drove it died between its checkpoint and its run's record: then nobody but that
// connection will tell of it. Or it is long past, asked for once more by a client that
// has gone on since. So it is told to none but a run that awaits it; it begins no branch,
// and takes nobody's place.

// chronicle tells the ledger of a turn that ends with this batch of effects. told is
// closed when it is told, nil if there is nothing to be told.
func (d *drive) chronicle(first *lead) (told <-chan struct{}) {
	switch {
	case d.fx.Turn != nil && d.fx.Again:
		if d.tail != nil && d.page == nil {
			d.page = d.srv.pageAgain(d.req)
		}
		if d.page != nil {
			told = d.page.again(d.fx.Turn)
		}
	case d.page == nil:
	case d.fx.Turn != nil:
		told = d.page.commit(d.fx.Turn, first)
	case d.fx.Answer:
		told = d.page.learn(d.fx.Client, first)
	}
	return told
}

// pageAgain is the page of a request whose turn has ended already: neither that it was
// asked for nor what it answers is news.
func (s *Server) pageAgain(r *request) *page {
	p := s.newPage(r)
	if p != nil {
		p.settled = true // if it cannot be told again, its run is no worse off
	}
	return p
}

// again is commit for a turn that had ended before.
func (p *page) again(said *turn.Snapshot) (done <-chan struct{}) {
	c := p.step(said)
	c.Again = true
	told := make(chan struct{})
	p.srv.behind(func(ctx context.Context) {
		defer close(told)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.past = p.teach.History(p.req.plain)
		c.Lineage = lineage(p.past.Now)
		if p.past.HasPrior {
			c.Prior = lineage(p.past.Prior)
		}
		effect, err := p.supply(ctx, c)
		if effect == ledger.New || err != nil {
			p.srv.missed.note(p.srv, p.key, lostTurn{who: p.who, lineage: c.Lineage, again: true}, err)
		}
		p.told(err)
	})
	return told
}

// supply commits a turn to the run that awaits it, if there is one.
func (p *page) supply(ctx context.Context, c ledger.Commit) (ledger.Effect, error) {
	r, err := p.find(ctx)
	if err == nil && r != nil && r.State == ledger.Ended {
		// What goes on from an ended run is a run of its own, and has one name.
		p.beside(r.ID)
		r, err = p.load(ctx)
	} else if r == nil && p.parent != "" {
		return 0, nil // another history under the run's name: a branch, or long past
	}
	switch {
	case err != nil:
		return 0, err
	case r != nil:
	case len(c.Calls) == 0 && !p.req.runNamed() && p.parent == "":
		return 0, nil // no run, and no reason for one
	case p.past.HasPrior && !p.req.runNamed() && p.parent == "":
		return 0, nil // a run that has gone past it is not found by what came before it, either
	default:
		if r, err = p.tell(ctx, p.beginning()); err != nil {
			return 0, err
		}
	}
	p.run = r
	if open := r.Open(); open != nil && open.Before(c.Prior) {
		if err := p.results(ctx); err != nil {
			return 0, err
		}
	}
	_, effect, err := p.entry(ctx, c)
	var no *ledger.Refusal
	if errors.As(err, &no) {
		return 0, nil // its place is taken, or not free yet
	}
	return effect, err
}

// load returns the run that the page is of, nil if there is none.
func (p *page) load(ctx context.Context) (*ledger.Run, error) {
	got, err := p.srv.ledger.Load(ctx, p.key)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	return got.Run, err
}
