package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Append implements [checkpoint.Store]. It is one command whatever the size of p;
// a [checkpoint.Writer] sends large ones in parts.
func (s *Store) Append(ctx context.Context, f checkpoint.Fence, offset int64, p []byte) error {
	re, err := s.sole(ctx, s.appending([]portion{{keys: s.keys.turn(f.Key), fence: f, offset: offset, p: string(p), renew: true}}))
	if err != nil {
		return err
	}
	o, size := re.portion(0)
	return o.refuse(size)
}

// Mark implements [checkpoint.Store].
func (s *Store) Mark(ctx context.Context, f checkpoint.Fence, st checkpoint.State) error {
	return s.write(ctx, s.marking(f, st))
}

// Release implements [checkpoint.Store].
func (s *Store) Release(ctx context.Context, f checkpoint.Fence) error {
	s.queue.disown(f.Key)
	return s.write(ctx, s.releasing(f))
}

// Delete implements [checkpoint.Store].
func (s *Store) Delete(ctx context.Context, f checkpoint.Fence) error {
	s.queue.disown(f.Key)
	re, err := s.call(ctx, deleteScript, s.keys.turn(f.Key), number(f.N), s.cfg.FenceTTL.Milliseconds())
	if err != nil {
		return err
	}
	if o := re.outcome(); o != notFound {
		return o.refuse(0)
	}
	return nil
}

func (s *Store) write(ctx context.Context, st *step) error {
	re, err := s.sole(ctx, st)
	if err != nil {
		return err
	}
	return re.outcome().refuse(re.size())
}

func (s *Store) marking(f checkpoint.Fence, st checkpoint.State) *step {
	ttl := s.ttl(st.Phase)
	return newStep(markScript, s.keys.turn(f.Key),
		number(f.N), encode(st), int(st.Phase), ttl.Milliseconds(), (ttl + s.cfg.FenceTTL).Milliseconds())
}

func (s *Store) releasing(f checkpoint.Fence) *step {
	return newStep(releaseScript, s.keys.turn(f.Key), number(f.N))
}

func (s *Store) deleting(f checkpoint.Fence) *step {
	return newStep(deleteScript, s.keys.turn(f.Key), number(f.N), s.cfg.FenceTTL.Milliseconds())
}

func (s *Store) restoring(f checkpoint.Fence, r *checkpoint.Record, st checkpoint.State) *step {
	ttl := s.ttl(st.Phase)
	return newStep(restoreScript, s.keys.turn(f.Key),
		number(f.N), string(r.Owner), identity(*r), encode(st), int(st.Phase), r.Created.UnixMicro(),
		ttl.Milliseconds(), (ttl + s.cfg.FenceTTL).Milliseconds())
}

func (s *Store) ttl(p checkpoint.Phase) time.Duration {
	if p == checkpoint.Finished {
		return s.cfg.FinishedTTL
	}
	return s.cfg.TTL
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }
