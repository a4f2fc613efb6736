package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Moment says when an injected failure strikes.
type Moment uint8

const (
	// Before: the store never sees the call.
	Before Moment = iota + 1
	// After: the call takes effect and its answer is lost. A caller cannot tell
	// the two apart.
	After
)

// errInjected is what an injected failure wraps, with ErrUnavailable.
var errInjected = errors.New("storetest: injected")

// Sleepy is a store that can be put to sleep and made to fail. All calls may
// come from any goroutine.
type Sleepy struct {
	inner checkpoint.Store

	mu    sync.Mutex
	fails []Moment      // of the next calls
	awake chan struct{} // closed while awake
	calls int
}

// NewSleepy wraps a store, awake.
func NewSleepy(inner checkpoint.Store) *Sleepy {
	s := &Sleepy{inner: inner, awake: make(chan struct{})}
	close(s.awake)
	return s
}

// Sleep makes every call wait for Wake or for the end of its context, as a frozen
// or black-holed server does (FIELD-REPORTS H1).
func (s *Sleepy) Sleep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.awake:
		s.awake = make(chan struct{})
	default:
	}
}

// Wake lets all calls go on.
func (s *Sleepy) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.awake:
	default:
		close(s.awake)
	}
}

// Fail makes the next calls fail, one for each moment; 0 lets one succeed.
func (s *Sleepy) Fail(ms ...Moment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = append(s.fails, ms...)
}

// Calls returns how many calls were made.
func (s *Sleepy) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// do runs one call of the inner store under the next failure.
func (s *Sleepy) do(ctx context.Context, call func() error) error {
	s.mu.Lock()
	s.calls++
	awake, moment := s.awake, Moment(0)
	if len(s.fails) > 0 {
		moment, s.fails = s.fails[0], s.fails[1:]
	}
	s.mu.Unlock()
	select {
	case <-awake:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, ctx.Err())
	}
	if moment == Before {
		return fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, errInjected)
	}
	err := call()
	if moment == After {
		return fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, errInjected)
	}
	return err
}

// Claim implements [checkpoint.Store].
func (s *Sleepy) Claim(ctx context.Context, key checkpoint.TurnKey, owner checkpoint.Owner, head checkpoint.Record) (f checkpoint.Fence, r *checkpoint.Record, err error) {
	err = s.do(ctx, func() (err error) {
		f, r, err = s.inner.Claim(ctx, key, owner, head)
		return err
	})
	if errors.Is(err, errInjected) {
		return checkpoint.Fence{}, nil, err
	}
	return f, r, err
}

// Append implements [checkpoint.Store].
func (s *Sleepy) Append(ctx context.Context, f checkpoint.Fence, offset int64, p []byte) error {
	return s.do(ctx, func() error { return s.inner.Append(ctx, f, offset, p) })
}

// Mark implements [checkpoint.Store].
func (s *Sleepy) Mark(ctx context.Context, f checkpoint.Fence, state checkpoint.State) error {
	return s.do(ctx, func() error { return s.inner.Mark(ctx, f, state) })
}

// Release implements [checkpoint.Store].
func (s *Sleepy) Release(ctx context.Context, f checkpoint.Fence) error {
	return s.do(ctx, func() error { return s.inner.Release(ctx, f) })
}

// Get implements [checkpoint.Store].
func (s *Sleepy) Get(ctx context.Context, key checkpoint.TurnKey) (r *checkpoint.Record, err error) {
	err = s.do(ctx, func() (err error) {
		r, err = s.inner.Get(ctx, key)
		return err
	})
	if errors.Is(err, errInjected) {
		return nil, err
	}
	return r, err
}

// Delete implements [checkpoint.Store].
func (s *Sleepy) Delete(ctx context.Context, f checkpoint.Fence) error {
	return s.do(ctx, func() error { return s.inner.Delete(ctx, f) })
}
