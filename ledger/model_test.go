package ledger_test

import (
	"flag"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/ledger"
	"github.com/unbroken-llm/unbroken/ledger/storetest"
)

// programs are enough for each thing that can happen to happen; make every has more.
var programs = flag.Int("model.programs", 60, "how many random programs the ledger is played")

func TestModel(t *testing.T) {
	storetest.Model(t, *programs, func(*testing.T) [2]ledger.Store {
		m := ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})
		return [2]ledger.Store{m, m}
	})
}
