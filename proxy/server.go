package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
	"github.com/unbroken-llm/unbroken/upstream"
)

// Server is the front door.
type Server struct {
	// immutable
	cfg        Config // as it was at the start: only what Reload does not change is read of it
	http       *fasthttp.Server
	ownClient  *upstream.Client // nil: it is somebody else's
	store      checkpoint.Store
	ownStore   bool // nobody else can see the store
	memory     bool // the store is memory: it does not block
	owner      checkpoint.Owner
	scopes     atomic.Pointer[scoper]
	recall     recall
	ledger     ledger.Store // nil: there is none
	latecomers latecomers
	missed     missed // turns that it lacks
	ackClock   func(time.Duration) (context.Context, context.CancelFunc)
	turns      *turns
	terms      atomic.Pointer[terms] // what the next request is served under
	abilities  *abilities
	gate       *gate
	dog        *watchdog
	settling   chan struct{} // tokens
	// abandoning holds tokens too.
	abandoning chan struct{}
	idled      chan struct{} // one token: the last request in flight ended
	now        chan struct{} // closed by the second Shutdown
	closed     chan struct{} // closed when Shutdown has nothing left to wait for

	// shared
	seed      atomic.Uint64
	live      atomic.Int64
	counts    counts
	draining  atomic.Bool // Shutdown was called
	stopping  atomic.Bool // its deadline has passed
	hurry     sync.Once
	listeners listeners
	idlers    idlers
	work      sync.WaitGroup // openings, settlers and journal writers
}

// counts are the totals of Stats.
type counts struct {
	accepted, refused, unclaimed, unacked, dropped atomic.Int64
	reclaimed                                      atomic.Int64
	takeovers, unreadable, unabandoned             atomic.Int64
	flushes, unprotected, unprotectable            atomic.Int64
	hinted, expanded, unremembered, unledgered     atomic.Int64
	// how protected requests ended
	completed, client, us, provider, request atomic.Int64
}

// Stats is a server in numbers. Totals count from its start.
type Stats struct {
	Live     int64 // requests in flight, to the end of their bodies
	Accepted int64
	Refused  int64 // for load or because of the drain
	// Unclaimed turns had no checkpoint from the start; Reclaimed are those of them
	// that got one when the store was back. Dropped ones lost it on
	// the way; Unacked closes left before their checkpoint was acknowledged.
	Unclaimed, Reclaimed, Dropped, Unacked int64
	// Flushes are what was handed to the store for the checkpoints of turns.
	Flushes int64
	// Takeovers are turns that were carried on for, or replayed to, a new
	// connection; Unreadable ones could not be, and began anew.
	Takeovers, Unreadable int64
	// Hinted requests told a model of calls that an interruption took out, Expanded
	// ones had a turn put in the place of an id that only Unbroken knows. What is
	// Unremembered was too large for that, or the store was away.
	Hinted, Expanded, Unremembered int64
	// Unledgered facts did not reach the run ledger.
	Unledgered int64
	// Unabandoned generations may go on at their providers, though nobody reads them.
	Unabandoned int64
	// Unprotected requests would have been protected if it had been possible.
	// Unprotectable ones neither, but their provider refused them, as it does what is
	// no JSON: there was no stream to protect.
	Unprotected, Unprotectable int64
	Ready                      bool
	Ended                      Ended
	Waiting                    int // for admission
	Breakers                   []BreakerState
	Upstreams                  []UpstreamState // by name
}

// Ended says how protected requests ended, and whose doing it was (DESIGN §1.7).
// What failed on the way to a completed turn is not in it.
type Ended struct {
	Completed int64
	Client    int64 // left, or did not read
	Us        int64 // drain, takeover, a bug
	Provider  int64 // failed, and nothing helped
	Request   int64 // refused for good by the provider
}

// New returns a server for c. It starts nothing that Shutdown does not end.
func New(c Config) (*Server, error) {
	c = c.withDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: c, store: c.Store, ackClock: acknowledging,
		turns:      &turns{all: map[checkpoint.TurnKey]*atHand{}},
		abilities:  newAbilities(),
		gate:       newGate(&c),
		settling:   make(chan struct{}, settleMost),
		abandoning: make(chan struct{}, abandonMost),
		idled:      make(chan struct{}, 1),
		now:        make(chan struct{}),
		closed:     make(chan struct{}),
		owner:      checkpoint.Owner(token("unbroken-")),
	}
	if c.Client == nil {
		c.Client = upstream.New(upstream.Config{})
		s.ownClient = c.Client
	}
	t, err := newTerms(c, c.Client)
	if err != nil {
		return nil, err
	}
	s.terms.Store(t)
	if s.store == nil {
		s.store, s.ownStore = checkpoint.NewMemory(checkpoint.MemoryConfig{Clock: time.Now}), true
	}
	_, s.memory = s.store.(*checkpoint.Memory)
	s.recall = newRecall(s.store)
	s.ledger = c.Ledger
	s.keyScopes(c.ScopeKey)
	s.seed.Store(uint64(time.Now().UnixNano()))
	s.dog = newWatchdog(c.WriteStall)
	t.tellOfBackground()
	s.http = &fasthttp.Server{
		Handler:                       s.handle,
		ErrorHandler:                  s.unreadable,
		ReadBufferSize:                c.MaxHeader,
		WriteBufferSize:               writeBuffer,
		ReadTimeout:                   c.HeaderTimeout,
		IdleTimeout:                   c.IdleTimeout,
		StreamRequestBody:             true,
		MaxRequestBodySize:            1, // a body is streamed to us, whatever its size; readBody has the limit
		DisablePreParseMultipartForm:  true,
		DisableHeaderNamesNormalizing: true,
		NoDefaultServerHeader:         true, // the provider's is relayed; its Date is not, fasthttp writes its own
		NoDefaultContentType:          true,
		SecureErrorLogMessage:         true,
		Logger:                        bridge{c.Log},
	}
	return s, nil
}

// Ledger is where the runs that the server sees are kept; nil: nowhere.
func (s *Server) Ledger() ledger.Store {
	if s.ledger == nil {
		return nil
	}
	return doubting{s.ledger, &s.missed}
}

// writeBuffer holds a response head with a short answer behind it, so that they leave in
// one write. Chunks leave from buffers of their own (counter).
const writeBuffer = 4<<10 + 64

// Serve accepts connections until Shutdown. It may be called for several
// listeners; one that speaks TLS is made with tls.NewListener.
func (s *Server) Serve(l net.Listener) error {
	if !s.listeners.add(l) {
		return l.Close()
	}
	return s.http.Serve(callers{l})
}

// ListenAndServe listens as [Listen] does and serves until Shutdown, or until
// one of the listeners fails.
func (s *Server) ListenAndServe(addr string) error {
	ls, err := Listen(addr)
	if err != nil {
		return err
	}
	errs := make(chan error, len(ls))
	for _, l := range ls {
		go func() { errs <- s.Serve(l) }()
	}
	for range ls {
		err = errors.Join(err, <-errs)
		if err != nil {
			for _, l := range ls {
				_ = l.Close()
			}
		}
	}
	return err
}

// handle serves one request up to its response head.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	r := s.take(ctx)
	// For what is written behind the handler: a head, a short body. Bodies that
	// stream lift it. It also makes fasthttp flush each response at its end,
	// where it would else wait for the response to a pipelined request.
	defer func() { _ = ctx.SetWriteDeadline(time.Now().Add(r.under.cfg.WriteStall)) }()
	if status, err := r.acceptable(); err != nil {
		s.decline(ctx, nil, status, err.Error())
		if status == fasthttp.StatusUpgradeRequired {
			ctx.Response.Header.Set("Upgrade", "HTTP/1.1") // RFC 9110, section 15.5.22
		}
		return
	}
	var known bool
	if r.route, known = r.under.resolve(r.method, r.target, r.header); !known {
		s.decline(ctx, nil, fasthttp.StatusNotFound, "no upstream of that name is configured")
		return
	}
	if !s.admit(ctx, r) {
		return
	}
	v := &visit{srv: s}
	defer v.leave(ctx, r)
	s.serve(ctx, r, v)
}

// visit makes sure that an admitted request is released, whatever happens before
// somebody owns its end.
type visit struct {
	srv   *Server
	life  *lifeline
	owned bool // released by the drive or the passing
}

func (v *visit) leave(ctx *fasthttp.RequestCtx, r *request) {
	what := recover()
	if what != nil {
		v.srv.cfg.Log.Error("BUG: a request panicked", "panic", fmt.Sprint(what), "stack", string(debug.Stack()))
		refuse(ctx, r.tongue(), bug.Status, bug.Message)
		ctx.SetConnectionClose()
	}
	if what != nil || !v.owned {
		v.srv.release(v.life, r.who)
	}
}

// serve protects the request, or relays it.
func (s *Server) serve(ctx *fasthttp.RequestCtx, r *request, v *visit) {
	reason := ""
	switch {
	case r.speaks == nil:
	case r.signed():
		reason = unprotectedSigned
	default:
		var err error
		if reason, err = s.readBody(ctx, r); err != nil {
			s.unread(ctx, r, err) // nothing went upstream
			return
		}
		if reason == "" {
			if err := r.identify(); err != nil {
				s.decline(ctx, r.tongue(), fasthttp.StatusBadRequest, err.Error())
				return
			}
		}
	}
	v.life = newLifeline(s.dog, ctx.Conn())
	if s.stopping.Load() {
		v.life.stop(reasonDraining)
	}
	if r.speaks == nil || reason != "" {
		v.owned = true
		if reason != "" {
			s.cfg.Log.Info("a request is relayed unprotected", "reason", reason, "upstream", r.to.Name)
		}
		s.pass(ctx, r, v.life, reason)
		return
	}
	v.owned = true
	if r.asks.Stream {
		s.streaming(ctx, r, v.life)
		return
	}
	d := s.drive(r, v.life)
	if a, ok := d.answer(&ctx.Response.Header); ok {
		s.send(ctx, r, v.life, a)
		return
	}
	d.finish() // unless the turn goes on
	hangUp(ctx)
}

// streaming protects a request behind the handler's back.
func (s *Server) streaming(ctx *fasthttp.RequestCtx, r *request, l *lifeline) {
	var d *drive
	s.stream(ctx, r, l, func() {
		if d != nil {
			d.finish()
		} else {
			s.release(l, r.who)
		}
	}, func() (response, bool) {
		d = s.drive(r, l)
		return d.answer(blank())
	})
}

// Stats returns the server's numbers.
func (s *Server) Stats() Stats {
	t := s.terms.Load()
	return Stats{
		Breakers: t.breakers.states(), Upstreams: t.states(),
		Live: s.live.Load(), Accepted: s.counts.accepted.Load(), Refused: s.counts.refused.Load(),
		Unclaimed: s.counts.unclaimed.Load(), Reclaimed: s.counts.reclaimed.Load(), Dropped: s.counts.dropped.Load(), Unacked: s.counts.unacked.Load(),
		Takeovers: s.counts.takeovers.Load(), Unreadable: s.counts.unreadable.Load(),
		Hinted: s.counts.hinted.Load(), Expanded: s.counts.expanded.Load(), Unremembered: s.counts.unremembered.Load(),
		Unledgered: s.counts.unledgered.Load(), Unabandoned: s.counts.unabandoned.Load(),
		Flushes: s.counts.flushes.Load(), Unprotected: s.counts.unprotected.Load(), Unprotectable: s.counts.unprotectable.Load(),
		Ready: !s.draining.Load(), Waiting: s.gate.waiting(),
		Ended: Ended{
			Completed: s.counts.completed.Load(), Client: s.counts.client.Load(), Us: s.counts.us.Load(),
			Provider: s.counts.provider.Load(), Request: s.counts.request.Load(),
		},
	}
}

// unread ends a request whose body could not be read. Who sent it wrong is told; who
// is gone, or silent, is not there to be.
func (s *Server) unread(ctx *fasthttp.RequestCtx, r *request, err error) {
	var ne net.Error
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &ne) || errors.Is(err, syscall.ECONNRESET) {
		hangUp(ctx)
		return
	}
	s.decline(ctx, r.tongue(), fasthttp.StatusBadRequest, errBody.Error())
	ctx.SetConnectionClose() // where the next request begins is anybody's guess
}

// unreadable answers what is no HTTP request. Its head may be one: fasthttp waits for the
// first byte of a body of known length, too, before it asks anybody. What goes wrong in a
// head it wraps, and what goes wrong behind it not, nor that nothing came at all.
func (s *Server) unreadable(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	var ne net.Error
	_, bare := err.(net.Error)
	switch {
	case errors.As(err, &small):
		s.decline(ctx, nil, fasthttp.StatusRequestHeaderFieldsTooLarge,
			fmt.Sprintf("the request head exceeds %d bytes (MaxHeader)", s.cfg.MaxHeader))
	case bare && callerOf(ctx.Conn()).heard && errors.As(err, &ne) && ne.Timeout():
		refuse(ctx, nil, fasthttp.StatusRequestTimeout, "the request body did not begin in time")
	case err == io.ErrUnexpectedEOF:
		refuse(ctx, nil, fasthttp.StatusBadRequest, "the request ended before its body began")
	case errors.As(err, &ne) && ne.Timeout():
		refuse(ctx, nil, fasthttp.StatusRequestTimeout, "the request head did not arrive in time")
	default:
		s.decline(ctx, nil, fasthttp.StatusBadRequest, "the request cannot be parsed: its head is not valid HTTP")
	}
}
