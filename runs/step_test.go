package runs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/ledger"
)

// TestATurnOfTheApplicationsOwn: an agent whose inference does not go through the
// sidecar tells of its turns, and is answered like every other, also when the answer to
// the telling is lost on the way.
func TestATurnOfTheApplicationsOwn(t *testing.T) {
	h, ctx := open(t), t.Context()
	run, err := h.client("me").Claim(ctx, "run", Declaration{Reports: true, Policies: map[string]Policy{"pay": {Recovery: "reconnect"}}})
	if err != nil {
		t.Fatal(err)
	}
	turn := Turn{Message: []byte(`{"role":"assistant"}`), Model: "m", Finish: "tool_calls", Calls: []Asked{{ID: "c1", Name: "pay", Args: []byte(`{"eur":5}`)}}}
	h.drop.Store(1)
	if err := run.Step(ctx, turn); err != nil {
		t.Fatal(err)
	}
	if err := run.Step(ctx, turn); err != nil {
		t.Errorf("told again: %v", err)
	}
	next, err := run.Recovery(ctx)
	if err != nil || next.Advice != SettleBatch || len(next.Calls) != 1 || next.Calls[0].Advice != Execute {
		t.Fatalf("%+v, %v", next, err)
	}
	step := next.Run.Steps[0]
	if len(next.Run.Steps) != 1 || step.Model != "m" || step.Finish != "tool_calls" || step.Message != ledger.Sum(turn.Message).String() {
		t.Errorf("%+v", next.Run.Steps)
	}
	other := turn
	other.Calls = []Asked{{ID: "c1", Name: "pay", Args: []byte(`{"eur":6}`)}}
	if err := run.Step(ctx, other); !refusedAs(err, "illegal") {
		t.Errorf("another turn over an open batch: %v", err)
	}
	if err := run.Start(ctx, next.Calls[0].Op, 1); err != nil {
		t.Fatal(err)
	}
	if err := run.Result(ctx, "c1", 1, []byte("paid"), false); err != nil {
		t.Fatal(err)
	}
	if err := run.Step(ctx, Turn{Message: []byte("Paid."), Finish: "stop"}); err != nil {
		t.Fatal(err)
	}
	if next, err = run.Recovery(ctx); err != nil || next.Advice != RedeliverEnd {
		t.Errorf("%+v, %v", next, err)
	}
}

// TestATurnThatWaits: nothing of its batch is begun before the ticket is redeemed, and
// who was succeeded tells of no turn.
func TestATurnThatWaits(t *testing.T) {
	h, ctx := open(t), t.Context()
	first, err := h.client("me").Claim(ctx, "run", Declaration{Reports: true})
	if err != nil {
		t.Fatal(err)
	}
	run, err := h.client("me").Claim(ctx, "run", Declaration{Reports: true})
	if err != nil {
		t.Fatal(err)
	}
	soon := time.Now().Add(time.Hour)
	turn := Turn{Message: []byte("m"), Calls: []Asked{{ID: "c1", Name: "pay"}}, Ticket: &Ticket{ID: "t", Kind: "approval", Expires: &soon}}
	if err := first.Step(ctx, turn); !refusedAs(err, "fenced") {
		t.Errorf("from who was succeeded: %v", err)
	}
	if err := run.Step(ctx, turn); err != nil {
		t.Fatal(err)
	}
	if err := run.Start(ctx, "c1", 1); !refusedAs(err, "illegal") {
		t.Errorf("begun before its ticket: %v", err)
	}
	if err := run.Resume(ctx, "t", "approval"); err != nil {
		t.Fatal(err)
	}
	if err := run.Start(ctx, "c1", 1); err != nil {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := run.Step(gone, turn); !errors.Is(err, ErrUnavailable) {
		t.Errorf("nobody was asked: %v", err)
	}
}
