package runs

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
)

// Server is the HTTP API of a ledger.
type Server struct {
	Store ledger.Store
	// Scope tells whose runs a request is about, by its credential.
	Scope func(*http.Request) (checkpoint.Scope, error)
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
	// Timeout bounds the store's part of a request; default 2 s.
	Timeout time.Duration
}

// maxBody bounds a request: a result in base64 and its surroundings, in bytes.
const maxBody = 2*ledger.MaxResult + 64<<10

// Routes adds the API to mux:
//
//	PUT  /runs/{id}                      it begins; again is no error
//	GET  /runs/{id}                      what is known of it
//	GET  /runs/{id}/recovery             what may be done now
//	POST /runs/{id}/claim                the caller is the run's process now
//	POST /runs/{id}/declare              how its calls are handled
//	POST /runs/{id}/steps                a step that did not go through the sidecar
//	POST /runs/{id}/calls/{call}/start   an attempt, announced before its effect
//	POST /runs/{id}/calls/{call}/result  its outcome
//	POST /runs/{id}/calls/{call}/wait    it waits for a ticket
//	POST /runs/{id}/calls/{call}/lose    it is given up
//	POST /runs/{id}/wait                 the run waits for a ticket
//	POST /runs/{id}/resume               a ticket is redeemed
//	POST /runs/{id}/end                  the run ends
//
// {call} is an operation id, or the provider's id, which means its newest use.
func (s *Server) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /runs/{id}", s.show)
	mux.HandleFunc("GET /runs/{id}/recovery", s.recovery)
	post(mux, s, "PUT /runs/{id}", func(r *http.Request, b beginning) (ledger.Act, error) {
		return ledger.Begin{ID: checkpoint.RunID(r.PathValue("id")), Thread: b.Thread, Parent: checkpoint.RunID(b.Parent)}, nil
	})
	post(mux, s, "POST /runs/{id}/claim", func(_ *http.Request, b claiming) (ledger.Act, error) {
		return ledger.Claim{Holder: b.Holder}, nil
	})
	post(mux, s, "POST /runs/{id}/declare", func(_ *http.Request, b Declaration) (ledger.Act, error) { return b.act() })
	post(mux, s, "POST /runs/{id}/steps", func(_ *http.Request, b committing) (ledger.Act, error) { return b.act() })
	post(mux, s, "POST /runs/{id}/calls/{call}/start", func(r *http.Request, b starting) (ledger.Act, error) {
		return ledger.Start{Call: r.PathValue("call"), N: b.Attempt}, nil
	})
	post(mux, s, "POST /runs/{id}/calls/{call}/result", func(r *http.Request, b resulting) (ledger.Act, error) {
		d, err := digest(b.Digest)
		return ledger.Result{Call: r.PathValue("call"), Attempt: b.Attempt, Digest: d, Content: b.Content, Error: b.Error}, err
	})
	post(mux, s, "POST /runs/{id}/calls/{call}/wait", func(r *http.Request, b waiting) (ledger.Act, error) {
		return ledger.Wait{Call: r.PathValue("call"), Ticket: b.Ticket.ticket()}, nil
	})
	post(mux, s, "POST /runs/{id}/calls/{call}/lose", func(r *http.Request, b losing) (ledger.Act, error) {
		return ledger.Lose{Call: r.PathValue("call"), Why: b.Why}, nil
	})
	post(mux, s, "POST /runs/{id}/wait", func(_ *http.Request, b waiting) (ledger.Act, error) {
		return ledger.Wait{Ticket: b.Ticket.ticket()}, nil
	})
	post(mux, s, "POST /runs/{id}/resume", func(_ *http.Request, b resuming) (ledger.Act, error) {
		return ledger.Resume{Ticket: b.Ticket, Kind: b.Kind}, nil
	})
	post(mux, s, "POST /runs/{id}/end", func(_ *http.Request, b ending) (ledger.Act, error) {
		c, ok := ledger.ParseEndCause(b.Cause)
		if !ok {
			return nil, fmt.Errorf("cause %q: completed, step_limit, cancelled, stopped, failed or indeterminate", b.Cause)
		}
		return ledger.End{Cause: c, Type: b.Type}, nil
	})
}

// post adds a route whose body becomes an entry.
func post[B any](mux *http.ServeMux, s *Server, pattern string, act func(*http.Request, B) (ledger.Act, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		var body B
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		d.DisallowUnknownFields()
		if err := d.Decode(&body); err != nil && !errors.Is(err, io.EOF) { // no body is an empty one
			refuse(w, fmt.Errorf("%w: body: %w", ledger.ErrInvalid, err))
			return
		}
		a, err := act(r, body)
		if err != nil {
			refuse(w, fmt.Errorf("%w: %w", ledger.ErrInvalid, err))
			return
		}
		s.tell(w, r, a)
	})
}

// tell appends an act of the caller's.
func (s *Server) tell(w http.ResponseWriter, r *http.Request, a ledger.Act) {
	key, scope, err := s.about(r)
	if err != nil {
		refuse(w, err)
		return
	}
	e := ledger.Entry{At: s.now(), Key: r.Header.Get(KeyHeader), Told: true, Do: a}
	if e.Fence, err = number(r.Header.Get(FenceHeader)); err != nil {
		refuse(w, fmt.Errorf("%w: %s: %w", ledger.ErrInvalid, FenceHeader, err))
		return
	}
	if e.Expect, err = number(strings.Trim(r.Header.Get(VersionHeader), `"`)); err != nil {
		refuse(w, fmt.Errorf("%w: %s: %w", ledger.ErrInvalid, VersionHeader, err))
		return
	}
	ctx, cancel := s.bounded(r.Context())
	defer cancel()
	run, effect, err := ledger.Append(ctx, s.Store, key, scope, e)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("ETag", strconv.Quote(strconv.FormatUint(run.Version, 10)))
	answer(w, http.StatusOK, told{Effect: effect.String(), Run: view(run, "")})
}

func (s *Server) show(w http.ResponseWriter, r *http.Request) {
	key, _, err := s.about(r)
	if err != nil {
		refuse(w, err)
		return
	}
	ctx, cancel := s.bounded(r.Context())
	defer cancel()
	got, err := s.Store.Load(ctx, key)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("ETag", strconv.Quote(strconv.FormatUint(got.Run.Version, 10)))
	answer(w, http.StatusOK, view(got.Run, got.Doubt))
}

// recovery always has an answer: where the store has none, it is "unknown".
func (s *Server) recovery(w http.ResponseWriter, r *http.Request) {
	key, _, err := s.about(r)
	if err != nil {
		refuse(w, err)
		return
	}
	by := ledger.Asker{}
	if by.Fence, err = number(r.Header.Get(FenceHeader)); err != nil {
		refuse(w, fmt.Errorf("%w: %s: %w", ledger.ErrInvalid, FenceHeader, err))
		return
	}
	s.advise(w, r, key, by)
}

func (s *Server) advise(w http.ResponseWriter, r *http.Request, key ledger.RunKey, by ledger.Asker) {
	ctx, cancel := s.bounded(r.Context())
	defer cancel()
	got, err := s.Store.Load(ctx, key)
	by.Doubt = got.Doubt
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		by.Doubt = err.Error()
	}
	answer(w, http.StatusOK, viewRecovery(ledger.Recover(got.Run, by), got.Run, got.Doubt))
}

// Recent answers with the runs last written, of all callers, without their steps:
// for the operator. ?n= says how many, 50 by default.
func (s *Server) Recent(w http.ResponseWriter, r *http.Request) {
	most := 50
	if n, err := strconv.Atoi(r.URL.Query().Get("n")); err == nil && n > 0 {
		most = min(n, ledger.MaxRecent)
	}
	ctx, cancel := s.bounded(r.Context())
	defer cancel()
	keys, err := s.Store.Recent(ctx, most)
	if err != nil {
		refuse(w, err)
		return
	}
	out := listed{Runs: []*Run{}}
	for _, key := range keys {
		got, err := s.Store.Load(ctx, key)
		if err != nil {
			continue // it is gone, or shows up when it is asked for by name
		}
		v := view(got.Run, got.Doubt)
		v.Key, v.Open = hex.EncodeToString(key[:]), got.Run.Open() != nil
		v.Count = got.Run.Dropped + len(got.Run.Steps)
		v.Steps, v.Tickets = nil, nil
		out.Runs = append(out.Runs, v)
	}
	answer(w, http.StatusOK, out)
}

// ByKey answers as GET /runs/{id}/recovery does, for a run of whichever caller, by the
// key that [Server.Recent] tells: for the operator. The answer holds the run.
func (s *Server) ByKey(w http.ResponseWriter, r *http.Request) {
	raw, err := hex.DecodeString(r.PathValue("key"))
	if err != nil || len(raw) != len(ledger.RunKey{}) {
		refuse(w, fmt.Errorf("%w: a key is %d bytes in hex", ledger.ErrInvalid, len(ledger.RunKey{})))
		return
	}
	s.advise(w, r, ledger.RunKey(raw), ledger.Asker{})
}

// about tells which run a request is about.
func (s *Server) about(r *http.Request) (ledger.RunKey, checkpoint.Scope, error) {
	id, err := checkpoint.ParseRunID(r.PathValue("id"))
	if err != nil {
		return ledger.RunKey{}, checkpoint.Scope{}, fmt.Errorf("%w: %w", ledger.ErrInvalid, err)
	}
	scope, err := s.Scope(r)
	if err != nil {
		return ledger.RunKey{}, checkpoint.Scope{}, fmt.Errorf("%w: %w", errWho, err)
	}
	return ledger.Key(scope, id), scope, nil
}

func (s *Server) now() time.Time {
	if s.Clock != nil {
		return s.Clock()
	}
	return time.Now()
}

func (s *Server) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.Timeout > 0 {
		return context.WithTimeout(ctx, s.Timeout)
	}
	return context.WithTimeout(ctx, 2*time.Second)
}

func number(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	return strconv.ParseUint(s, 10, 64)
}

func digest(s string) (d ledger.Digest, err error) {
	if s == "" {
		return d, nil
	}
	if err := d.UnmarshalText([]byte(s)); err != nil {
		return d, fmt.Errorf("digest %.70q is no SHA-256 in hex", s)
	}
	return d, nil
}

func (b Declaration) act() (ledger.Act, error) {
	a := ledger.Declare{Reports: b.Reports}
	for _, tool := range sorted(b.Policies) {
		p := b.Policies[tool]
		r, ok := ledger.ParseRecovery(p.Recovery)
		if !ok {
			return nil, fmt.Errorf("policy of %q: recovery %q: never_replay, replay or reconnect", tool, p.Recovery)
		}
		a.Policies = append(a.Policies, ledger.ToolPolicy{Tool: tool, Policy: ledger.Policy{Recovery: r, Attempts: p.Attempts}})
	}
	return a, nil
}

func (b committing) act() (ledger.Act, error) {
	d, err := digest(b.Message)
	if err != nil {
		return nil, err
	}
	a := ledger.Commit{Message: d, Model: b.Model, Finish: b.Finish, Paused: b.Paused}
	for _, c := range b.Calls {
		args, err := digest(c.Args)
		if err != nil {
			return nil, err
		}
		a.Calls = append(a.Calls, ledger.Asked{ID: c.ID, Name: c.Name, Args: args})
	}
	if b.Ticket != nil {
		t := b.Ticket.ticket()
		a.Ticket = &t
	}
	return a, nil
}
