package e2e

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/unbroken-llm/unbroken/turn"
)

// kept is what a Redis holds of an agent's run.
type kept struct {
	ended int    // turns of which a checkpoint has the end
	steps string // of the run's record, as Redis spells it
}

func (k *kept) read(ctx context.Context, c *redis.Client) error {
	logs, err := c.Keys(ctx, "*:log").Result()
	if err != nil {
		return err
	}
	k.ended, k.steps = 0, "0"
	for _, key := range logs {
		log, err := c.Get(ctx, key).Bytes()
		if err != nil {
			return err
		}
		if said, err := turn.Replay(log); err == nil && said.Finished() {
			k.ended++
		}
	}
	records, err := c.Keys(ctx, "*run:*").Result()
	if err != nil || len(records) == 0 {
		return err
	}
	k.steps, err = c.HGet(ctx, records[0], "n").Result()
	return err
}

// TestTheSidecarIsKilledBetweenItsWrites: the end of a turn is written twice, and the
// sidecar is killed with -9 when Redis has done the first of them, and when it has done the
// second, before it hears of it. The agent has the turn that was said, no other is asked
// for, and no batch is given up.
func TestTheSidecarIsKilledBetweenItsWrites(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are killed")
	}
	agent, path, provider := agentBinary(t), binary(t), errandProvider(t)
	for i, tt := range []struct {
		name string
		now  func(k *kept, turn int) bool
	}{
		{"the checkpoint has the end", func(k *kept, turn int) bool { return k.ended == turn }},
		{"the ledger has it", func(k *kept, turn int) bool { return k.steps == fmt.Sprint(turn) }},
	} {
		for turn := 1; turn <= 3; turn++ {
			t.Run(fmt.Sprintf("%s, turn %d", tt.name, turn), func(t *testing.T) {
				t.Parallel()
				server := startRedis(t, "redis-server")
				way := newPipe(t, server.addr)
				direct := redis.NewClient(&redis.Options{Addr: server.addr})
				t.Cleanup(func() { _ = direct.Close() })
				side := newSidecar(t, path, "redis://"+way.addr(), provider.URL())
				dead := make(chan struct{})
				var once sync.Once
				one := side.replicaProcess
				way.listen(func() {
					var k kept
					if k.read(t.Context(), direct) == nil && tt.now(&k, turn) {
						once.Do(func() { close(dead); one.kill() })
					}
				})
				e := &errand{T: t, at: side, agent: agent, dialect: "chat", id: fmt.Sprintf("written-%d-%d", i, turn), dir: t.TempDir()}
				l := e.begin(nil)
				select {
				case <-dead:
				case <-l.dead: // of it, or the point was not reached
				}
				select {
				case <-dead:
				default:
					t.Fatalf("the agent ended before the sidecar: exit %d, %s", l.status, l.log.String())
				}
				one.kill() // which may be under way
				way.listen(func() {})
				side.start()
				if l.wait() == 1 { // the agent's client has had enough
					l = e.finish()
				}
				if got := e.lived(); l.status != 0 || !slices.Equal(got, fair) {
					t.Errorf("exit %d, %q\n%s", l.status, got, l.log.String())
				}
				asked := 0
				for _, x := range provider.Log() {
					if bytes.Contains(x.Body, []byte("errands of "+e.id+".")) {
						asked++
					}
				}
				if asked != 3 {
					t.Errorf("the provider was asked %d times for 3 turns", asked)
				}
			})
		}
	}
}
