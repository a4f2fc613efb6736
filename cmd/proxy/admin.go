package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/runs"
	"github.com/unbroken-llm/unbroken/statuspage"
	"github.com/unbroken-llm/unbroken/telemetry"
)

// adminServer answers questions about the process:
//
//	/healthz      200 while the process lives
//	/readyz       200 while it wants work, 503 once it drains; and how the store is,
//	              which is no reason to take work away: streams go on without it
//	/status.json  numbers; asks for the token if there is one
//	/status       a page (package statuspage), and /api/… that it reads
//	/metrics      for Prometheus; asks for the token too
//	/runs         the runs last written; asks for it too
//	/runs/{id}…   the ledger's API (package runs), for each caller its own
type adminServer struct {
	l     net.Listener
	http  *http.Server
	srv   *proxy.Server
	kept  *keeping
	conf  *reloader
	since time.Time
	token atomic.Pointer[string] // "" asks for none
}

// status is the body of /status.json.
type status struct {
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
	Ready   bool      `json:"ready"`
	// Live counts requests in flight, Accepted all of them, Refused those that
	// were turned away for load or because of the drain.
	Live     int64 `json:"live"`
	Accepted int64 `json:"accepted"`
	Refused  int64 `json:"refused"`
	// Waiting stand in line to be let in.
	Waiting int `json:"waiting"`
	// Ended says how protected requests ended, by whose doing.
	Ended struct {
		Completed int64 `json:"completed"`
		Client    int64 `json:"client"`
		Us        int64 `json:"us"`
		Provider  int64 `json:"provider"`
		Request   int64 `json:"request"`
	} `json:"ended"`
	// Checkpoints says how many turns had none from the start, lost theirs on
	// the way, or closed a call before it was acknowledged.
	Checkpoints struct {
		Unclaimed int64 `json:"unclaimed"`
		Reclaimed int64 `json:"reclaimed"`
		Dropped   int64 `json:"dropped"`
		Unacked   int64 `json:"unacked"`
		// Takeovers were carried on for a new connection, or replayed to
		// one; Unreadable ones could not be.
		Takeovers  int64 `json:"takeovers"`
		Unreadable int64 `json:"unreadable"`
	} `json:"checkpoints"`
	// Later says for how many requests something was done that an earlier turn of
	// their conversation left to be done, and how many turns could not leave it.
	Later struct {
		Hinted       int64 `json:"hinted"`
		Expanded     int64 `json:"expanded"`
		Unremembered int64 `json:"unremembered"`
	} `json:"later_turns"`
	Store  storeHealth `json:"store"`
	Config reloadState `json:"config"`
	// Breakers are those of an upstream and model that something went wrong with.
	Breakers []breakerState `json:"breakers"`
	// Upstreams tells how many protected streams each has, how many of them are
	// being recovered or stand in line for that, and how many requests a second it
	// answers when all is well.
	Upstreams []upstreamState `json:"upstreams"`
}

type breakerState struct {
	Upstream  string     `json:"upstream"`
	Model     string     `json:"model"`
	State     string     `json:"state"` // closed, half-open, open
	Since     time.Time  `json:"since"`
	Until     *time.Time `json:"until,omitempty"`
	Failures  int        `json:"failures"`
	Successes int        `json:"successes"`
	Opened    int64      `json:"opened"`
}

type upstreamState struct {
	Name       string  `json:"name"`
	Live       int     `json:"live"`
	Recoveries int     `json:"recoveries"`
	Waiting    int     `json:"waiting"`
	Healthy    float64 `json:"healthy_rate"`
}

func listenAdmin(addr string, h *house) (*adminServer, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("admin: listen on %s: the port is in use; stop what uses it or choose another with --admin (or --admin off)", addr)
	}
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	srv, kept, seen := h.srv, h.kept, h.seen
	a := &adminServer{l: l, srv: srv, kept: kept, conf: h.conf, since: time.Now()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.HandleFunc("GET /status.json", a.guarded(a.status))
	page := &statuspage.Page{Board: seen.board, Status: func() any { return a.numbers() }, Epoch: a.since}
	if srv.Ledger() != nil {
		api := &runs.Server{Store: srv.Ledger(), Scope: a.whose}
		api.Routes(mux)
		mux.HandleFunc("GET /runs", a.guarded(api.Recent))
		page.Runs, page.Run = api.Recent, api.ByKey
	}
	page.Routes(mux, a.guarded)
	seen.metrics.Read(telemetry.Source{Version: shortVersion(), Stats: srv.Stats, Store: func() telemetry.Store { return kept.health().measured() }, Config: h.conf.measured})
	mux.HandleFunc("GET /metrics", a.guarded(seen.metrics.Handler().ServeHTTP))
	a.http = &http.Server{Handler: a.local(mux), ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	return a, nil
}

func (a *adminServer) serve() error {
	if err := a.http.Serve(a.l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (a *adminServer) close() error { return a.http.Close() }

// local refuses requests to a loopback listener under a name that is not this
// machine's: a web page whose name was bound to 127.0.0.1 sends such ones.
func (a *adminServer) local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loopback(a.l.Addr().String()) && !loopback(withPort(r.Host)) {
			http.Error(w, "the admin listener answers to localhost and loopback addresses only", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "80")
}

// whose tells whose runs a request is about: by the credential that the caller also
// sends to its provider, or for operators by the scope itself. Callers beyond this
// machine show the token in a field of its own.
func (a *adminServer) whose(r *http.Request) (checkpoint.Scope, error) {
	if t := *a.token.Load(); t != "" && !same(r.Header.Get(headerToken), t) {
		return checkpoint.Scope{}, fmt.Errorf("send %s with the admin token, besides the credential of the run's own requests", headerToken)
	}
	if named := r.Header.Get(headerScope); named != "" {
		raw, err := hex.DecodeString(named)
		if err != nil || len(raw) != len(checkpoint.Scope{}) {
			return checkpoint.Scope{}, fmt.Errorf("%s is %d bytes in hex", headerScope, len(checkpoint.Scope{}))
		}
		return checkpoint.Scope(raw), nil
	}
	who, _ := a.srv.ScopeOf(r.Header) // one without a credential reaches what it names, of its like
	return who, nil
}

const (
	headerToken = "X-Unbroken-Token"
	headerScope = "X-Unbroken-Scope"
)

func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// guarded asks for the token.
func (a *adminServer) guarded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if t := *a.token.Load(); t != "" && !same(r.Header.Get("Authorization"), "Bearer "+t) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "send Authorization: Bearer with the admin token", http.StatusUnauthorized)
			return
		}
		next(w, r)
	}
}

func (a *adminServer) healthz(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

func (a *adminServer) readyz(w http.ResponseWriter, _ *http.Request) {
	if !a.srv.Ready() {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
	fmt.Fprintln(w, a.kept.health().line())
}

func (a *adminServer) status(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(a.numbers()) // the reader left
}

func (a *adminServer) numbers() status {
	n := a.srv.Stats()
	s := status{Version: shortVersion(), Since: a.since, Ready: n.Ready, Live: n.Live, Accepted: n.Accepted, Refused: n.Refused}
	s.Waiting = n.Waiting
	s.Ended.Completed, s.Ended.Client, s.Ended.Us = n.Ended.Completed, n.Ended.Client, n.Ended.Us
	s.Ended.Provider, s.Ended.Request = n.Ended.Provider, n.Ended.Request
	s.Checkpoints.Reclaimed = n.Reclaimed
	s.Checkpoints.Unclaimed, s.Checkpoints.Dropped, s.Checkpoints.Unacked = n.Unclaimed, n.Dropped, n.Unacked
	s.Checkpoints.Takeovers, s.Checkpoints.Unreadable = n.Takeovers, n.Unreadable
	s.Later.Hinted, s.Later.Expanded, s.Later.Unremembered = n.Hinted, n.Expanded, n.Unremembered
	s.Store, s.Config = a.kept.health(), a.conf.state()
	s.Breakers, s.Upstreams = []breakerState{}, []upstreamState{}
	for _, b := range n.Breakers {
		t := breakerState{Upstream: b.Upstream, Model: b.Model, State: b.State, Since: b.Since, Failures: b.Failures, Successes: b.Successes, Opened: b.Opened}
		if !b.Until.IsZero() {
			t.Until = &b.Until
		}
		s.Breakers = append(s.Breakers, t)
	}
	for _, u := range n.Upstreams {
		s.Upstreams = append(s.Upstreams, upstreamState(u))
	}
	return s
}
