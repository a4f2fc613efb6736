package redisstore

import (
	"sync/atomic"
	"time"
)

// counts only grow.
type counts struct {
	commands, failures, flushes, bytes atomic.Int64
	drops, fenced, restored            atomic.Int64
	unacked, reconnects                atomic.Int64
}

// Stats is how the store is doing, for metrics and readiness.
type Stats struct {
	// Away: Redis does not answer, or not usefully, since the time and for the
	// reason given. Calls are refused at once and writes wait.
	Away  bool
	Since time.Time
	Error string // the last failure, also when it is not away; no credentials

	Turns       int   // held by live streams, or not yet settled
	BehindTurns int   // of them, those that Redis does not have whole
	Behind      int64 // bytes that Redis does not have yet
	Kept        int64 // bytes of logs in memory
	// Lag is the age of the oldest byte that Redis does not have.
	Lag time.Duration

	// Since the start:
	Commands       int64 // scripts sent
	Failures       int64 // commands and pipelines that failed
	Flushes        int64 // pipelines of queued writes
	Bytes          int64 // of logs, acknowledged
	Drops          int64 // turns whose checkpoint was given up
	Fenced         int64 // turns that another claim took from us
	Restored       int64 // records written again that Redis had lost
	Unacknowledged int64 // Syncs that were given up
	Reconnects     int64 // times that all connections were dropped
}

// Stats returns how the store is doing now.
func (s *Store) Stats() Stats {
	st := Stats{
		Away:     s.away(),
		Error:    s.lastError(),
		Commands: s.counts.commands.Load(), Failures: s.counts.failures.Load(), Flushes: s.counts.flushes.Load(),
		Bytes: s.counts.bytes.Load(), Drops: s.counts.drops.Load(), Fenced: s.counts.fenced.Load(),
		Restored: s.counts.restored.Load(), Unacknowledged: s.counts.unacked.Load(), Reconnects: s.counts.reconnects.Load(),
	}
	s.lives.mu.Lock()
	st.Since = s.lives.down
	s.lives.mu.Unlock()
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	st.Turns, st.Kept = len(q.turns), q.bytes
	for w := range q.turns {
		if !w.unwritten() {
			continue
		}
		st.BehindTurns++
		st.Behind += w.end() - w.acked
		if !w.since.IsZero() {
			st.Lag = max(st.Lag, now.Sub(w.since))
		}
	}
	return st
}
