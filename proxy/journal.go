package proxy

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/relay"
)

const (
	// claimWait bounds what a slow store may cost a request at its start.
	claimWait = 100 * time.Millisecond
	// storeWait bounds one command behind a stream's back.
	storeWait = 2 * time.Second
	// maxBehind bounds what is kept for a store that does not answer; beyond it
	// the checkpoint of this turn is given up, not the stream.
	maxBehind = 4 << 20
)

// journal writes one turn's checkpoint; a nil one writes none. A store may be slow or gone: only bytes
// that would make a client act wait for it, and not for long (DESIGN §8).
type journal struct {
	// immutable
	srv    *Server
	store  checkpoint.Store
	direct bool              // the store is memory, which does not block
	head   checkpoint.Record // the turn's identity
	seat   *seat             // nil: nobody follows this turn

	// set by hold, or under mu by claim
	fence checkpoint.Fence
	w     checkpoint.Writer // of a store that writes behind; nil: this does

	mu     sync.Mutex
	life   *lifeline
	open   bool // there is a record to write
	lost   bool // there is no checkpoint, or none any more
	late   bool // the store was away when the turn began; see late.go
	fenced bool
	busy   bool                  // a writer goroutine runs
	behind []byte                // not yet written
	at     int64                 // its offset
	acked  chan struct{}         // closed when the writer has done what it can; nil while nobody waits
	after  func(context.Context) // to be done when nothing is behind
}

// newJournal is a journal of nothing, until hold.
func (s *Server) newJournal(r *request, fp checkpoint.Fingerprint, life *lifeline) *journal {
	return &journal{srv: s, store: s.store, direct: s.memory, life: life, head: checkpoint.Record{
		Run: r.run, Fingerprint: fp, Dialect: r.speaks.Name(), Route: r.to.Name, Model: r.asks.Model,
	}}
}

// hold begins to write the turn that f is the right to, and of which r is there.
func (j *journal) hold(f checkpoint.Fence, r checkpoint.Record) {
	j.fence = f
	if b, ok := j.store.(checkpoint.Behind); ok {
		j.w = b.Hold(f, j.srv.owner, r, j.lose)
	}
	j.mu.Lock()
	j.open = true
	j.mu.Unlock()
}

// unclaimed says that the turn cannot be had.
func (j *journal) unclaimed(err error) {
	j.srv.counts.unclaimed.Add(1)
	if !errors.Is(err, checkpoint.ErrUnavailable) && !errors.Is(err, checkpoint.ErrOwned) {
		j.srv.cfg.Log.Warn("a turn has no checkpoint", "run", string(j.head.Run), "error", err.Error())
	}
	j.mu.Lock()
	j.lost = true
	j.mu.Unlock()
}

func (j *journal) isLost() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lost
}

// held reports whether the turn is written down, so that others can know of it.
func (j *journal) held() bool {
	if j == nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open && !j.lost
}

// roused says whom to stop when the turn is taken.
func (j *journal) roused(l *lifeline) {
	j.mu.Lock()
	j.life = l
	j.mu.Unlock()
}

func (j *journal) stop(reason string) {
	j.mu.Lock()
	l := j.life
	j.mu.Unlock()
	l.stop(reason)
}

// lose is told by a store that writes behind.
func (j *journal) lose(err error) {
	j.mu.Lock()
	j.judge(err)
	fenced := j.fenced
	j.mu.Unlock()
	if fenced {
		j.stop(reasonFenced)
	}
}

// persist appends p, and where it must be durable waits for that as long as w does. It returns false when the turn has a newer owner, so that
// nothing more may leave.
func (j *journal) persist(p relay.Persist, w *allowance) bool {
	if j == nil || j.keep(p) {
		return true
	}
	if j.open && len(p.Log) > 0 {
		j.srv.counts.flushes.Add(1)
	}
	switch {
	case !j.open:
	case j.w != nil:
		j.pass(p, w)
	case j.direct:
		if len(p.Log) > 0 {
			j.appendNow(p)
		}
	default:
		if len(p.Log) > 0 {
			j.queue(p)
		}
		if p.Durable {
			j.await(w)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.fenced
}

// pass hands p to a store that writes behind.
func (j *journal) pass(p relay.Persist, w *allowance) {
	if len(p.Log) > 0 {
		j.w.Append(p.Offset, p.Log)
	}
	if !p.Durable || j.isLost() {
		return
	}
	switch err := j.w.Sync(w.left()); {
	case err == nil:
		w.acked = true
	case errors.Is(err, checkpoint.ErrFenced):
		j.lose(err)
	default:
		j.srv.counts.unacked.Add(1)
	}
}

func (j *journal) appendNow(p relay.Persist) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.lost {
		j.judge(j.store.Append(context.Background(), j.fence, p.Offset, p.Log))
		if j.seat != nil {
			j.seat.tell()
		}
	}
}

// judge takes a store's answer. mu is held.
func (j *journal) judge(err error) {
	switch {
	case err == nil, j.lost:
	case errors.Is(err, checkpoint.ErrFenced):
		j.fenced, j.lost = true, true
	default:
		j.lost = true
		j.srv.counts.dropped.Add(1)
	}
}

func (j *journal) queue(p relay.Persist) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.lost:
		return
	case len(j.behind)+len(p.Log) > maxBehind:
		j.lost, j.behind = true, nil
		j.srv.counts.dropped.Add(1)
		return
	}
	if len(j.behind) == 0 {
		j.at = p.Offset
	}
	j.behind = append(j.behind, p.Log...)
	j.startLocked()
}

func (j *journal) startLocked() {
	if j.busy {
		return
	}
	j.busy = true
	j.srv.work.Add(1)
	go j.write()
}

// write brings the store up to date, then ends. It is the only writer of its
// turn while it runs.
func (j *journal) write() {
	defer j.srv.work.Done()
	for {
		j.mu.Lock()
		if len(j.behind) == 0 || j.lost {
			after := j.after
			j.after, j.behind, j.busy = nil, nil, after != nil
			j.answer()
			lost := j.lost
			j.mu.Unlock()
			if after == nil {
				return
			}
			if !lost {
				ctx, cancel := context.WithTimeout(context.Background(), storeWait)
				after(ctx)
				cancel()
			}
			continue
		}
		p, at := j.behind, j.at
		j.behind, j.at = nil, at+int64(len(p))
		j.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), storeWait)
		err := j.store.Append(ctx, j.fence, at, p)
		cancel()
		j.mu.Lock()
		if errors.Is(err, checkpoint.ErrUnavailable) && j.after == nil {
			// The store may be back for the next flush; to append again what
			// did arrive does no harm.
			j.behind, j.at, j.busy = append(p, j.behind...), at, false
			j.answer()
			j.mu.Unlock()
			return
		}
		j.judge(err)
		fenced := j.fenced
		j.mu.Unlock()
		if fenced {
			j.stop(reasonFenced)
		}
	}
}

// answer tells a waiting driver that it need not wait any longer. mu is held.
func (j *journal) answer() {
	if j.acked != nil {
		close(j.acked)
		j.acked = nil
	}
}

// await waits until the store has everything, or as long as w does. Giving up is
// counted: what is promised about takeovers is promised for acknowledged closes.
func (j *journal) await(w *allowance) {
	j.mu.Lock()
	if !j.busy || j.lost {
		w.acked = !j.lost && len(j.behind) == 0
		j.mu.Unlock()
		return
	}
	if j.acked == nil {
		j.acked = make(chan struct{})
	}
	acked := j.acked
	j.mu.Unlock()
	if w.waits(acked) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if len(j.behind) == 0 && !j.lost {
			w.acked = true
			return
		}
	}
	j.srv.counts.unacked.Add(1)
}

// close settles the record by how the stream ended: a turn whose client has its
// end is finished, one that said nothing is forgotten, any other stays for whoever
// asks again.
func (j *journal) close(t *tale) {
	if j == nil {
		return
	}
	st := checkpoint.State{Attempt: t.sum.Attempts, Recoveries: t.sum.Recoveries, Causes: t.causes}
	forget := t.settles(&st)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.late {
		j.late, j.behind = false, nil
	}
	if !j.open || j.lost {
		return
	}
	switch {
	case j.w == nil:
	case forget:
		j.w.Forget()
		return
	default:
		j.w.Settle(st)
		return
	}
	end := func(ctx context.Context) error {
		if forget {
			return j.store.Delete(ctx, j.fence)
		}
		if err := j.store.Mark(ctx, j.fence, st); err != nil {
			return err
		}
		return j.store.Release(ctx, j.fence)
	}
	if j.direct {
		j.judge(end(context.Background()))
		return
	}
	j.after = func(ctx context.Context) {
		if end(ctx) != nil {
			j.srv.counts.dropped.Add(1)
		}
	}
	j.startLocked()
}

// settles says what becomes of the turn's record.
func (t *tale) settles(st *checkpoint.State) (forget bool) {
	switch {
	case t.outcome == "completed", t.outcome == "healed", t.outcome == "relayed", t.outcome == "replayed":
		st.Phase = checkpoint.Finished
	case t.end == relay.Clean && (strings.HasPrefix(t.outcome, "refused:") || strings.HasPrefix(t.outcome, "failed:")):
		return true
	case t.outcome == "client_gone", t.outcome == "slow_reader":
		st.Phase = checkpoint.Abandoned
	case t.outcome == "failed:"+reasonDraining:
		st.Phase = checkpoint.Live
	case t.end == relay.Clean: // a plan completed it
		st.Phase = checkpoint.Finished
	default:
		st.Phase = checkpoint.Broken
	}
	return false
}
