package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
	"github.com/unbroken-llm/unbroken/ledger/storetest"
)

func TestMemoryPassesTheBattery(t *testing.T) {
	storetest.Run(t, func(*testing.T) ledger.Store {
		return ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})
	})
}

func TestMemoryForgetsWhatIsOld(t *testing.T) {
	now := time.Now()
	m := ledger.NewMemory(ledger.MemoryConfig{Clock: func() time.Time { return now }, TTL: time.Hour})
	put(t, m, "run")
	now = now.Add(time.Hour - 1)
	if _, err := m.Load(context.Background(), ledger.Key(checkpoint.Scope{}, "run")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(1)
	if _, err := m.Load(context.Background(), ledger.Key(checkpoint.Scope{}, "run")); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
}

// TestMemoryIsBounded: ended runs go first, then the oldest, never the one written.
func TestMemoryIsBounded(t *testing.T) {
	m := ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now, MaxTotal: 4 << 10})
	put(t, m, "old")
	put(t, m, "ended")
	if _, _, err := ledger.Append(context.Background(), m, ledger.Key(checkpoint.Scope{}, "ended"), checkpoint.Scope{},
		ledger.Entry{Do: ledger.End{Cause: ledger.Stopped}}); err != nil {
		t.Fatal(err)
	}
	has := func(id checkpoint.RunID) bool {
		_, err := m.Load(context.Background(), ledger.Key(checkpoint.Scope{}, id))
		return err == nil
	}
	n := 0
	for ; has("ended"); n++ {
		put(t, m, checkpoint.RunID(fmt.Sprint("run-", n)))
	}
	if !has("old") {
		t.Fatal("a run that goes on went before one that has ended")
	}
	for ; has("old"); n++ {
		put(t, m, checkpoint.RunID(fmt.Sprint("run-", n)))
	}
	if last := checkpoint.RunID(fmt.Sprint("run-", n-1)); !has(last) {
		t.Fatal("what was just written is gone")
	}
}

func put(t *testing.T, s ledger.Store, id checkpoint.RunID) {
	t.Helper()
	if _, _, err := ledger.Append(context.Background(), s, ledger.Key(checkpoint.Scope{}, id), checkpoint.Scope{},
		ledger.Entry{Do: ledger.Begin{ID: id}}); err != nil {
		t.Fatal(err)
	}
}
