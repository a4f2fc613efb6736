package relay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/relay"
)

// Text runs ahead of its checkpoint by Flush at most. A stream of an event a second was
// roused a second time for each of them, to persist it: what comes after a pause is
// persisted at once, and what follows within Flush is gathered.
func TestCheckpointsFollowThePaceOfTheText(t *testing.T) {
	const flush = 50 * time.Millisecond
	each(t, func(t *testing.T, w wire) {
		now := time.Unix(1_800_000_000, 0)
		s, _ := relay.New(relay.Config{Flush: flush, Targets: []relay.Target{{Ability: prefilling}}}, w.d, mustParse(w.d, []byte(w.request)), nil, now)
		s.Step(now, relay.Opened{Attempt: 1, Status: 200, Header: refusal(200, "")})
		s.Step(now, relay.Chunk{Attempt: 1, Bytes: []byte(w.begin("one") + w.text("one", "Hello"))})
		for _, c := range []struct {
			after     time.Duration
			persisted bool
			roused    bool // the machine wants to be roused for it
		}{
			{time.Second, true, false},
			{time.Second, true, false},
			{flush / 2, false, true},
			{flush / 4, false, true},
			{flush / 4, true, false},
			{flush * 3, true, false},
		} {
			now = now.Add(c.after)
			fx := s.Step(now, relay.Chunk{Attempt: 1, Bytes: []byte(w.text("one", " world,"))})
			if got := len(fx.Persist.Log) > 0; got != c.persisted {
				t.Fatalf("after %v: persisted %v", c.after, got)
			}
			due := s.Deadline()
			if got := !due.IsZero() && !due.After(now.Add(flush)); got != c.roused {
				t.Fatalf("after %v: roused in %v", c.after, due.Sub(now))
			}
		}
	})
}

// A burst that was persisted left its stream with a buffer of that size, however little it
// said for the rest of the day.
func TestNothingIdlesOnTheBufferOfABurst(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		h := run(t, w, relay.Config{})
		h.open(200)
		log := func(text string) int {
			h.now = h.now.Add(time.Second)
			return cap(h.s.Feed(h.now, h.n, []byte(w.text("one", text))).Persist.Log)
		}
		h.feed(w.begin("one") + w.text("one", "Hello"))
		if n := log(strings.Repeat("burst ", 10_000)); n < 60_000 {
			t.Fatalf("a burst was persisted in %d bytes", n)
		}
		log("a")
		if n := log("b"); n > 4096 {
			t.Errorf("behind a burst, %d bytes are kept for the log", n)
		}
	})
}
