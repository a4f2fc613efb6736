package sealed_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/filestore"
	"github.com/unbroken-llm/unbroken/ledger"
	ledgertest "github.com/unbroken-llm/unbroken/ledger/storetest"
	"github.com/unbroken-llm/unbroken/redisstore"
	"github.com/unbroken-llm/unbroken/sealed"
)

func fileRuns(t *testing.T, dir, keys string) *filestore.Store {
	t.Helper()
	s, err := filestore.Open(filestore.Config{Dir: dir, Seal: ring(t, keys)})
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

func redisRuns(t *testing.T, addr, keys string) *redisstore.Store {
	t.Helper()
	o, err := redisstore.ParseURL("redis://" + addr)
	must(t, err)
	s, err := redisstore.Open(redisstore.Config{Server: o, Timeout: 5 * time.Second, Seal: ring(t, keys)})
	must(t, err)
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

func TestSealedRunsPassTheBattery(t *testing.T) {
	t.Run("files", func(t *testing.T) {
		ledgertest.Run(t, func(t *testing.T) ledger.Store { return fileRuns(t, t.TempDir(), keyA).Runs() })
	})
	t.Run("redis", func(t *testing.T) {
		ledgertest.Run(t, func(t *testing.T) ledger.Store { return redisRuns(t, miniredis.RunT(t).Addr(), keyA).Runs() })
	})
}

var runKey = ledger.Key(checkpoint.Scope{9}, "THE-RUN")

// begin makes a run with words in it that must not be found in clear.
func begin(t *testing.T, s ledger.Store) {
	t.Helper()
	for _, do := range []ledger.Act{
		ledger.Begin{ID: "THE-RUN"},
		ledger.Commit{Message: ledger.Sum(nil), Lineage: "line", Calls: []ledger.Asked{{ID: "THE-CALL", Name: "THE-TOOL"}}},
	} {
		_, _, err := ledger.Append(t.Context(), s, runKey, checkpoint.Scope{9}, ledger.Entry{At: time.Now(), Do: do})
		must(t, err)
	}
}

func theRun(t *testing.T, s ledger.Store) {
	t.Helper()
	got, err := s.Load(t.Context(), runKey)
	must(t, err)
	if got.Run.ID != "THE-RUN" || got.Run.Last().Calls[0].Name != "THE-TOOL" {
		t.Errorf("%+v", got.Run)
	}
}

// A process that was started with another key, or with none, can neither read a run
// nor destroy it: with the right key it is there again.
func TestRunsInFilesAreSealed(t *testing.T) {
	dir := t.TempDir()
	s := fileRuns(t, dir, keyA)
	begin(t, s.Runs())
	s.Close()
	path := filepath.Join(dir, "runs", runKey.String())
	b, err := os.ReadFile(path)
	must(t, err)
	if bytes.Contains(b, []byte("THE-")) {
		t.Fatalf("in clear: %q", b)
	}
	for _, seal := range []ledger.Sealer{nil, ring(t, keyB)} {
		s, err := filestore.Open(filestore.Config{Dir: dir, Seal: seal})
		must(t, err)
		if _, err := s.Runs().Load(t.Context(), runKey); !errors.Is(err, ledger.ErrCorrupt) {
			t.Errorf("without its key: %v", err)
		}
		_, _, err = ledger.Append(t.Context(), s.Runs(), runKey, checkpoint.Scope{9}, ledger.Entry{At: time.Now(), Do: ledger.Begin{ID: "THE-RUN"}})
		if !errors.Is(err, ledger.ErrCorrupt) {
			t.Errorf("written over without its key: %v", err)
		}
		s.Close()
	}
	s = fileRuns(t, dir, keyB+" "+keyA)
	theRun(t, s.Runs())
	// A file moved to another run's name is not that run.
	s.Close()
	other := ledger.Key(checkpoint.Scope{1}, "other")
	must(t, os.WriteFile(filepath.Join(dir, "runs", other.String()), b, 0o600))
	s = fileRuns(t, dir, keyA)
	if _, err := s.Runs().Load(t.Context(), other); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("moved to another run: %v", err)
	}
}

func TestRunsInRedisAreSealed(t *testing.T) {
	srv := miniredis.RunT(t)
	begin(t, redisRuns(t, srv.Addr(), keyA).Runs())
	if dump := srv.Dump(); bytes.Contains([]byte(dump), []byte("THE-")) {
		t.Fatalf("in clear:\n%s", dump)
	}
	if _, err := redisRuns(t, srv.Addr(), keyB).Runs().Load(t.Context(), runKey); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("with another key: %v", err)
	}
	theRun(t, redisRuns(t, srv.Addr(), keyB+" "+keyA).Runs())
}

var _ ledger.Sealer = sealed.Keys{}
