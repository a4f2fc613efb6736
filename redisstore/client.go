package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// connect makes a client that tries everything once: repeating is the writer's
// business, and a command must not outlive its deadline in anybody's retry loop.
func (s *Store) connect() redis.UniversalClient {
	o := *s.cfg.Server
	if o.TLSConfig != nil {
		o.TLSConfig = o.TLSConfig.Clone()
	}
	o.MaxRetries = -1
	o.ContextTimeoutEnabled = true
	o.DialTimeout = max(s.cfg.Timeout, time.Second) // a dial goes on behind a command that gave up
	o.DialerRetries = 1
	o.ReadTimeout, o.WriteTimeout = s.cfg.Timeout, s.cfg.Timeout
	o.PoolTimeout = s.cfg.Timeout
	o.PoolSize = 16 // a pipeline, the heartbeat, and the claims of a burst
	o.PipelinePoolSize = -1
	o.ConnMaxIdleTime = time.Minute
	o.Protocol = 2
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if !o.IsClusterMode && o.MasterName == "" {
		o.Addrs = o.Addrs[:1]
	}
	return redis.NewUniversalClient(&o)
}

// quiet is the logger of go-redis, which has one for the process and writes a line
// for every failed dial: an outage would be a flood (FIELD-REPORTS H6).
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

var hush = sync.OnceFunc(func() { redis.SetLogger(quiet{}) })

// client returns the client to use now.
func (s *Store) client() redis.UniversalClient { return *s.conn.Load() }

// reconnect drops all connections and resolves every name anew. Commands under
// way fail as unavailable.
func (s *Store) reconnect() {
	fresh := s.connect()
	old := s.conn.Swap(&fresh)
	_ = (*old).Close()
	s.counts.reconnects.Add(1)
}

// command runs one command or pipeline under the deadline and the breaker. ask is
// true for the heartbeat, which alone finds out that Redis is back.
func (s *Store) command(ctx context.Context, ask bool, run func(context.Context, redis.UniversalClient) error) error {
	if !ask && s.away() {
		return errAway
	}
	if err := ctx.Err(); err != nil {
		return translate(err)
	}
	var err error
	_, refused := s.breaker.Execute(func() (struct{}, error) {
		c, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		defer cancel()
		err = run(c, s.client())
		if err == nil {
			return struct{}{}, nil
		}
		s.counts.failures.Add(1)
		if moved(err) {
			s.resolve.Store(true)
		}
		if departed(ctx, err) || errors.Is(err, redis.ErrPoolTimeout) {
			return struct{}{}, errDeparted // it never came to Redis
		}
		if !foreign(err) {
			s.lastErr.Store(&err)
		}
		return struct{}{}, translate(err)
	})
	switch {
	case err != nil:
		return translate(err)
	case refused != nil:
		return errAway
	}
	return nil
}

// step is one script call of a pipeline.
type step struct {
	script *script
	line   []any // the command: room for what names the script, the number of keys, keys, arguments

	reply reply
	err   error // of this call alone
}

func newStep(script *script, keys []string, args ...any) *step {
	st := &step{script: script, line: make([]any, 3, 3+len(keys)+len(args))}
	st.line[2] = len(keys)
	for _, k := range keys {
		st.line = append(st.line, k)
	}
	st.line = append(st.line, args...)
	return st
}

// byHash and byText name the script.
func (st *step) byHash() { st.line[0], st.line[1] = "evalsha", st.script.Hash() }
func (st *step) byText() { st.line[0], st.line[1] = "eval", st.script.text }

// pipeline runs steps in order, and those that Redis did not know again by their
// text. A step's own error is in the step; what is returned failed all of them
// that have none.
func (s *Store) pipeline(ctx context.Context, steps []*step) error {
	return s.command(ctx, false, func(ctx context.Context, c redis.UniversalClient) error {
		for _, st := range steps {
			st.byHash()
		}
		err := run(ctx, c, steps)
		s.counts.commands.Add(int64(len(steps)))
		var unknown []*step
		for _, st := range steps {
			if st.err != nil && redis.HasErrorPrefix(st.err, "NOSCRIPT") {
				st.byText()
				unknown = append(unknown, st)
			}
		}
		if len(unknown) == 0 {
			return err
		}
		s.counts.commands.Add(int64(len(unknown)))
		return run(ctx, c, unknown)
	})
}

// run sends steps and stores what each was answered. It returns the first error
// that says something about Redis rather than about one key.
func run(ctx context.Context, c redis.UniversalClient, steps []*step) error {
	cmds := make([]*redis.Cmd, len(steps))
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, st := range steps {
			cmds[i] = redis.NewCmd(ctx, st.line...)
			_ = p.Process(ctx, cmds[i]) // its error is that of cmds[i]
		}
		return nil
	})
	var first error
	for i, st := range steps {
		st.reply, st.err = cmds[i].Slice()
		if st.err == nil && len(st.reply) == 0 {
			st.err = err // the pipeline ended before it was sent
		}
		if first == nil && st.err != nil && !redis.HasErrorPrefix(st.err, "NOSCRIPT") && !foreign(st.err) && !scattered(st.err) {
			first = st.err
		}
	}
	return first
}
