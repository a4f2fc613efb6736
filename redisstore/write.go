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
	return s.write(ctx, s.appending(f, offset, p))
}

// Mark implements [checkpoint.Store].
func (s *Store) Mark(ctx context.Context, f checkpoint.Fence, st checkpoint.State) error {
	return s.write(ctx, s.marking(f, st))
}

// Release implements [checkpoint.Store].
func (s *Store) Release(ctx context.Context, f checkpoint.Fence) error {
	return s.write(ctx, s.releasing(f))
}

// Delete implements [checkpoint.Store].
func (s *Store) Delete(ctx context.Context, f checkpoint.Fence) error {
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
	re, err := s.alone(ctx, st.script, st.keys, st.args...)
	if err != nil {
		return err
	}
	return re.outcome().refuse(re.size())
}

func (s *Store) appending(f checkpoint.Fence, offset int64, p []byte) *step {
	return &step{script: appendScript, keys: s.keys.turn(f.Key), args: []any{
		number(f.N), offset, p, s.cfg.MaxTurn, s.cfg.TTL.Milliseconds(),
	}}
}

func (s *Store) marking(f checkpoint.Fence, st checkpoint.State) *step {
	ttl := s.ttl(st.Phase)
	return &step{script: markScript, keys: s.keys.turn(f.Key), args: []any{
		number(f.N), encode(st), int(st.Phase), ttl.Milliseconds(), (ttl + s.cfg.FenceTTL).Milliseconds(),
	}}
}

func (s *Store) releasing(f checkpoint.Fence) *step {
	return &step{script: releaseScript, keys: s.keys.turn(f.Key), args: []any{number(f.N)}}
}

func (s *Store) deleting(f checkpoint.Fence) *step {
	return &step{script: deleteScript, keys: s.keys.turn(f.Key), args: []any{number(f.N), s.cfg.FenceTTL.Milliseconds()}}
}

func (s *Store) restoring(f checkpoint.Fence, r *checkpoint.Record, st checkpoint.State) *step {
	ttl := s.ttl(st.Phase)
	return &step{script: restoreScript, keys: s.keys.turn(f.Key), args: []any{
		number(f.N), string(r.Owner), identity(*r), encode(st), int(st.Phase), r.Created.UnixMicro(),
		ttl.Milliseconds(), (ttl + s.cfg.FenceTTL).Milliseconds(),
	}}
}

func (s *Store) ttl(p checkpoint.Phase) time.Duration {
	if p == checkpoint.Finished {
		return s.cfg.FinishedTTL
	}
	return s.cfg.TTL
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }
