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

// journal writes one turn's checkpoint. A store may be slow or gone: only bytes
// that would make a client act wait for it, and not for long (DESIGN §8).
type journal struct {
	// immutable
	srv    *Server
	store  checkpoint.Store
	direct bool // the store is our own memory, which does not block
	fence  checkpoint.Fence
	life   *lifeline

	mu     sync.Mutex
	lost   bool // there is no checkpoint, or none any more
	fenced bool
	busy   bool          // a writer goroutine runs
	behind []byte        // not yet written
	at     int64         // its offset
	acked  chan struct{} // closed when the writer has done what it can; nil while nobody waits
	state  checkpoint.State
	after  func(context.Context) // to be done when nothing is behind
}

// claim takes the turn. It never fails: a request whose turn cannot be claimed is
// served without a checkpoint.
func (s *Server) claim(r *request, life *lifeline) *journal {
	j := &journal{srv: s, store: s.store, direct: s.ownStore, life: life}
	head := checkpoint.Record{
		Run: r.run, Fingerprint: r.fingerprint(), Dialect: r.speaks.Name(), Route: r.to.Name, Model: r.asks.Model,
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimWait)
	defer cancel()
	key := checkpoint.Turn(s.scope(r.header), r.run, head.Fingerprint)
	fence, before, err := s.store.Claim(ctx, key, s.owner, head)
	if err == nil && before != nil {
		// The same request of the same run again. The newest connection has
		// the turn; what the older one stored is not this one's.
		if err = s.store.Delete(ctx, fence); err == nil {
			fence, _, err = s.store.Claim(ctx, key, s.owner, head)
		}
	}
	j.fence = fence
	if err != nil {
		s.counts.unclaimed.Add(1)
		j.lost = true
	}
	return j
}

// persist appends p. It returns false when the turn has a newer owner, so that
// nothing more may leave.
func (j *journal) persist(p relay.Persist) bool {
	if len(p.Log) > 0 {
		if j.direct {
			j.appendNow(p)
		} else {
			j.queue(p)
		}
	}
	if p.Durable && !j.direct {
		j.await()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.fenced
}

func (j *journal) appendNow(p relay.Persist) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.lost {
		j.judge(j.store.Append(context.Background(), j.fence, p.Offset, p.Log))
	}
}

// judge takes a store's answer. mu is held.
func (j *journal) judge(err error) {
	switch {
	case err == nil:
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
			j.life.stop(reasonFenced)
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

// await waits until the store has everything, or for AckWait. Giving up is
// counted: what is promised about takeovers is promised for acknowledged closes.
func (j *journal) await() {
	j.mu.Lock()
	if !j.busy || j.lost {
		j.mu.Unlock()
		return
	}
	if j.acked == nil {
		j.acked = make(chan struct{})
	}
	acked := j.acked
	j.mu.Unlock()
	t := time.NewTimer(j.srv.cfg.AckWait)
	defer t.Stop()
	select {
	case <-acked:
		j.mu.Lock()
		defer j.mu.Unlock()
		if len(j.behind) == 0 && !j.lost {
			return
		}
	case <-t.C:
	}
	j.srv.counts.unacked.Add(1)
}

// close settles the record by how the stream ended: a turn whose client has its
// end is finished, one that said nothing is forgotten, any other stays for
// whoever asks again.
func (j *journal) close(t *tale) {
	st := checkpoint.State{Attempt: t.sum.Attempts, Recoveries: t.sum.Recoveries, Causes: t.causes}
	end := func(ctx context.Context) error {
		switch {
		case t.outcome == "completed", t.outcome == "healed", t.outcome == "relayed":
			st.Phase = checkpoint.Finished
		case t.end == relay.Clean && (strings.HasPrefix(t.outcome, "refused:") || strings.HasPrefix(t.outcome, "failed:")):
			return j.store.Delete(ctx, j.fence)
		case t.outcome == "client_gone", t.outcome == "slow_reader":
			st.Phase = checkpoint.Abandoned
		case t.outcome == "failed:"+reasonDraining:
			st.Phase = checkpoint.Live
		case t.end == relay.Clean: // a plan completed it
			st.Phase = checkpoint.Finished
		default:
			st.Phase = checkpoint.Broken
		}
		if err := j.store.Mark(ctx, j.fence, st); err != nil {
			return err
		}
		return j.store.Release(ctx, j.fence)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lost {
		return
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
