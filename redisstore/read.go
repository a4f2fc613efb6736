package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Get implements [checkpoint.Store].
func (s *Store) Get(ctx context.Context, key checkpoint.TurnKey) (*checkpoint.Record, error) {
	r, err := s.read(ctx, key, 0)
	return plain(r), err
}

// Follow implements [checkpoint.Follower].
func (s *Store) Follow(ctx context.Context, key checkpoint.TurnKey, offset int64) (*checkpoint.Record, bool, error) {
	r, err := s.read(ctx, key, offset)
	if err != nil || r.Owner == "" {
		return plain(r), false, err
	}
	gone, err := s.dead(ctx, r.Owner)
	if err != nil {
		return nil, false, err
	}
	return &r.Record, !gone, nil
}

// errChanged: a turn was replaced by another one while it was read.
var errChanged = errors.New("the turn changed while it was read")

// read reads a record and its log from offset on.
func (s *Store) read(ctx context.Context, key checkpoint.TurnKey, offset int64) (*stored, error) {
	r, err := s.part(ctx, key, offset, readChunk)
	if err != nil {
		return nil, err
	}
	if offset < 0 || offset > r.size {
		return nil, fmt.Errorf("%w: read from %d of %d", checkpoint.ErrGap, offset, r.size)
	}
	return r, s.restFrom(ctx, key, r, offset)
}

// part reads a record and at most so much of its log.
func (s *Store) part(ctx context.Context, key checkpoint.TurnKey, offset, most int64) (*stored, error) {
	re, err := s.alone(ctx, readScript, s.keys.turn(key), max(0, offset), most)
	if err != nil {
		return nil, err
	}
	if o := re.outcome(); o != done {
		return nil, o.refuse(0)
	}
	return re.record()
}

// rest completes the log of r as far as it went when r was read.
func (s *Store) rest(ctx context.Context, key checkpoint.TurnKey, r *stored) error {
	return s.restFrom(ctx, key, r, 0)
}

func (s *Store) restFrom(ctx context.Context, key checkpoint.TurnKey, r *stored, from int64) error {
	for at := from + int64(len(r.Log)); at < r.size; at = from + int64(len(r.Log)) {
		next, err := s.part(ctx, key, at, min(readChunk, r.size-at))
		if err != nil {
			return err
		}
		if next.birth != r.birth || len(next.Log) == 0 {
			return fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, errChanged)
		}
		r.Log = append(r.Log, next.Log...)
	}
	return nil
}
