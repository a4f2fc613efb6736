package redisstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
)

// Runs is the [ledger.Store] in the same Redis. A run is one hash, written whole
// under the version it was read at, by a script.
//
// What Redis acknowledged it may still lose: a replica that takes over, or a server
// that starts again from its disk, can be behind. A write is therefore confirmed by
// Config.Confirm replicas (WAIT), or is ErrUnconfirmed; and a record whose last
// write was not, and which is read from another server process than wrote it, is in
// doubt until its next step.
type Runs struct{ s *Store }

var _ ledger.Store = (*Runs)(nil)

// Runs returns the store's ledger.
func (s *Store) Runs() *Runs { return &Runs{s} }

// doubt is what Load says of a record that a server has which did not write it.
const doubt = "redis was restarted or replaced, and the last writes may be lost"

// confirmWithin is how long a write waits for replicas; part of Config.Timeout.
func (r *Runs) confirmWithin() time.Duration { return r.s.cfg.Timeout / 2 }

// Load implements [ledger.Store].
func (r *Runs) Load(ctx context.Context, key ledger.RunKey) (ledger.Stored, error) {
	re, err := r.s.call(ctx, loadRunScript, []string{r.s.keys.run(key)})
	if err != nil {
		return ledger.Stored{}, ledgers(err)
	}
	switch re.outcome() {
	case done:
	case notFound:
		return ledger.Stored{}, ledger.ErrNotFound
	default:
		return ledger.Stored{}, fmt.Errorf("%w: the record has no content", ledger.ErrCorrupt)
	}
	run, err := ledger.Unseal(r.s.cfg.Seal, key, []byte(re.text(1)))
	if err != nil {
		return ledger.Stored{}, err
	}
	got := ledger.Stored{Run: run, Unconfirmed: r.s.cfg.Confirm > 0 && re.text(3) != re.text(4)}
	if re.text(2) != "" {
		got.Doubt = doubt
	}
	return got, nil
}

// Save implements [ledger.Store]. The lists that the run is found by are written
// before it: a run that is listed and not there is harmless.
func (r *Runs) Save(ctx context.Context, key ledger.RunKey, scope checkpoint.Scope, run *ledger.Run, expect uint64) error {
	k, ttl := r.s.keys, r.s.cfg.RunTTL.Milliseconds()
	steps := []*step{newStep(listScript, []string{k.runs()}, key.String(), ledger.MaxRecent, ttl)}
	last := run.Last()
	if last == nil {
		last = &ledger.Step{}
	}
	for _, line := range last.Lines() {
		steps = append(steps, newStep(listScript, []string{k.lineage(scope, line)}, key.String(), ledger.MaxFound, ttl))
	}
	if err := r.s.pipeline(ctx, steps); err != nil {
		return ledgers(err)
	}
	for _, st := range steps {
		if st.err != nil {
			return ledgers(translate(st.err))
		}
	}
	re, confirmed, err := r.write(ctx, k.run(key), expect, run.Version, ledger.Seal(r.s.cfg.Seal, key, run), last.Lineage, last.Alias, last.N, ttl)
	if err != nil {
		return ledgers(err)
	}
	switch re.outcome() {
	case done:
	case notFound:
		return fmt.Errorf("%w: it is gone", ledger.ErrChanged)
	case conflict:
		return fmt.Errorf("%w: version %s, expected %d", ledger.ErrChanged, clip(re.text(1)), expect)
	default:
		return fmt.Errorf("%w: the record has no version", ledger.ErrCorrupt)
	}
	if confirmed < r.s.cfg.Confirm {
		return fmt.Errorf("%w: %d of %d", ledger.ErrUnconfirmed, confirmed, r.s.cfg.Confirm)
	}
	return nil
}

// write runs the save script and, where replicas must confirm it, waits for them on
// the same connection, which is what WAIT counts the writes of.
func (r *Runs) write(ctx context.Context, key string, expect, version uint64, args ...any) (re reply, confirmed int, err error) {
	args = append([]any{strconv.FormatUint(expect, 10), strconv.FormatUint(version, 10)}, args...)
	if r.s.cfg.Confirm <= 0 {
		re, err = r.s.call(ctx, saveRunScript, []string{key}, args...)
		return re, 0, err
	}
	err = r.s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) error {
		node, err := masterOf(ctx, c, key)
		if err != nil {
			return err
		}
		conn := node.Conn()
		defer func() { _ = conn.Close() }()
		r.s.counts.commands.Add(1)
		if re, err = saveRunScript.Run(ctx, conn, []string{key}, args...).Slice(); err != nil || re.outcome() != done {
			return err
		}
		r.s.counts.commands.Add(1)
		n, err := conn.Wait(ctx, r.s.cfg.Confirm, r.confirmWithin()).Result()
		if confirmed = int(n); err != nil || confirmed < r.s.cfg.Confirm {
			return err
		}
		// Said of the version, not of the record: whoever wrote meanwhile is not
		// confirmed by this.
		r.s.counts.commands.Add(1)
		return conn.HSet(ctx, key, "w", strconv.FormatUint(version, 10)).Err()
	})
	return re, confirmed, err
}

// masterOf returns the client of the one server that has key.
func masterOf(ctx context.Context, c redis.UniversalClient, key string) (*redis.Client, error) {
	switch c := c.(type) {
	case *redis.ClusterClient:
		return c.MasterForKey(ctx, key)
	case *redis.Client:
		return c, nil
	}
	panic(fmt.Sprintf("BUG: redisstore: a client of type %T", c))
}

// Find implements [ledger.Store]. The list may name runs that have moved on.
func (r *Runs) Find(ctx context.Context, scope checkpoint.Scope, lineage string) ([]ledger.RunKey, error) {
	listed, err := r.list(ctx, r.s.keys.lineage(scope, lineage), ledger.MaxFound)
	if err != nil || len(listed) == 0 {
		return nil, err
	}
	at := make([]*redis.SliceCmd, len(listed))
	err = r.s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) error {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, key := range listed {
				at[i] = p.HMGet(ctx, r.s.keys.run(key), "l", "a")
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, ledgers(err)
	}
	var out []ledger.RunKey
	for i, key := range listed {
		if got, err := at[i].Result(); err == nil && slices.Contains(got, any(lineage)) {
			out = append(out, key)
		}
	}
	return out, nil
}

// Recent implements [ledger.Store].
func (r *Runs) Recent(ctx context.Context, most int) ([]ledger.RunKey, error) {
	return r.list(ctx, r.s.keys.runs(), min(most, ledger.MaxRecent))
}

func (r *Runs) list(ctx context.Context, key string, most int) (out []ledger.RunKey, err error) {
	if most <= 0 {
		return nil, nil
	}
	var members []string
	err = r.s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) (err error) {
		r.s.counts.commands.Add(1)
		members, err = c.ZRevRange(ctx, key, 0, int64(most)-1).Result()
		return err
	})
	if err != nil {
		return nil, ledgers(err)
	}
	for _, m := range members {
		var k ledger.RunKey
		if raw, err := hex.DecodeString(m); err != nil || copy(k[:], raw) != len(k) {
			return nil, fmt.Errorf("%w: a listed run", ledger.ErrCorrupt)
		}
		out = append(out, k)
	}
	return out, nil
}

// ledgers turns an error of package checkpoint into the one of package ledger that
// means the same.
func ledgers(err error) error {
	switch {
	case errors.Is(err, checkpoint.ErrCorrupt):
		return fmt.Errorf("%w: %w", ledger.ErrCorrupt, err)
	case errors.Is(err, checkpoint.ErrUnavailable):
		return fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	return err
}
