package proxy

import (
	"context"
	"time"
)

const (
	// reasonDraining ends a stream whose process must go.
	reasonDraining = "draining"
	// lastWords is how long streams have for their error events.
	lastWords = 2 * time.Second
)

// Ready reports whether the server wants new work. It serves what comes anyway:
// an application that is being shut down along with its sidecar still needs it
// (FIELD-REPORTS I3).
func (s *Server) Ready() bool { return !s.draining.Load() }

// Shutdown drains: the server is not ready any more but serves, and heals, what
// is in flight and what still comes, until nothing is in flight or ctx ends. Then
// what remains ends with its dialect's error and an abort, and Shutdown returns
// ctx's error. A second call ends the wait of the first.
func (s *Server) Shutdown(ctx context.Context) error {
	if !s.draining.CompareAndSwap(false, true) {
		s.hurry.Do(func() { close(s.now) })
		return nil
	}
	err := s.idle(ctx)
	s.stopping.Store(true)
	s.gate.close()
	s.dog.each(func(l *lifeline) { l.stop(reasonDraining) })
	last, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	if s.quiet(last) != nil {
		s.dog.each(func(l *lifeline) { l.part(flagSlow) }) // it does not even read its error
	}
	end, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	s.idlers.close()
	closed := s.http.ShutdownWithContext(end)
	s.listeners.close()
	close(s.closed)
	s.work.Wait()
	s.dog.stop()
	if s.ownClient != nil {
		s.ownClient.Close()
	}
	if err == nil {
		err = closed
	}
	return err
}

// idle waits until nothing is in flight, ctx ends or somebody is in a hurry.
func (s *Server) idle(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.now:
			cancel(context.Canceled)
		case <-ctx.Done():
		}
	}()
	return s.quiet(ctx)
}

func (s *Server) quiet(ctx context.Context) error {
	for s.live.Load() > 0 {
		select {
		case <-s.idled:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
