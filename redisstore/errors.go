package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// errAway is the answer while the breaker is open; it costs nothing to make.
var errAway = fmt.Errorf("%w: redis is away", checkpoint.ErrUnavailable)

// errAlien is about a key that somebody else has under our prefix.
var errAlien = fmt.Errorf("%w: a foreign key under our prefix", checkpoint.ErrCorrupt)

// errDeparted keeps what never came to Redis out of the breaker's books: its caller
// left, or found no connection in a burst of others.
var errDeparted = errors.New("redisstore: the caller left")

func isUnavailable(err error) bool { return errors.Is(err, checkpoint.ErrUnavailable) }

// translate turns a failed command's error into one of package checkpoint. A key
// of the wrong type is somebody else's key under our prefix; all the rest, full
// and misconfigured servers included, is a store that cannot be used now.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case foreign(err):
		return errAlien
	default:
		return fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, err)
	}
}

// foreign reports somebody else's key; from inside a script of an old server the
// word comes late.
func foreign(err error) bool { return err != nil && strings.Contains(err.Error(), "WRONGTYPE") }

// scattered reports a server that has the keys of one script in several slots: a cluster
// behind an address that does not say so.
func scattered(err error) bool { return err != nil && strings.Contains(err.Error(), "CROSSSLOT") }

// moved reports an answer that shows that we are connected to the wrong server,
// or to one that is not ready: connections must be dropped and the name resolved
// again (FIELD-REPORTS H3).
func moved(err error) bool {
	if err == nil {
		return false
	}
	if redis.IsReadOnlyError(err) || redis.IsLoadingError(err) || redis.IsMasterDownError(err) {
		return true
	}
	if _, ok := redis.IsMovedError(err); ok {
		return true
	}
	// From inside a script the words come later.
	return strings.Contains(err.Error(), "READONLY")
}

// refuse maps an outcome to the error of a single call.
func (o outcome) refuse(size int64) error {
	switch o {
	case done, taken:
		return nil
	case fenced, behind:
		return checkpoint.ErrFenced
	case notFound:
		return checkpoint.ErrNotFound
	case gap:
		return fmt.Errorf("%w: the log has %d bytes", checkpoint.ErrGap, size)
	case conflict:
		return checkpoint.ErrConflict
	case tooLarge:
		return fmt.Errorf("%w: turn of %d bytes", checkpoint.ErrTooLarge, size)
	case owned:
		return checkpoint.ErrOwned
	case newer:
		return checkpoint.ErrVersion
	case alien:
		return errAlien
	default:
		return fmt.Errorf("%w: a record that its log does not match", checkpoint.ErrCorrupt)
	}
}

// departed reports that a command ended because its caller left, or had set it
// less time than we would, which says nothing about Redis.
func departed(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}
