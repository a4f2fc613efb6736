package proxy

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/ledger"
	"github.com/unbroken-llm/unbroken/turn"
)

// commit tells the ledger that the turn has ended, when first lets it. done is closed
// when it is told, which is waited for a moment: an application may ask for the batch as
// soon as it has it.
func (p *page) commit(said *turn.Snapshot, first *lead) (done <-chan struct{}) {
	p.settled = true
	c := p.step(said)
	told := make(chan struct{})
	p.srv.behindLed(first, func(ctx context.Context, ours bool) {
		defer close(told)
		p.mu.Lock()
		defer p.mu.Unlock()
		if !ours {
			// Another connection has taken the turn over, and its end is not this one.
			p.unread()
			return
		}
		c.Lineage, c.Since = lineage(p.past.Now), p.since
		err := p.end(ctx, c)
		p.missing(err)
		p.told(err)
	})
	return told
}

// step is what is known of a finished turn by itself.
func (p *page) step(said *turn.Snapshot) ledger.Commit {
	c := ledger.Commit{
		Model: p.req.asks.Model, Finish: said.End().Reason, Paused: said.End().Reason == "pause_turn", Calls: callsOf(said), Message: messageOf(said),
	}
	if heir, ok := p.req.speaks.(dialect.Lineage); ok && len(c.Calls) > 0 {
		if id := heir.Known(p.req.plain, said); id != "" {
			c.Alias = lineage(dialect.After(id))
		}
	}
	return c
}

// maxRead bounds what is read of an ordinary answer, in bytes.
const maxRead = 16 << 20

var errUnread = errors.New("an answer could not be read")

// learn is commit for an ordinary answer. One that cannot be read may have asked for
// anything.
func (p *page) learn(answer []byte, first *lead) (done <-chan struct{}) {
	if len(answer) <= maxRead {
		if said, ok := dialect.Read(p.req.speaks, p.req.asks, answer); ok {
			return p.commit(said, first)
		}
	}
	p.settled = true
	p.srv.behind(func(context.Context) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.missing(errUnread)
		p.told(errUnread)
	})
	return nil
}

// close is told the end of a stream whose turn was not committed. nothing: the client
// has nothing of it that it could act on.
func (p *page) close(nothing bool) {
	if p == nil || p.settled {
		return
	}
	p.settled = true
	p.srv.behind(func(ctx context.Context) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case !nothing:
			p.unread()
		case nothing && p.noted:
			_, err := p.tell(ctx, ledger.Lapse{Lineage: lineage(p.past.Now)})
			p.told(err)
		}
	})
}

// unread is the end of a turn that is not this connection's to tell, of which the client
// has something; p.mu is held. A run that knows that it was asked for needs no other word.
func (p *page) unread() {
	if !p.noted {
		p.missing(errUnread)
	}
}

// missing remembers whether the turn is one that its run lacks; p.mu is held.
func (p *page) missing(err error) {
	if err != nil && p.came && p.run == nil && p.parent == "" {
		return // there is no run that could lack it, and nothing is known of one
	}
	p.srv.missed.note(p.srv, p.key, lostTurn{who: p.who, lineage: lineage(p.past.Now)}, err)
}

// end commits the step to the run that the request went on with, to a branch of it
// if another request was faster, or to a new one.
func (p *page) end(ctx context.Context, c ledger.Commit) error {
	if !p.came { // the ledger was away; it may be back
		if err := p.arrive(ctx, false); err != nil {
			return err
		}
	}
	if p.run == nil && len(c.Calls) == 0 && !p.req.runNamed() && p.parent == "" {
		return nil // no run, and no reason for one
	}
	if p.run != nil {
		// Commit again what is there already before anything else: the same turn
		// may come from two connections.
		c.Supersede = p.lost(c)
		_, err := p.tell(ctx, c)
		var no *ledger.Refusal
		if !errors.As(err, &no) {
			return err
		}
		if !errors.Is(err, ledger.ErrIllegal) && !errors.Is(err, ledger.ErrEnded) {
			return err
		}
		if p.noted {
			_, err = p.tell(ctx, ledger.Lapse{Lineage: c.Lineage}) // of this run it is no turn
			p.told(err)
		}
		p.beside(p.run.ID)
	}
	if _, err := p.tell(ctx, p.beginning()); err != nil {
		return err
	}
	_, err := p.tell(ctx, c)
	return err
}

// lost reports whether c takes the place of the open batch: the run's process has asked
// for the same turn again, so that it does not have the one that was committed, and
// nothing of that one was begun. What an unclaimed run does twice are two branches.
func (p *page) lost(c ledger.Commit) bool {
	open := p.run.Open()
	return open != nil && p.run.Fence != 0 && open.Lineage == c.Lineage &&
		!slices.ContainsFunc(open.Calls, func(c ledger.Call) bool { return c.State != ledger.Requested })
}

// numbered makes ids of names, where the wire has no ids and a name may repeat.
func numbered(calls []string) []string {
	out := make([]string, 0, len(calls))
	for _, c := range calls {
		id := c
		for n := 2; slices.Contains(out, id); n++ {
			id = c + "#" + strconv.Itoa(n)
		}
		out = append(out, id)
	}
	return out
}

// callsOf are the calls of a finished turn that its application is to execute.
func callsOf(said *turn.Snapshot) (out []ledger.Asked) {
	var ids []string
	var blocks []*turn.Block
	for i := range said.Blocks {
		b := &said.Blocks[i]
		if !b.IsCall() || !b.Live() || !b.Complete() {
			continue
		}
		id := b.ID
		if id == "" {
			id = b.Name
		} else if slices.Contains(ids, id) {
			continue // the same id twice in one turn is one call
		}
		ids, blocks = append(ids, id), append(blocks, b)
	}
	for i, id := range numbered(ids) {
		out = append(out, ledger.Asked{ID: id, Name: blocks[i].Name, Args: ledger.Sum(blocks[i].Arguments())})
	}
	return out
}

// messageOf is the digest of what the client has of a message.
func messageOf(said *turn.Snapshot) ledger.Digest {
	var b []byte
	for i := range said.Blocks {
		block := &said.Blocks[i]
		if !block.Live() {
			continue
		}
		b = strconv.AppendInt(b, int64(block.Kind), 10)
		for _, part := range [][]byte{[]byte(block.ID), []byte(block.Name), block.Text} {
			b = strconv.AppendInt(append(b, ' '), int64(len(part)), 10)
			b = append(append(b, ':'), part...)
		}
	}
	return ledger.Sum(b)
}

// digestOf is the digest of a result as the wire has it. Its content is the
// application's affair; what counts is which call of which turn it answers.
func digestOf(r dialect.Round, i int) ledger.Digest {
	return ledger.Sum([]byte(lineage(r.Before) + " " + r.Calls[i]))
}
