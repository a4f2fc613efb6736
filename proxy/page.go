package proxy

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/ledger"
)

// page is what the ledger learns of one request (DESIGN §9): the results that it
// carries, when it comes, and the step that its answer is, when that ends. The
// stream never waits for the ledger but for the moment before its end leaves, and
// then not longer than for a checkpoint.
type page struct {
	srv   *Server
	req   *request
	who   checkpoint.Scope
	teach dialect.Historian

	settled bool // driver only: the end of the turn was told, or could not be

	mu    sync.Mutex // what follows is written in the order of the request's own facts
	past  dialect.History
	came  bool // arrive has come to its end
	noted bool // the run knows that the turn was asked for
	since int  // how many steps the run had then
	run   *ledger.Run
	key   ledger.RunKey
	id    checkpoint.RunID
	// parent is the run that this one goes on from, if it is to be a new one.
	parent checkpoint.RunID
}

// FlagUnanswered marks a run whose next inference was asked for without the results
// of its open batch.
const FlagUnanswered = "an inference began without the results of an open batch"

// branchMark is between the id of a run and what tells its branches apart.
const branchMark = "~"

// turnPage opens the page of a request, nil where nothing is to be learned: of a
// caller that can neither be told apart nor named its run, and of requests in which
// no tool plays a part.
func (s *Server) turnPage(r *request) *page {
	p := s.newPage(r)
	if p == nil {
		return nil
	}
	p.mu.Lock() // the end of the turn waits for its beginning
	s.behind(func(ctx context.Context) {
		defer p.mu.Unlock()
		// A long history takes milliseconds to read: the request is on its way
		// meanwhile.
		p.past = p.teach.History(r.plain)
		p.told(p.arrive(ctx, true))
	})
	return p
}

// newPage is a page on which nothing stands yet.
func (s *Server) newPage(r *request) *page {
	h, ok := r.speaks.(dialect.Historian)
	if s.ledger == nil || !ok || !r.runNamed() && !r.asks.Tools && !r.answers {
		return nil
	}
	who := s.caller(r)
	if !r.runNamed() && who == (checkpoint.Scope{}) {
		return nil
	}
	return &page{srv: s, req: r, who: who, teach: h}
}

// runNamed reports whether the caller named its run: an Idempotency-Key names one turn.
func (r *request) runNamed() bool { return r.header.Has(headerRun) }

// told counts what the ledger did not take.
func (p *page) told(err error) {
	if err != nil {
		p.srv.counts.unledgered.Add(1)
		p.srv.cfg.Log.Debug("the ledger did not take a fact", "run", string(p.req.run), "error", err.Error())
	}
}

// tell appends an entry of the sidecar's.
func (p *page) tell(ctx context.Context, a ledger.Act) (*ledger.Run, error) {
	r, _, err := p.entry(ctx, a)
	return r, err
}

func (p *page) entry(ctx context.Context, a ledger.Act) (*ledger.Run, ledger.Effect, error) {
	e := ledger.Entry{At: time.Now(), Do: a}
	if c, ok := a.(ledger.Commit); ok && c.Supersede {
		e.Expect = p.run.Version // nothing of it was begun: if that is so still
	}
	r, effect, err := ledger.Append(ctx, p.srv.ledger, p.key, p.who, e)
	if errors.Is(err, ledger.ErrUnconfirmed) {
		err = nil // it is written; whether it lasts is for those to know who act on it
	}
	return r, effect, err
}

// arrive finds the run that the request goes on with, and tells it the results. asks:
// the turn is to come, of which the run is told first: whoever reads it before the turn
// is recorded, or after the process died that was to do so, must not take it for one
// that waits to be asked. An application that reports needs no such word, unless its
// history is none of the run's (it was compacted, say): then by nothing else is a turn
// known that the run lacks, to whoever comes to it after that process died.
func (p *page) arrive(ctx context.Context, asks bool) error {
	r, err := p.find(ctx)
	switch {
	case err != nil:
		return err
	case r == nil:
		p.came = true
		return nil
	case r.State == ledger.Ended:
		p.beside(r.ID)
		p.came = true
		return nil
	}
	p.run = r
	if asks {
		p.since = r.Dropped + len(r.Steps)
	}
	if last := r.Last(); asks && (!r.Reports || last != nil && !(p.past.HasPrior && last.Before(lineage(p.past.Prior)))) {
		if p.run, err = p.tell(ctx, ledger.Infer{Lineage: lineage(p.past.Now)}); err != nil {
			return err
		}
		p.noted = true
	}
	if err := p.results(ctx); err != nil {
		return err
	}
	p.came = true
	if open := p.run.Open(); open != nil && open.Lineage != lineage(p.past.Now) {
		p.run, err = p.tell(ctx, ledger.Flag{What: FlagUnanswered})
	}
	return err // or the turn of the open batch is asked for once more
}

// results tells what the request answers of the open batch. Its calls are named by their
// operations: ids may repeat in a later step, which another connection commits meanwhile.
func (p *page) results(ctx context.Context) error {
	round := p.past.Latest()
	for i, id := range numbered(round.Calls) {
		call := awaits(p.run.Open(), id)
		if call == nil {
			continue
		}
		after, err := p.tell(ctx, ledger.Result{Call: call.Op, Digest: digestOf(round, i)})
		if err != nil {
			return err
		}
		p.run = after
	}
	return nil
}

// find returns the run whose last step the request extends; else the named one, if
// it is the application's or has no step yet. nil: there is none, and p.id is what
// a new one is called.
func (p *page) find(ctx context.Context) (*ledger.Run, error) {
	p.id = p.req.run
	p.key = ledger.Key(p.who, p.id)
	if p.past.HasPrior {
		r, err := p.extended(ctx)
		if r != nil || err != nil {
			return r, err
		}
	}
	if !p.req.runNamed() {
		return nil, nil
	}
	switch r, err := p.load(ctx); {
	case err != nil || r == nil:
		return nil, err
	case r.Fence != 0 && r.State != ledger.Ended || r.Last() == nil:
		return r, nil
	}
	// Somebody else's history under the same name: another branch.
	p.beside(p.id)
	return nil, nil
}

// extended returns the newest run whose last step is the turn before this one, and
// asked for what the request answers.
func (p *page) extended(ctx context.Context) (*ledger.Run, error) {
	keys, err := p.srv.ledger.Find(ctx, p.who, lineage(p.past.Prior))
	if err != nil {
		return nil, err
	}
	var answered []string
	if round := p.past.Latest(); round.Before == p.past.Prior {
		answered = numbered(round.Calls)
	}
	for _, key := range keys {
		got, err := p.srv.ledger.Load(ctx, key)
		if errors.Is(err, ledger.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		last := got.Run.Last()
		if p.req.runNamed() && got.Run.ID != p.req.run && !strings.HasPrefix(string(got.Run.ID), string(p.req.run)+branchMark) ||
			slices.ContainsFunc(answered, func(id string) bool { return !asks(last, id) }) {
			continue
		}
		p.key, p.id = key, got.Run.ID
		return got.Run, nil
	}
	return nil, nil
}

// beginning begins the run that the page is of.
func (p *page) beginning() ledger.Begin {
	return ledger.Begin{ID: p.id, Parent: p.parent, Dialect: p.req.speaks.Name(), Model: p.req.asks.Model}
}

// beside makes the page that of a new run, which goes on from another.
func (p *page) beside(of checkpoint.RunID) {
	p.parent, p.id = of, p.branch(of)
	p.key = ledger.Key(p.who, p.id)
}

// branch names what goes on from a run beside it: the same for the same history, so
// that it is one branch however often it is asked for.
func (p *page) branch(of checkpoint.RunID) checkpoint.RunID {
	base, _, _ := strings.Cut(string(of), branchMark)
	name := base + branchMark + hex.EncodeToString(p.past.Now[:6])
	if _, err := checkpoint.ParseRunID(name); err != nil {
		return checkpoint.RunID("run" + branchMark + hex.EncodeToString(p.past.Now[:6]))
	}
	return checkpoint.RunID(name)
}

func lineage(p dialect.Past) string { return hex.EncodeToString(p[:]) }

// awaits returns call id of a step, if it has neither a result nor was given up.
func awaits(s *ledger.Step, id string) *ledger.Call {
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.Calls, func(c ledger.Call) bool { return c.ID == id && !c.State.Terminal() })
	if i < 0 {
		return nil
	}
	return &s.Calls[i]
}

// asks reports whether a step asked for call id.
func asks(s *ledger.Step, id string) bool {
	return s != nil && slices.ContainsFunc(s.Calls, func(c ledger.Call) bool { return c.ID == id })
}
