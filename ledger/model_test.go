package ledger_test

import (
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/ledger"
	"github.com/unbroken-llm/unbroken/ledger/storetest"
)

func TestModel(t *testing.T) {
	programs := 150
	if testing.Short() {
		programs = 60
	}
	storetest.Model(t, programs, func(*testing.T) [2]ledger.Store {
		m := ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})
		return [2]ledger.Store{m, m}
	})
}
