package redisstore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/checkpoint/storetest"
)

// startCluster starts three masters that share the slots.
func startCluster(t *testing.T) []*server {
	t.Helper()
	var nodes []*server
	for range 3 {
		nodes = append(nodes, startRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000"))
	}
	for i, n := range nodes {
		n.do("CLUSTER", "ADDSLOTSRANGE", i*16384/3, (i+1)*16384/3-1)
		n.do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	for _, n := range nodes[1:] {
		nodes[0].do("CLUSTER", "MEET", "127.0.0.1", n.port)
	}
	for _, n := range nodes {
		n.until("the cluster agrees", func() bool {
			info := fmt.Sprint(n.do("CLUSTER", "INFO"))
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	return nodes
}

func TestClusterPassesTheBattery(t *testing.T) {
	nodes := startCluster(t)
	url := "redis+cluster://" + nodes[0].addr() + "," + nodes[1].addr()
	storetest.Run(t, func(t *testing.T) checkpoint.Store {
		for _, n := range nodes {
			n.do("FLUSHALL")
			n.do("SCRIPT", "FLUSH")
		}
		return mortal{open(t, url, lasting)}
	})
	t.Run("a pipeline for all nodes", func(t *testing.T) {
		s := open(t, url, never)
		var turns []*held
		for i := range 60 {
			h := hold(t, s, fmt.Sprint(i), me)
			h.say(fmt.Sprint("text of ", i))
			turns = append(turns, h)
		}
		turns[0].sync(t)
		if st := s.Stats(); st.Flushes != 1 || st.Behind != 0 || st.Failures != 0 {
			t.Errorf("%+v", st)
		}
		for i := range turns {
			if got := logOf(t, s, fmt.Sprint(i)); got != fmt.Sprint("text of ", i) {
				t.Errorf("log %d: %q", i, got)
			}
		}
		for _, n := range nodes {
			if n.infoNumber("stats", "total_error_replies") != 0 && strings.Contains(fmt.Sprint(n.do("INFO", "errorstats")), "CROSSSLOT") {
				t.Errorf("%s had to refuse a CROSSSLOT", n.addr())
			}
		}
	})
	t.Run("a moved slot", func(t *testing.T) {
		s := open(t, url, lasting)
		h := hold(t, s, "moving", me)
		h.say("here ")
		h.sync(t)
		moveSlot(t, nodes, s.keys.turn(key("moving"))[0])
		h.say("there")
		until(t, "written", func() bool { return h.Sync(t.Context()) == nil })
		if got := logOf(t, s, "moving"); got != "here there" {
			t.Errorf("log %q", got)
		}
	})
}

// moveSlot moves the slot of a key, with its keys, from one node to another.
func moveSlot(t *testing.T, nodes []*server, k string) {
	t.Helper()
	slot := nodes[0].do("CLUSTER", "KEYSLOT", k).(int64)
	var from, to *server
	for i, n := range nodes {
		if slot >= int64(i*16384/3) && slot < int64((i+1)*16384/3) {
			from, to = n, nodes[(i+1)%3]
		}
	}
	fromID, toID := from.do("CLUSTER", "MYID"), to.do("CLUSTER", "MYID")
	to.do("CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	from.do("CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	for _, k := range from.do("CLUSTER", "GETKEYSINSLOT", slot, 100).([]any) {
		from.do("MIGRATE", "127.0.0.1", to.port, k, 0, 5000)
	}
	for _, n := range []*server{to, from} {
		n.do("CLUSTER", "SETSLOT", slot, "NODE", toID)
	}
}

// A fail-over under Sentinel, to a replica that had not heard of the last claim
// and the last words: fences do not rewind, and what was lost is written again.
func TestFailoverUnderSentinel(t *testing.T) {
	master := startRedis(t)
	replica := startRedis(t, "--replicaof", "127.0.0.1 "+fmt.Sprint(master.port), "--repl-diskless-sync-delay", "0")
	replica.until("it follows", func() bool {
		return strings.Contains(replica.info("replication"), "master_link_status:up")
	})
	sentinel := startSentinel(t, master)
	sentinel.until("it knows the replica", func() bool {
		return strings.Contains(fmt.Sprint(sentinel.do("SENTINEL", "REPLICAS", "mymaster")), fmt.Sprint(replica.port))
	})

	s := open(t, "redis+sentinel://"+sentinel.addr()+"/mymaster", brisk)
	until(t, "reached", func() bool { _, err := s.Secret(t.Context(), "x", []byte("x")); return err == nil })
	first := hold(t, s, "run", me)
	first.say("known to both ")
	first.sync(t)
	replica.until("it heard", func() bool {
		return replica.infoNumber("replication", "slave_repl_offset") >= master.infoNumber("replication", "master_repl_offset")
	})
	replica.freeze()
	second := hold(t, s, "run", me)
	if second.fence.N <= first.fence.N {
		t.Fatalf("fence %d after %d", second.fence.N, first.fence.N)
	}
	second.say("known to the master ")
	second.sync(t)
	master.kill()
	replica.thaw()

	second.say("known to us")
	until(t, "fail-over", func() bool { return strings.Contains(replica.info("replication"), "role:master") })
	until(t, "written to the new master", func() bool { return second.Sync(t.Context()) == nil })
	var r *checkpoint.Record
	until(t, "read", func() bool {
		var err error
		r, err = s.Get(t.Context(), key("run"))
		return err == nil
	})
	if string(r.Log) != "known to both known to the master known to us" || r.Owner != me {
		t.Errorf("the new master has %q of %q", r.Log, r.Owner)
	}
	want(t, s.Append(t.Context(), first.fence, 0, []byte("x")), checkpoint.ErrFenced)
	f, _, err := s.Claim(t.Context(), key("run"), me, head("run"))
	must(t, err)
	if f.N <= second.fence.N {
		t.Errorf("after the fail-over: fence %d after %d", f.N, second.fence.N)
	}
	if st := s.Stats(); st.Drops != 0 {
		t.Errorf("%+v", st)
	}
}

func startSentinel(t *testing.T, master *server) *server {
	t.Helper()
	s := &server{t: t, port: freePort(t), dir: t.TempDir()}
	t.Cleanup(s.kill)
	conf := filepath.Join(s.dir, "sentinel.conf")
	must(t, os.WriteFile(conf, fmt.Appendf(nil, `port %d
bind 127.0.0.1
dir %s
sentinel monitor mymaster 127.0.0.1 %d 1
sentinel down-after-milliseconds mymaster 500
sentinel failover-timeout mymaster 5000
`, s.port, s.dir, master.port), 0o600))
	s.run(needs(t, "redis-server"), conf, "--sentinel")
	s.until("answers", func() bool {
		c := redis.NewClient(&redis.Options{Addr: s.addr(), Protocol: 2, MaxRetries: -1, DisableIdentity: true})
		defer func() { _ = c.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return c.Ping(ctx).Err() == nil
	})
	return s
}
