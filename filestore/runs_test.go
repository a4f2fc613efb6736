package filestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
	ledgertest "github.com/unbroken-llm/unbroken/ledger/storetest"
)

func openRuns(t *testing.T, c Config) *Store {
	t.Helper()
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestRunsPassTheBattery(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledger.Store { return openRuns(t, Config{Dir: t.TempDir()}).Runs() })
}

// TestRunsOutliveTheProcess, in their order and findable as before; what is torn is
// set aside and no reason not to start.
func TestRunsOutliveTheProcess(t *testing.T) {
	ctx, scope, dir := t.Context(), checkpoint.Scope{4}, t.TempDir()
	now := time.Now()
	config := Config{Dir: dir, Clock: func() time.Time { now = now.Add(time.Millisecond); return now }, RunTTL: time.Hour}
	s := openRuns(t, config)
	tell := func(s *Store, id checkpoint.RunID, a ledger.Act) {
		t.Helper()
		if _, _, err := ledger.Append(ctx, s.Runs(), ledger.Key(scope, id), scope, ledger.Entry{At: now, Do: a}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []checkpoint.RunID{"one", "two", "torn"} {
		tell(s, id, ledger.Begin{ID: id})
		tell(s, id, ledger.Commit{Message: ledger.Sum(nil), Lineage: "line", Calls: []ledger.Asked{{ID: "c", Name: "t"}}})
	}
	tell(s, "one", ledger.Flag{What: "again"})
	torn := s.Runs().path(ledger.Key(scope, "torn"))
	s.Close()
	if err := os.Truncate(torn, 60); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(torn+".tmp", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}

	s = openRuns(t, config)
	got, err := s.Runs().Find(ctx, scope, "line")
	if err != nil || len(got) != 2 || got[0] != ledger.Key(scope, "one") || got[1] != ledger.Key(scope, "two") {
		t.Fatalf("%v, %v", got, err)
	}
	one, err := s.Runs().Load(ctx, got[0])
	if err != nil || one.Run.Version != 3 || one.Run.Open() == nil {
		t.Fatalf("%+v, %v", one, err)
	}
	if _, err := s.Runs().Load(ctx, ledger.Key(scope, "torn")); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := os.Stat(torn + ".corrupt"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(torn + ".tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if _, err := s.Runs().Load(ctx, got[0]); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal("an hour later it is still there")
	}
	if _, err := os.Stat(s.Runs().path(got[0])); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("its file is still there")
	}
}

// TestARunThatCannotBeWritten is not acknowledged, and is as it was.
func TestARunThatCannotBeWritten(t *testing.T) {
	s := openRuns(t, Config{Dir: t.TempDir()})
	scope := checkpoint.Scope{4}
	key := ledger.Key(scope, "run")
	if err := os.RemoveAll(filepath.Join(s.c.Dir, "runs")); err != nil {
		t.Fatal(err)
	}
	_, _, err := ledger.Append(context.Background(), s.Runs(), key, scope, ledger.Entry{At: time.Now(), Do: ledger.Begin{ID: "run"}})
	if !errors.Is(err, ledger.ErrUnavailable) {
		t.Fatal(err)
	}
	if _, err := s.Runs().Load(context.Background(), key); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
}
