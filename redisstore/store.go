package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Store is a [checkpoint.Store] in Redis with all optional powers. It also is the
// liveness of every owner that claims through it, which is one for each process.
type Store struct {
	// immutable
	cfg     Config
	keys    keys
	conn    *atomic.Pointer[redis.UniversalClient]
	breaker *gobreaker.CircuitBreaker[struct{}]
	stop    chan struct{}  // closed by Close
	kick    chan struct{}  // has one element when the flusher should look
	work    sync.WaitGroup // the heartbeat and the flusher

	// shared
	resolve atomic.Bool // drop all connections at the next heartbeat
	apart   atomic.Bool // turns may be in different slots: each is written by itself
	lastErr atomic.Pointer[error]
	counts  counts
	lives   lives
	queue   queue
	calls   calls
	batch   batch // the flusher's
	closing sync.Once
}

var (
	_ checkpoint.Behind   = (*Store)(nil)
	_ checkpoint.Follower = (*Store)(nil)
	_ checkpoint.Index    = (*Store)(nil)
	_ checkpoint.Secrets  = (*Store)(nil)
	_ checkpoint.Memos    = (*Store)(nil)
)

// Open returns a store and starts its heartbeat and its flusher. It does not wait
// for Redis, which may be away now and come later. The error is one of c.
func Open(c Config) (*Store, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{
		cfg: c, keys: keys{c.Prefix},
		conn: new(atomic.Pointer[redis.UniversalClient]),
		stop: make(chan struct{}), kick: make(chan struct{}, 1),
	}
	s.lives.owners = map[checkpoint.Owner]time.Time{}
	s.queue.init(s.nudge)
	s.batch.void = map[*writer]bool{}
	s.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        "redis",
		Timeout:     c.Retry / 2, // half-open at every heartbeat while away
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= c.Failures },
		IsExcluded:  func(err error) bool { return errors.Is(err, errDeparted) },
		IsSuccessful: func(err error) bool {
			return err == nil || !isUnavailable(err)
		},
	})
	hush()
	client := s.connect()
	_, clustered := client.(*redis.ClusterClient)
	s.apart.Store(clustered)
	s.conn.Store(&client)
	s.work.Add(2)
	go s.beat()
	go s.flushLoop()
	return s, nil
}

// away reports that Redis is not used until a heartbeat finds it back.
func (s *Store) away() bool { return s.breaker.State() != gobreaker.StateClosed }

// Close writes what it can until ctx ends, gives up the life of its owners, so
// that others may claim their turns at once, and ends everything. The store
// cannot be used any more.
func (s *Store) Close(ctx context.Context) {
	s.closing.Do(func() {
		s.drain(ctx)
		close(s.stop)
		s.calls.close()
		s.work.Wait()
		s.queue.timer.Stop()
		s.die(ctx)
		_ = s.client().Close()
	})
}
