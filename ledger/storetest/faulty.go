package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/unbroken-llm/unbroken/checkpoint"
	turns "github.com/unbroken-llm/unbroken/checkpoint/storetest"
	"github.com/unbroken-llm/unbroken/ledger"
)

var errInjected = errors.New("storetest: injected")

// Faulty is a store whose next calls can be made to fail, from any goroutine.
type Faulty struct {
	ledger.Store

	mu    sync.Mutex
	fails []turns.Moment
}

// Fail makes the next saves fail, one for each moment; 0 lets one succeed.
func (f *Faulty) Fail(ms ...turns.Moment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = append(f.fails, ms...)
}

// Save implements [ledger.Store].
func (f *Faulty) Save(ctx context.Context, key ledger.RunKey, scope checkpoint.Scope, r *ledger.Run, expect uint64) error {
	f.mu.Lock()
	var m turns.Moment
	if len(f.fails) > 0 {
		m, f.fails = f.fails[0], f.fails[1:]
	}
	f.mu.Unlock()
	if m == turns.Before {
		return fmt.Errorf("%w: %w", ledger.ErrUnavailable, errInjected)
	}
	err := f.Store.Save(ctx, key, scope, r, expect)
	if m == turns.After {
		return fmt.Errorf("%w: %w", ledger.ErrUnavailable, errInjected)
	}
	return err
}
