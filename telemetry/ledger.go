package telemetry

import (
	"context"
	"errors"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
)

// Ledger is s with its writes counted.
func (p *Prometheus) Ledger(s ledger.Store) ledger.Store { return countedLedger{s, p} }

type countedLedger struct {
	ledger.Store
	p *Prometheus
}

// Save implements [ledger.Store].
func (l countedLedger) Save(ctx context.Context, key ledger.RunKey, scope checkpoint.Scope, r *ledger.Run, expect uint64) error {
	err := l.Store.Save(ctx, key, scope, r, expect)
	answer := other
	switch {
	case err == nil:
		answer = "saved"
	case errors.Is(err, ledger.ErrChanged):
		answer = "changed"
	case errors.Is(err, ledger.ErrUnconfirmed):
		answer = "unconfirmed"
	case errors.Is(err, ledger.ErrUnavailable):
		answer = "unavailable"
	}
	l.p.ledger.WithLabelValues(answer).Inc()
	return err
}
