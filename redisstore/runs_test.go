package redisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
	ledgertest "github.com/unbroken-llm/unbroken/ledger/storetest"
)

func TestRunsOnMiniredisPassTheBattery(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledger.Store {
		return open(t, "redis://"+miniredis.RunT(t).Addr(), lasting).Runs()
	})
}

func TestRunsOnRedisPassTheBattery(t *testing.T) {
	srv := startRedis(t)
	ledgertest.Run(t, func(t *testing.T) ledger.Store {
		srv.do("FLUSHALL")
		srv.do("SCRIPT", "FLUSH")
		return open(t, srv.url(), lasting).Runs()
	})
}

func TestRunsOnAClusterPassTheBattery(t *testing.T) {
	nodes := startCluster(t)
	url := "redis+cluster://" + nodes[0].addr()
	ledgertest.Run(t, func(t *testing.T) ledger.Store {
		for _, n := range nodes {
			n.do("FLUSHALL")
			n.do("SCRIPT", "FLUSH")
		}
		return open(t, url, lasting).Runs()
	})
}

// record is one run of a test, in a store.
type record struct {
	*testing.T
	runs ledger.Store
	key  ledger.RunKey
}

var someone = checkpoint.Scope{9}

func (r *record) tell(e ledger.Entry) (*ledger.Run, error) {
	e.At = time.Now()
	run, _, err := ledger.Append(context.Background(), r.runs, r.key, someone, e)
	return run, err
}

// must tells e until it is acknowledged: on a busy machine a server, or its replica,
// may take longer than it is waited for, and whoever gets no answer repeats.
func (r *record) must(e ledger.Entry) (run *ledger.Run) {
	r.Helper()
	until(r.T, e.Do.Name()+" is acknowledged", func() bool {
		var err error
		if run, err = r.tell(e); err != nil && !errors.Is(err, ledger.ErrUnavailable) && !errors.Is(err, ledger.ErrUnconfirmed) {
			r.Fatalf("%s: %v", e.Do.Name(), err)
		}
		return err == nil
	})
	return run
}

// unconfirmed tells e, which the server takes and no replica confirms.
func (r *record) unconfirmed(e ledger.Entry) {
	r.Helper()
	until(r.T, e.Do.Name()+" is written", func() bool {
		_, err := r.tell(e)
		if !errors.Is(err, ledger.ErrUnavailable) && !errors.Is(err, ledger.ErrUnconfirmed) {
			r.Fatalf("with no replica left: %v", err)
		}
		return errors.Is(err, ledger.ErrUnconfirmed)
	})
}

func (r *record) step(n int) {
	r.Helper()
	r.must(ledger.Entry{Do: ledger.Commit{
		Message: ledger.Sum([]byte{byte(n)}), Lineage: fmt.Sprint("line ", n), Calls: []ledger.Asked{{ID: "call", Name: "pay"}},
	}})
}

func (r *record) doubted() bool {
	r.Helper()
	var got ledger.Stored
	until(r.T, "the run is read", func() bool {
		var err error
		if got, err = r.runs.Load(context.Background(), r.key); err != nil && !errors.Is(err, ledger.ErrUnavailable) {
			r.Fatal(err)
		}
		return err == nil
	})
	return got.Doubt != ""
}

// TestARestartLeavesRunsInDoubt: a server that came back from its disk may not have
// what it acknowledged last. That is said until the run's next step, also when
// somebody writes to it in between.
func TestARestartLeavesRunsInDoubt(t *testing.T) {
	srv := startRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, srv.url(), lasting)
	r := &record{t, s.Runs(), ledger.Key(someone, "run")}
	r.must(ledger.Entry{Do: ledger.Begin{ID: "run"}})
	r.step(1)
	if r.doubted() {
		t.Fatal("in doubt, and nothing happened")
	}
	srv.kill()
	srv.start()
	srv.until("the store is back", func() bool { _, err := r.runs.Load(context.Background(), r.key); return err == nil })
	if !r.doubted() {
		t.Fatal("not in doubt after a restart")
	}
	run := r.must(ledger.Entry{Key: "claim", Do: ledger.Claim{}})
	if !r.doubted() {
		t.Fatal("a claim has cleared the doubt")
	}
	r.must(ledger.Entry{Fence: run.Fence, Do: ledger.Lose{Call: "call", Why: "a person says so"}})
	r.step(2)
	if r.doubted() {
		t.Fatal("in doubt still, with a step that was committed since")
	}
}

// TestRunsAreConfirmedByAReplica, and what is not confirmed says so. After a
// fail-over nothing is in doubt whose last write was confirmed, and all else is.
func TestRunsAreConfirmedByAReplica(t *testing.T) {
	master := startRedis(t, "--repl-diskless-sync-delay", "0")
	replica := startRedis(t, "--replicaof", "127.0.0.1 "+fmt.Sprint(master.port))
	master.until("the replica is there", func() bool { return master.says("1", "WAIT", 1, 100) })
	confirm := func(c *Config) { lasting(c); c.Confirm = 1; c.Timeout = 4 * time.Second }
	r := &record{t, open(t, master.url(), confirm).Runs(), ledger.Key(someone, "run")}
	r.must(ledger.Entry{Do: ledger.Begin{ID: "run"}})
	r.step(1)
	replica.until("the word of it is there too", func() bool { return replica.says("2", "HGET", "unbroken:run:"+r.key.String(), "w") })

	replica.do("REPLICAOF", "NO", "ONE")
	r = &record{t, open(t, replica.url(), confirm).Runs(), r.key}
	if r.doubted() {
		t.Fatal("in doubt, and all of it was confirmed")
	}
	for range 2 { // repeated, it is no more confirmed than before
		r.unconfirmed(ledger.Entry{Key: "claim", Do: ledger.Claim{}})
	}
	third := startRedis(t, "--replicaof", "127.0.0.1 "+fmt.Sprint(replica.port))
	third.until("the copy is there", func() bool { return third.says("3", "HGET", "unbroken:run:"+r.key.String(), "v") })
	third.do("REPLICAOF", "NO", "ONE")
	r = &record{t, open(t, third.url(), confirm).Runs(), r.key}
	if !r.doubted() {
		t.Fatal("not in doubt, and its last write was never confirmed")
	}
}

// TestRunsOnMiniredisPassTheModel: two processes, each with a connection of its own.
func TestRunsOnMiniredisPassTheModel(t *testing.T) {
	srv := miniredis.RunT(t)
	url := "redis://" + srv.Addr()
	one, two := open(t, url, lasting).Runs(), open(t, url, lasting).Runs()
	ledgertest.Model(t, 60, func(*testing.T) [2]ledger.Store {
		srv.FlushAll()
		return [2]ledger.Store{one, two}
	})
}
