package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	turns "github.com/unbroken-llm/unbroken/checkpoint/storetest"
	"github.com/unbroken-llm/unbroken/ledger"
	"github.com/unbroken-llm/unbroken/ledger/storetest"
)

// house is an API over a ledger of its own, whose callers are told apart by their
// whole Authorization.
type house struct {
	*testing.T
	store *storetest.Faulty
	url   string
	drop  atomic.Int32 // answers to lose on the way
}

func open(t *testing.T) *house {
	h := &house{T: t, store: &storetest.Faulty{Store: ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})}}
	mux := http.NewServeMux()
	api := &Server{Store: h.store, Scope: scopeOf}
	api.Routes(mux)
	mux.HandleFunc("GET /runs", api.Recent)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.drop.Add(-1) >= 0 {
			mux.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	h.url = s.URL
	return h
}

func scopeOf(r *http.Request) (checkpoint.Scope, error) {
	who := r.Header.Get("Authorization")
	if who == "" {
		return checkpoint.Scope{}, errors.New("no credential")
	}
	return checkpoint.Scope(ledger.Sum([]byte(who))), nil
}

func (h *house) client(who string) *Client {
	return &Client{URL: h.url, Header: http.Header{"authorization": {who}}, Pause: time.Millisecond}
}

// asks commits a step as the sidecar does when it saw one.
func (h *house) asks(who, id string, n int, calls ...ledger.Asked) {
	h.Helper()
	scope := checkpoint.Scope(ledger.Sum([]byte(who)))
	_, _, err := ledger.Append(context.Background(), h.store, ledger.Key(scope, checkpoint.RunID(id)), scope, ledger.Entry{At: time.Now(), Do: ledger.Commit{
		Message: ledger.Sum([]byte{byte(n)}), Lineage: fmt.Sprint("line ", n), Finish: "tool_calls", Calls: calls,
	}})
	if err != nil {
		h.Fatal(err)
	}
}

var pay = ledger.Asked{ID: "call_1", Name: "pay"}

// TestAnAgentThatCrashes: what was announced and not told of is not executed again,
// what was never announced is, and a process that was succeeded is refused.
func TestAnAgentThatCrashes(t *testing.T) {
	h, ctx := open(t), t.Context()
	_, err := h.client("me").Claim(ctx, "run 1", Declaration{Reports: true, Policies: map[string]Policy{"read": {Recovery: "replay"}}})
	if err == nil || !strings.Contains(err.Error(), "invalid") {
		t.Fatalf("a run id with a space: %v", err)
	}
	first, err := h.client("me").Claim(ctx, "run~1", Declaration{Reports: true, Policies: map[string]Policy{"read": {Recovery: "replay"}}})
	must(t, err)
	h.asks("me", "run~1", 1, pay, ledger.Asked{ID: "call_2", Name: "read"}, ledger.Asked{ID: "call_3", Name: "pay"})
	must(t, first.Start(ctx, "call_1", 1))
	must(t, first.Start(ctx, "call_2", 1))

	second, err := h.client("me").Claim(ctx, "run~1", Declaration{Reports: true, Policies: map[string]Policy{"read": {Recovery: "replay"}}})
	must(t, err)
	if err := first.Result(ctx, "call_1", 1, []byte("paid"), false); !refusedAs(err, "fenced") {
		t.Fatalf("the first process: %v", err)
	}
	got, err := second.Recovery(ctx)
	must(t, err)
	var advices []Advice
	for _, c := range got.Calls {
		advices = append(advices, c.Advice)
	}
	if got.Advice != SettleBatch || !slices.Equal(advices, []Advice{GiveUp, Replay, Execute}) {
		t.Fatalf("%+v", got)
	}
	must(t, second.Lose(ctx, got.Calls[0].Op, "its process is gone"))
	must(t, second.Start(ctx, got.Calls[1].Op, got.Calls[1].Attempt))
	must(t, second.Result(ctx, got.Calls[1].Op, 2, []byte("text"), false))
	must(t, second.Start(ctx, got.Calls[2].Op, 1))
	run, err := second.Get(ctx)
	must(t, err)
	for _, c := range run.Steps[0].Calls {
		if c.Result != nil {
			t.Fatal("a result is to be seen before the batch is finalized")
		}
	}
	must(t, second.Result(ctx, got.Calls[2].Op, 1, []byte("paid"), false))
	run, err = second.Get(ctx)
	must(t, err)
	if c := run.Steps[0].Calls; c[0].State != "indeterminate" || !bytes.Equal(c[1].Result.Content, []byte("text")) || !run.Steps[0].Finalized {
		t.Fatalf("%+v", run.Steps[0])
	}
	must(t, second.End(ctx, "failed", "provider"))
	if got, err = second.Recovery(ctx); err != nil || got.Advice != RedeliverEnd {
		t.Fatalf("%+v, %v", got, err)
	}
	list, err := h.client("operator").List(ctx, 10)
	if err != nil || len(list) != 1 || list[0].ID != "run~1" || list[0].Count != 1 || list[0].Steps != nil {
		t.Fatalf("%+v, %v", list, err)
	}
}

func TestTickets(t *testing.T) {
	h, ctx := open(t), t.Context()
	run, err := h.client("me").Claim(ctx, "run", Declaration{Reports: true})
	must(t, err)
	h.asks("me", "run", 1, pay)
	soon := time.Now().Add(time.Hour)
	must(t, run.Wait(ctx, "call_1", Ticket{ID: "t", Kind: "approval", Expires: &soon}))
	got, err := run.Recovery(ctx)
	must(t, err)
	if got.Advice != AwaitTicket || got.Ticket.ID != "t" || got.Ticket.Expires == nil || got.Calls[0].Ticket != "t" {
		t.Fatalf("%+v", got)
	}
	if err := run.Resume(ctx, "t", "timer"); !refusedAs(err, "ticket") {
		t.Fatal(err)
	}
	must(t, run.Resume(ctx, "t", "approval"))
	if err := run.Resume(ctx, "t", "approval"); !refusedAs(err, "ticket") {
		t.Fatalf("a second time: %v", err)
	}
	must(t, run.Result(ctx, "call_1", 1, nil, false))
	must(t, run.Wait(ctx, "", Ticket{ID: "u", Kind: "user"}))
	must(t, run.Resume(ctx, "u", "user"))
}

// TestCallersAreApart: another credential sees nothing and reaches nothing.
func TestCallersAreApart(t *testing.T) {
	h, ctx := open(t), t.Context()
	_, err := h.client("me").Claim(ctx, "run", Declaration{})
	must(t, err)
	if _, err := h.client("you").Get(ctx, "run"); !refusedAs(err, "unknown_run") {
		t.Fatal(err)
	}
	got, err := h.client("you").Recovery(ctx, "run")
	if err != nil || got.Advice != Unknown || got.Run != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := (&Client{URL: h.url}).Get(ctx, "run"); !refusedAs(err, "unauthorized") {
		t.Fatal(err)
	}
}

// TestLostAnswers: every request is made again, and happens once.
func TestLostAnswers(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.store.Fail(turns.Before, 0, turns.After)
	h.drop.Store(2)
	run, err := h.client("me").Claim(ctx, "run", Declaration{Reports: true})
	must(t, err)
	h.asks("me", "run", 1, pay)
	for _, fail := range []func(){func() { h.drop.Store(2) }, func() { h.store.Fail(turns.After, turns.Before) }} {
		fail()
		if err := run.Start(ctx, "call_1", 1); err != nil && !refusedAs(err, "conflict") {
			t.Fatal(err)
		}
	}
	got, err := run.Get(ctx)
	must(t, err)
	if c := got.Steps[0].Calls[0]; c.Attempts != 1 || c.State != "executing" {
		t.Fatalf("%+v", c)
	}
}

// TestALedgerThatIsAway: nothing is acknowledged, and the advice is unknown.
func TestALedgerThatIsAway(t *testing.T) {
	away := &Server{Store: gone{}, Scope: scopeOf}
	mux := http.NewServeMux()
	away.Routes(mux)
	s := httptest.NewServer(mux)
	defer s.Close()
	c := &Client{URL: s.URL, Header: http.Header{"Authorization": {"me"}}, Pause: time.Microsecond}
	if _, err := c.Claim(t.Context(), "run", Declaration{}); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	got, err := c.Recovery(t.Context(), "run")
	if err != nil || got.Advice != Unknown || !strings.Contains(got.Reason, "redis is away") {
		t.Fatalf("%+v, %v", got, err)
	}
}

type gone struct{ ledger.Store }

var errGone = fmt.Errorf("%w: redis is away", ledger.ErrUnavailable)

func (gone) Load(context.Context, ledger.RunKey) (ledger.Stored, error) {
	return ledger.Stored{}, errGone
}

// TestBadRequests: a typed error, and what would be legal.
func TestBadRequests(t *testing.T) {
	h, ctx := open(t), t.Context()
	_, err := h.client("me").Claim(ctx, "run", Declaration{})
	must(t, err)
	h.asks("me", "run", 1, pay)
	must(t, h.client("me").do(ctx, http.MethodPut, "/runs/loose", 0, "", beginning{}, &told{}))
	h.asks("me", "loose", 1, pay)
	for _, tc := range []struct {
		name, method, path, header, body string
		status                           int
		code                             string
	}{
		{"an unknown run", "GET", "/runs/other", "", "", 404, "unknown_run"},
		{"an act on it", "POST", "/runs/other/claim", "", "{}", 404, "unknown_run"},
		{"a call that nobody asked for", "POST", "/runs/loose/calls/zz/result", "", "{}", 404, "unknown_call"},
		{"a result without the claim", "POST", "/runs/run/calls/call_1/result", "", "{}", 409, "fenced"},
		{"without a claim", "POST", "/runs/run/calls/call_1/start", "Idempotency-Key: k", `{"attempt":1}`, 409, "fenced"},
		{"with a claim of nobody's", "POST", "/runs/run/calls/call_1/start", "X-Run-Fence: 7", `{"attempt":1}`, 409, "fenced"},
		{"a fence that is no number", "POST", "/runs/run/claim", "X-Run-Fence: x", "{}", 400, "invalid"},
		{"a version that is no number", "POST", "/runs/run/claim", "If-Match: x", "{}", 400, "invalid"},
		{"a version that is past", "POST", "/runs/run/claim", `If-Match: "1"`, "{}", 409, "version"},
		{"an unknown field", "POST", "/runs/run/claim", "", `{"holdr":"x"}`, 400, "invalid"},
		{"no JSON", "POST", "/runs/run/claim", "", `{`, 400, "invalid"},
		{"a digest that is none", "POST", "/runs/loose/calls/call_1/result", "", `{"digest":"zz"}`, 400, "invalid"},
		{"an end of no cause", "POST", "/runs/run/end", "", `{}`, 400, "invalid"},
		{"a policy of no kind", "POST", "/runs/run/declare", "", `{"policies":{"x":{"recovery":"maybe"}}}`, 400, "invalid"},
		{"a body without end", "POST", "/runs/run/claim", "", `{"holder":"` + strings.Repeat("x", maxBody) + `"}`, 413, "too_large"},
		{"a run id that is a path", "GET", "/runs/..%2F..", "", "", 400, "invalid"},
		{"a step over an open batch", "POST", "/runs/loose/steps", "", `{"message":"` + ledger.Sum([]byte("m")).String() + `"}`, 409, "illegal"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(ctx, tc.method, h.url+tc.path, strings.NewReader(tc.body))
			must(t, err)
			r.Header.Set("Authorization", "me")
			if name, value, ok := strings.Cut(tc.header, ": "); ok {
				r.Header.Set(name, value)
			}
			res, err := http.DefaultClient.Do(r)
			must(t, err)
			defer func() { _ = res.Body.Close() }()
			b, _ := io.ReadAll(res.Body)
			if res.StatusCode != tc.status || !strings.Contains(string(b), `"code":"`+tc.code+`"`) {
				t.Fatalf("%d %s", res.StatusCode, b)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refusedAs(err error, code string) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Code == code
}
