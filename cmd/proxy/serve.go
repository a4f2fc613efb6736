package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/upstream"
)

func newServe(env environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve (the default without a command)",
		Long: "Serve until SIGTERM or SIGINT. The first one drains: streams in flight, and those\n" +
			"that still come, may go on for --drain. The second one ends everything at once.\n" +
			"SIGHUP, or a change of the file, puts the settings in force for new requests\n" +
			"(docs/CONFIG.md).",
		Example: "  unbroken serve\n" +
			"  unbroken serve --listen localhost:9000 --admin off\n" +
			"  unbroken serve --config /etc/unbroken.yaml --idle 30s",
		Args: noArgs,
	}
	conf := addConfigFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return serve(c.Context(), env, func() *loading { return conf.load(env) })
	}
	return c
}

// serve runs the proxy until ctx ends and the drain is over. read reads the settings.
func serve(ctx context.Context, env environment, read func() *loading) (err error) {
	l := read()
	w := l.wire(env.err)
	if len(l.problems) > 0 {
		return l.problems
	}
	s := l.settings
	h := &house{client: upstream.New(w.dial), log: w.log, level: w.level, failed: make(chan error, 8)}
	defer func() { h.client.Close() }()
	w.proxy.Client = h.client
	kept, err := openStore(s.store, s.seal, w.log)
	if err != nil {
		return err
	}
	defer kept.close()
	w.proxy.Store = kept.Store
	seen, err := watch(ctx, env, w)
	if err != nil {
		return err
	}
	defer seen.close()
	w.proxy.Observer = seen.observer()
	if s.ledger {
		w.proxy.Ledger = seen.metrics.Ledger(kept.runs)
	}
	paceGC()
	srv, err := proxy.New(w.proxy)
	if err != nil {
		return err
	}
	h.srv, h.kept, h.seen = srv, kept, seen
	h.cert.Store(w.cert)
	h.adopt(s, w)
	h.conf = newReloader(h, l, read)
	defer func() { err = errors.Join(err, h.close()) }()
	if err := h.open(s, w.cert != nil); err != nil {
		return err
	}
	defer h.conf.start(hangups(env, l))()
	fmt.Fprintln(env.out, h.welcome(s, w.cert != nil))
	w.log.Info("serving", "listen", h.front[0].Addr().String(), "admin", h.adminAddr(), "store", kept.name, "version", shortVersion())
	if !loopback(s.listen) && l.ownCredential() {
		w.log.Warn("whoever can reach the listener can use the credentials of the upstreams that have their own", "listen", s.listen)
	}
	select {
	case <-ctx.Done():
		w.log.Info("draining", "why", context.Cause(ctx).Error(), "in_flight", srv.Stats().Live, "at_most", h.patience())
	case err = <-h.failed:
		return err
	}
	if h.shutdown() != nil {
		w.log.Warn("the drain is over and streams were cut; they ended with an error", "after", h.patience())
		return nil
	}
	w.log.Info("drained")
	return nil
}

// house is what serves: the proxy on its listeners, the admin server on its own.
type house struct {
	// immutable once it is open
	srv    *proxy.Server
	kept   *keeping
	seen   *watching
	front  []net.Listener
	admin  *adminServer
	conf   *reloader
	log    *slog.Logger
	failed chan error

	client *upstream.Client // the reloader's, while that runs
	over   bool

	// what a reload changes
	level *slog.LevelVar
	drain atomic.Int64                    // nanoseconds
	cert  atomic.Pointer[tls.Certificate] // of the listener; nil: it speaks no TLS
}

// patience is how long a drain may take.
func (h *house) patience() time.Duration { return time.Duration(h.drain.Load()) }

// open listens everywhere before anything is served, so that a port that is
// taken is told before anybody is let in.
func (h *house) open(s *settings, secure bool) (err error) {
	if h.front, err = proxy.Listen(s.listen); err != nil {
		return err
	}
	if s.admin != off {
		if h.admin, err = listenAdmin(s.admin, h); err != nil {
			return err // close ends the rest
		}
		h.admin.token.Store(&s.adminToken)
		go func() { h.fail("admin", h.admin.serve()) }()
	}
	for _, l := range h.front {
		if secure {
			l = tls.NewListener(l, h.listenerTLS())
		}
		go func() { h.fail("serve", h.srv.Serve(l)) }()
	}
	return nil
}

func (h *house) fail(what string, err error) {
	if err != nil {
		h.failed <- fmt.Errorf("%s: %w", what, err)
	}
}

// drainTold is how often a drain says how far it has come.
const drainTold = 2 * time.Second

// shutdown drains; an error means that streams had to be cut.
func (h *house) shutdown() error {
	h.over = true
	ctx, cancel := context.WithTimeout(context.Background(), h.patience())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- h.srv.Shutdown(ctx) }()
	told := time.NewTicker(drainTold)
	defer told.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-told.C:
			end, _ := ctx.Deadline()
			h.log.Info("still draining", "in_flight", h.srv.Stats().Live, "left", time.Until(end).Round(time.Second))
		}
	}
}

// close ends what is left, without a drain unless there was one.
func (h *house) close() error {
	if !h.over {
		h.drain.Store(0)
		_ = h.shutdown()
	}
	for _, l := range h.front {
		_ = l.Close() // the drain closes them, unless it came before Serve
	}
	if h.admin != nil {
		return h.admin.close()
	}
	return nil
}

func (h *house) adminAddr() string {
	if h.admin == nil {
		return off
	}
	return h.admin.l.Addr().String()
}

// welcome is the line that tells a person what to do next.
func (h *house) welcome(s *settings, secure bool) string {
	base := "http://"
	if secure {
		base = "https://"
	}
	base += reachable(s.listen, h.front[0].Addr())
	line := fmt.Sprintf("unbroken is ready: export OPENAI_BASE_URL=%s/v1 ANTHROPIC_BASE_URL=%s", base, base)
	if h.admin != nil {
		line += "  # status: http://" + reachable(s.admin, h.admin.l.Addr()) + "/status"
	}
	return line
}

// reachable is how a client on this machine spells a listener's address.
func reachable(configured string, actual net.Addr) string {
	host, _, _ := net.SplitHostPort(configured)
	_, port, _ := net.SplitHostPort(actual.String())
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// ownCredential reports whether an upstream has a credential of its own.
func (l *loading) ownCredential() bool {
	for _, p := range l.settings.upstreams.list {
		if p.Credential.Name != "" {
			return true
		}
	}
	return false
}
