package redisstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// The cost of a turn is linear in its text: what goes over the wire to Redis for
// each byte of the answer, and how often, does not grow with the answer.
func TestCostIsLinear(t *testing.T) {
	srv := startRedis(t)
	s := open(t, srv.url(), never) // by size only, so that it does not depend on this machine's speed
	warm := hold(t, s, "warm", me)
	warm.say("x")
	warm.sync(t)
	const token = 8
	word := strings.Repeat("w", token)
	perByte := map[int]float64{}
	t.Logf("%10s %12s %10s %14s %10s", "answer", "bytes sent", "per byte", "script calls", "pipelines")
	for _, size := range []int{1 << 10, 100 << 10, 5 << 20} {
		h := hold(t, s, word[:1]+string(rune('a'+len(perByte))), me)
		h.sync(t)
		calls, in, flushes := scriptCalls(srv), srv.infoNumber("stats", "total_net_input_bytes"), s.Stats().Flushes
		for range size / token {
			h.say(word)
		}
		h.sync(t)
		sent := srv.infoNumber("stats", "total_net_input_bytes") - in
		n, f := scriptCalls(srv)-calls, s.Stats().Flushes-flushes
		perByte[size] = float64(sent) / float64(size)
		t.Logf("%10d %12d %10.3f %14d %10d", size, sent, perByte[size], n, f)
		// Half a batch on the average is as small as they get when the pipeline is quicker than the writer.
		if most := int64(size/(16<<10) + 4); n > most {
			t.Errorf("%d script calls for %d bytes, at most %d", n, size, most)
		}
		h.Settle(checkpoint.State{Phase: checkpoint.Finished})
	}
	if perByte[5<<20] > 1.1 || perByte[5<<20] > perByte[100<<10]*1.1 {
		t.Errorf("a byte of a long answer costs %.3f bytes, of a shorter one %.3f", perByte[5<<20], perByte[100<<10])
	}
}

// scriptCalls counts the calls of scripts, by hash and by text.
func scriptCalls(srv *server) (n int64) {
	for line := range strings.Lines(srv.do("INFO", "commandstats").(string)) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_eval"); ok {
			_, rest, _ = strings.Cut(rest, "calls=")
			var calls int64
			if _, err := fmt.Sscan(strings.SplitN(rest, ",", 2)[0], &calls); err != nil {
				srv.t.Fatalf("commandstats: %q", line)
			}
			n += calls
		}
	}
	return n
}
