package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/unbroken-llm/unbroken/bench/gauge"
)

var streams = flag.Int("streams", 40, "how many streams live through the outages of Redis; make redis-faults has 500")

// redisFault is something that happens to Redis.
type redisFault struct {
	name string
	// stage starts Redis, and returns its URL and what breaks and mends it.
	stage func(t *testing.T) (url string, rupture, mend func())
}

var redisFaults = []redisFault{
	{"frozen", func(t *testing.T) (string, func(), func()) {
		r := startRedis(t, "redis-server")
		signal := func(s syscall.Signal) func() {
			return func() {
				if err := r.cmd.Process.Signal(s); err != nil {
					t.Error(err)
				}
			}
		}
		return "redis://" + r.addr, signal(syscall.SIGSTOP), signal(syscall.SIGCONT)
	}},
	{"slow", func(t *testing.T) (string, func(), func()) {
		p := newPipe(t, startRedis(t, "redis-server").addr)
		return "redis://" + p.addr(), func() { p.delay.Store(int64(200 * time.Millisecond)) }, func() { p.delay.Store(0) }
	}},
	{"refusing", func(t *testing.T) (string, func(), func()) {
		p := newPipe(t, startRedis(t, "redis-server").addr)
		return "redis://" + p.addr(), func() { p.refuse(true) }, func() { p.refuse(false) }
	}},
	{"out of memory", func(t *testing.T) (string, func(), func()) {
		r := startRedis(t, "redis-server", "--maxmemory-policy", "noeviction")
		limit := func(bytes string) func() {
			return func() {
				c := redis.NewClient(&redis.Options{Addr: r.addr})
				defer func() { _ = c.Close() }()
				if err := c.ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
					t.Error(err)
				}
			}
		}
		return "redis://" + r.addr, limit("1"), limit("0")
	}},
	{"failing over", func(t *testing.T) (string, func(), func()) {
		master := startRedis(t, "redis-server")
		host, port, _ := strings.Cut(master.addr, ":")
		startRedis(t, "redis-server", "--replicaof", host+" "+port)
		sentinel := startRedis(t, "redis-sentinel", "sentinel monitor m "+host+" "+port+" 1",
			"sentinel down-after-milliseconds m 1000", "sentinel failover-timeout m 5000")
		c := redis.NewSentinelClient(&redis.Options{Addr: sentinel.addr})
		t.Cleanup(func() { _ = c.Close() })
		eventually(t, "the sentinel knows the replica", func() bool {
			replicas, err := c.Replicas(t.Context(), "m").Result()
			return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
		})
		return "redis+sentinel://" + sentinel.addr + "/m", func() {
			if err := master.cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}, func() {} // the sentinel does it
	}},
}

const (
	// feltMost is by how much a gap may grow (issue 4).
	feltMost = 50 * time.Millisecond
	// outageTries is how often a machine is asked again on which streams without Redis
	// feel as much at the same time: what such a try says of Redis is nothing.
	outageTries = 6
)

// Redis freezes, is slow, refuses, has no memory left, or fails over, while many
// streams flow: none of them feels it, none fails, and the proxy says how it is. Back
// again, Redis protects what runs: the process is killed, and another one has all that
// was said meanwhile.
//
// What the machine itself does to streams is told from what Redis does by as many
// streams through a second proxy, without Redis, at the same time.
func TestStreamsDoNotFeelRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are started")
	}
	path := binary(t)
	rows := []string{fmt.Sprintf("%d streams, and as many without Redis; growth of the worst gap", *streams),
		fmt.Sprintf("%-14s %4s %12s %12s %14s %14s %8s %8s  %s", "redis", "try", "most", "p99", "most, control", "p99, control", "turns", "lost", "found")}
	defer func() { t.Log("\n" + strings.Join(rows, "\n")) }()
	for _, f := range redisFaults {
		t.Run(f.name, func(t *testing.T) {
			for try := 1; ; try++ {
				var o outage
				if !t.Run(fmt.Sprint("try ", try), func(t *testing.T) { o.play(t, path, &f) }) {
					return
				}
				found := o.verdict()
				rows = append(rows, fmt.Sprintf("%-14s %4d %12v %12v %14v %14v %8d %8v  %s", f.name, try, o.most, o.p99, o.controlMost, o.controlP99, o.turns, o.lost, found))
				switch {
				case found == isFelt:
					t.Errorf("a gap grew by %v, and by %v without Redis", o.most, o.controlMost)
					return
				case found == isUnfelt:
					return
				case try == outageTries:
					t.Errorf("inconclusive %d times: without Redis a gap grew by %v", try, o.controlMost)
					return
				}
			}
		})
	}
}

// verdict is what a try says of Redis. The machine's own stutter shows in the control
// group, and one that shows there may have hit the other one too.
func (o *outage) verdict() string {
	switch {
	case o.controlMost > feltMost:
		return inconclusive
	case o.most > feltMost:
		return isFelt
	}
	return isUnfelt
}

const (
	isFelt       = "FELT"
	isUnfelt     = "not felt"
	inconclusive = "inconclusive"
)

// TestAStutteringMachineProvesNothing about Redis, either way.
func TestAStutteringMachineProvesNothing(t *testing.T) {
	for _, tt := range []struct {
		most, control time.Duration
		want          string
	}{
		{feltMost, feltMost, isUnfelt},
		{feltMost + 1, feltMost, isFelt},
		{feltMost + 1, feltMost + 1, inconclusive},
		{0, feltMost + 1, inconclusive},
		{feltMost + 1, -time.Second, isFelt},
	} {
		if got := (&outage{most: tt.most, controlMost: tt.control}).verdict(); got != tt.want {
			t.Errorf("%v, %v without Redis: %s, want %s", tt.most, tt.control, got, tt.want)
		}
	}
}

// outage is one fault, played once.
type outage struct {
	most, p99, controlMost, controlP99, lost time.Duration
	turns                                    int64
}

func (o *outage) play(t *testing.T, path string, f *redisFault) {
	provider, err := gauge.NewProvider("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	up := "http://" + provider.Addr()
	url, rupture, mend := f.stage(t)
	one := serveProcess(t, path, url, up, "--ack-wait", "25ms")
	plain := serveProcess(t, path, "memory", up)
	run := "watched-" + strconv.FormatInt(turns.Add(1), 10)
	eventually(t, "the store is there", func() bool { return !one.store(t).Away })
	felt, control := gather(t, one.base, run, *streams), gather(t, plain.base, run, *streams)
	begin := func(s span) {
		felt.now.Store(int32(s))
		control.now.Store(int32(s))
	}
	begin(healthy)
	time.Sleep(2 * time.Second) // what is measured is this time
	begin(faulty)
	rupture()
	broke := time.Now()
	eventually(t, "readyz says that Redis is away", func() bool { return strings.Contains(one.readyz(t), "away") })
	time.Sleep(time.Until(broke.Add(3 * time.Second)))
	begin(after)
	mend()
	eventually(t, "Redis is back, and nothing waits for it", func() bool {
		s := one.store(t)
		return !s.Away && s.LagMS <= 100
	})
	back := time.Now()
	eventually(t, "the watched stream goes on", func() bool { return felt.each[0].last.Load() > back.UnixNano() })
	o.most, o.p99 = felt.growth()
	o.controlMost, o.controlP99 = control.growth()
	o.turns = felt.turns.Load()
	for _, c := range []*crowd{felt, control} {
		if err := c.fault(); err != nil {
			t.Errorf("%v\n%s", err, one.log)
		}
	}
	if o.turns == 0 {
		t.Error("no short turn came to its end: this tests too little")
	}
	for _, word := range []string{"redis is away", "redis is back"} {
		if !strings.Contains(one.log.String(), word) {
			t.Errorf("the log does not say %q:\n%s", word, one.log)
		}
	}
	one.kill()
	seen := felt.each[0].last.Load()
	felt.leave()
	control.leave()
	kept := savedUntil(t, serveProcess(t, path, url, up), run, seen)
	// The last event may have been on its way; the one before it came many flushes ago.
	if o.lost = time.Duration(seen - kept).Round(time.Millisecond); o.lost > 2*feltEvery {
		t.Errorf("what was said in the last %v before the kill is lost; Redis was back for %v", o.lost, time.Duration(seen-back.UnixNano()))
	}
}

// savedUntil asks another process for a run, and returns the stamp of the last event
// that the first one left in the store.
func savedUntil(t *testing.T, p *replicaProcess, run string, killed int64) (kept int64) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, res, err := open(ctx, p.base[len("http://"):], longShape, run)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.log)
	}
	defer func() { _ = conn.Close() }()
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		for _, m := range stampOf.FindAllSubmatch(line, -1) {
			stamp, _ := strconv.ParseInt(string(m[1]), 10, 64)
			if stamp > killed { // this is from another attempt
				if kept == 0 {
					t.Fatalf("the turn began anew:\n%s", p.log)
				}
				return kept
			}
			kept = max(kept, stamp)
		}
		if err != nil {
			t.Fatalf("the stream ended: %v\n%s", err, p.log)
		}
	}
}

func (r *replicaProcess) get(t *testing.T, path string) (status int, body []byte) {
	res, err := http.Get(r.admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body
}

// readyz is what readyz says, which is 200 whatever the store does.
func (r *replicaProcess) readyz(t *testing.T) string {
	status, body := r.get(t, "/readyz")
	if status != http.StatusOK || !strings.HasPrefix(string(body), "ready\n") {
		t.Fatalf("readyz: %d %s", status, body)
	}
	return string(body)
}

type storeState struct {
	Away   bool
	LagMS  int64 `json:"lag_ms"`
	Behind int64 `json:"behind_bytes"`
	Drops  int64
}

func (r *replicaProcess) store(t *testing.T) storeState {
	var s struct{ Store storeState }
	_, body := r.get(t, "/status.json")
	if err := json.Unmarshal(body, &s); err != nil {
		t.Fatal(err)
	}
	return s.Store
}
